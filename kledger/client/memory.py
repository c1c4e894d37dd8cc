"""Requests about memories: remember, one memory, and the timeline of memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import Moment, moment
from kledger.client.wire import Wire, comma_joined, segment, without_none
from kledger.contract.words import HeldStatus, ItemFilter, MemoryConcern, MemoryLayer, ProjectRole

if TYPE_CHECKING:
    from kledger.answers.memory import (
        Cleaned,
        Confirmed,
        DecidedHeld,
        DecidedProposal,
        HeldList,
        MemoryHealth,
        MemoryList,
        OneMemory,
        Remembered,
    )

MEMORY = "/api/memory"


async def remember(
    wire: Wire,
    content: str | None = None,
    layer: MemoryLayer = "semantic",
    *,
    task: str | None = None,
    kind: str | None = None,
    importance: float | None = None,
    confidence: float | None = None,
    lifetime: int | None = None,
    category: str | None = None,
    related: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    session: str | None = None,
    event: str | None = None,
    participants: Sequence[str] | None = None,
    outcome: str | None = None,
    artifacts: Sequence[str] | None = None,
    happened_at: Moment | None = None,
    name: str | None = None,
    trigger: str | None = None,
    steps: Sequence[str] | None = None,
    id: str | None = None,
    types: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    acl: Sequence[Mapping[str, str]] | None = None,
    source: Mapping[str, Any] | None = None,
    message_id: str | None = None,
    trace_id: str | None = None,
    supersedes: str | None = None,
    idempotency_key: str | None = None,
) -> Remembered:
    """Save a memory: an item with a layer, which is found, judged, shared and forgotten like every item.

    `short` lives as long as its `kind` (preference, decision, follow_up, mood, or what the node has registered), or for
    `lifetime` seconds; `semantic` is a fact with a `category`; `episodic` an `event` with its moment (`happened_at`),
    `participants`, `outcome` and `artifacts`; `procedural` has a `name`, a `trigger` and `steps`. An event or steps may
    stand for the content. What a project shares (`kind` project_context, adr, convention, known_issue or
    user_preference) is `proposed` until a coordinator approves it; `supersedes` names the item of which it is a later
    version, which is in force no longer then. InvalidPayload where a field is of another layer; otherwise as `save`.
    """
    body = {
        "layer": layer,
        "content": content,
        "task": task,
        "kind": kind,
        "importance": importance,
        "confidence": confidence,
        "lifetime": lifetime,
        "category": category,
        "related": related,
        "tags": tags,
        "session": session,
        "event": event,
        "participants": participants,
        "outcome": outcome,
        "artifacts": artifacts,
        "happened_at": moment(happened_at),
        "name": name,
        "trigger": trigger,
        "steps": steps,
        "id": id,
        "types": types,
        "scopes": scopes,
        "owner": owner,
        "acl": acl,
        "source": source,
        "message_id": message_id,
        "trace_id": trace_id,
        "supersedes": supersedes,
    }
    return await wire.write("POST", MEMORY, without_none(**body), idempotency_key=idempotency_key)


async def memory(wire: Wire, id: str, *, as_of: Moment | None = None) -> OneMemory:
    """One memory, with the fields of its layer. UnknownKnowledge when there is none to see."""
    return await wire.read(f"{MEMORY}/{segment(id)}", {"as_of": moment(as_of)})


async def memories(
    wire: Wire,
    *,
    layers: Sequence[MemoryLayer] | None = None,
    kinds: Sequence[str] | None = None,
    owner: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    status: ItemFilter = "active",
    concern: MemoryConcern | None = None,
    role: ProjectRole | None = None,
    ids: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    limit: int = 10,
    offset: int = 0,
    as_of: Moment | None = None,
) -> MemoryList:
    """The memories that the caller may see, by when they happened, the latest first; of episodes that is a timeline.

    `since` and `until` are times; `concern` narrows to those in conflict, promoted or never recalled; `role` to what is
    meant for it of what projects share; `ids` to those of these items that are memories.
    `layers`, `kinds` and `tags` (words among them, or `name=value`) are each any-of. The next page begins at the offset
    `next`.
    """
    return await wire.read(
        MEMORY,
        {
            "layer": comma_joined(layers),
            "kind": comma_joined(kinds),
            "owner": owner,
            "since": moment(since),
            "until": moment(until),
            "status": status,
            "concern": concern,
            "role": role,
            "id": comma_joined(ids),
            "tags": comma_joined(tags),
            "limit": limit,
            "offset": offset,
            "as_of": moment(as_of),
        },
    )


async def confirm(
    wire: Wire, id: str, *, case: Mapping[str, Any] | None = None, idempotency_key: str | None = None
) -> Confirmed:
    """Say that a memory holds: evidence for it, and a short memory becomes a semantic one at once.

    `case` is what shows it (task, outcome, reason, …). IllegalState where the memory is out of recall.
    """
    body = {} if case is None else {"case": case}
    return await wire.write("POST", f"{MEMORY}/{segment(id)}/confirm", body, idempotency_key=idempotency_key)


async def approve(
    wire: Wire,
    id: str,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> DecidedProposal:
    """Take a proposal into what its project shares, as a coordinator of the project.

    `expected_version` is the version that you read: VersionConflict where it was revised since. NotOwner where you are
    no coordinator, IllegalState where it is no proposal.
    """
    return await _decide(wire, id, "approve", expected_version, reason, idempotency_key)


async def reject(
    wire: Wire,
    id: str,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> DecidedProposal:
    """Decline a proposal, with a reason that its author reads; a revision proposes it anew. Otherwise as `approve`."""
    return await _decide(wire, id, "reject", expected_version, reason, idempotency_key)


async def _decide(
    wire: Wire, id: str, verb: str, expected_version: int | None, reason: str | None, idempotency_key: str | None
) -> DecidedProposal:
    body = without_none(expected_version=expected_version, reason=reason)
    return await wire.write("POST", f"{MEMORY}/{segment(id)}/{verb}", body, idempotency_key=idempotency_key)


async def held_statements(wire: Wire, *, status: HeldStatus = "held", limit: int = 20, offset: int = 0) -> HeldList:
    """What imports, extractions and documents said again although a person had retired or corrected it.

    Those that the caller may decide on: as their owner, or as who may change the item that was retired. The next page
    begins at the offset `next`.
    """
    return await wire.read(f"{MEMORY}/held", {"status": status, "limit": limit, "offset": offset})


async def release_statement(
    wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> DecidedHeld:
    """Save a held statement as it was stated. IllegalState where it was decided before, KnowledgeExists where its id
    says something else by now."""
    return await _decide_held(wire, id, "release", reason, idempotency_key)


async def drop_statement(
    wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> DecidedHeld:
    """Do not save a held statement. IllegalState where it was decided before."""
    return await _decide_held(wire, id, "drop", reason, idempotency_key)


async def _decide_held(wire: Wire, id: str, verb: str, reason: str | None, idempotency_key: str | None) -> DecidedHeld:
    body = {} if reason is None else {"reason": reason}
    return await wire.write("POST", f"{MEMORY}/held/{segment(id)}/{verb}", body, idempotency_key=idempotency_key)


async def memory_health(wire: Wire) -> MemoryHealth:
    """How the memories are that the caller sees: all and by layer, how sure, expired, conflicting, promoted, unused."""
    return await wire.read(f"{MEMORY}/health")


async def clean_memories(wire: Wire, *, dry_run: bool = True) -> Cleaned:
    """Retire the caller's expired memories, or only name them; `restore` brings one back."""
    return await wire.write("POST", f"{MEMORY}/clean", {"dry_run": dry_run})


class MemoryEndpoints:
    """Memories: items with a layer."""

    remember = Endpoint(remember)
    memory = Endpoint(memory)
    memories = Endpoint(memories)
    confirm = Endpoint(confirm)
    approve = Endpoint(approve)
    reject = Endpoint(reject)
    held_statements = Endpoint(held_statements)
    release_statement = Endpoint(release_statement)
    drop_statement = Endpoint(drop_statement)
    memory_health = Endpoint(memory_health)
    clean_memories = Endpoint(clean_memories)

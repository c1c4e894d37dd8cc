"""Requests about models' work on knowledge: evolve, extract, conflicts, reverts.

A call that has a model work waits up to `wait` seconds for the outcome; its `status` says whether there is one yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import KNOWLEDGE
from kledger.client.wire import Wire, segment, without_none
from kledger.contract.errors import InvalidPayload
from kledger.contract.words import ConflictStatus, EvolutionStatus, ExtractionKind

if TYPE_CHECKING:
    from kledger.answers.knowledge import Evolving
    from kledger.answers.models import (
        Conflict,
        ConflictList,
        DecidedEvolution,
        Evolution,
        EvolutionList,
        Extraction,
        ExtractionList,
        Resolved,
        Reverted,
    )

EVOLUTIONS, EXTRACTIONS, CONFLICTS = "/api/evolutions", "/api/extractions", "/api/conflicts"
WAIT = 25.0
"""Seconds; below those after which a client gives a request up."""


async def evolve(
    wire: Wire,
    id: str,
    feedback: str,
    *,
    dry_run: bool = False,
    model: str | None = None,
    wait: float = WAIT,
    idempotency_key: str | None = None,
) -> Evolving:
    """Have a model rewrite an item in the light of `feedback`. Only the owner may (NotOwner).

    With `dry_run` the rewrite stays a proposal, to be applied or rejected. NotAvailable where no model is configured.
    """
    body = {"evolve_feedback": feedback, "evolve_dry_run": dry_run} | ({} if model is None else {"evolve_model": model})
    return await wire.write(
        "PUT", f"{KNOWLEDGE}/{segment(id)}", body, params={"wait": wait}, idempotency_key=idempotency_key
    )


async def revert(
    wire: Wire,
    id: str,
    to_version: int,
    *,
    expected_version: int | None = None,
    idempotency_key: str | None = None,
) -> Reverted:
    """Make an item again what it was at an earlier version. Only the owner may (NotOwner)."""
    body = {"to_version": to_version, "expected_version": expected_version}
    return await wire.write("POST", f"{KNOWLEDGE}/{segment(id)}/revert", body, idempotency_key=idempotency_key)


async def evolution(wire: Wire, id: str) -> Evolution:
    """One evolution: asked for, proposed, and what became of it. UnknownProcess when it is not the caller's."""
    return await wire.look(f"{EVOLUTIONS}/{segment(id)}")


async def evolutions(
    wire: Wire, *, item_id: str | None = None, status: EvolutionStatus | None = None, limit: int = 20, offset: int = 0
) -> EvolutionList:
    """The evolutions that the caller asked for, newest first."""
    params = {"item_id": item_id, "status": status, "limit": limit, "offset": offset}
    return await wire.read(EVOLUTIONS, params)


async def apply_evolution(wire: Wire, id: str, *, idempotency_key: str | None = None) -> DecidedEvolution:
    """Make a proposal the item's content. VersionConflict when the item has changed since."""
    return await _decided(wire, id, "apply", None, idempotency_key)


async def reject_evolution(
    wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> DecidedEvolution:
    """Keep the item as it is."""
    return await _decided(wire, id, "reject", reason, idempotency_key)


async def revert_evolution(wire: Wire, id: str, *, idempotency_key: str | None = None) -> DecidedEvolution:
    """Make the item again what it was before. VersionConflict when it has changed since."""
    return await _decided(wire, id, "revert", None, idempotency_key)


async def extract(
    wire: Wire,
    text: str | None = None,
    *,
    messages: Sequence[Mapping[str, Any]] | None = None,
    kind: ExtractionKind = "statement",
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    model: str | None = None,
    wait: float = WAIT,
    idempotency_key: str | None = None,
) -> Extraction:
    """Have a model find the knowledge in a text, or in messages `{"id","role","content"}`, and keep it.

    What is known already is confirmed, what contradicts it is kept as a conflict. NotAvailable without a model.
    """
    if (text is None) == (messages is None):
        raise InvalidPayload("give a text or messages to find knowledge in, one of the two")
    body = {"kind": kind} | without_none(text=text, messages=messages, scopes=scopes, owner=owner, model=model)
    return await wire.write(
        "POST", f"{KNOWLEDGE}/extract", body, params={"wait": wait}, idempotency_key=idempotency_key
    )


async def extraction(wire: Wire, id: str) -> Extraction:
    """One extraction: what became of each piece of knowledge. UnknownProcess when it is not the caller's."""
    return await wire.look(f"{EXTRACTIONS}/{segment(id)}")


async def extractions(wire: Wire, *, status: str | None = None, limit: int = 20, offset: int = 0) -> ExtractionList:
    """The extractions that the caller asked for, those of its sessions included, newest first.

    `status` is requested, started, completed or failed.
    """
    return await wire.read(EXTRACTIONS, {"status": status, "limit": limit, "offset": offset})


async def conflict(wire: Wire, id: str) -> Conflict:
    """One conflict, with both sides. UnknownProcess when it is not the caller's."""
    return await wire.look(f"{CONFLICTS}/{segment(id)}")


async def conflicts(
    wire: Wire,
    *,
    status: ConflictStatus | None = "recorded",
    item_id: str | None = None,
    limit: int = 20,
    offset: int = 0,
) -> ConflictList:
    """What contradicts what, newest first, as far as it is the caller's to decide."""
    params = {"status": status, "item_id": item_id, "limit": limit, "offset": offset}
    return await wire.read(CONFLICTS, params)


async def resolve_conflict(
    wire: Wire,
    id: str,
    winner: str | None,
    *,
    merge: Mapping[str, str] | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Resolved:
    """Decide which side holds (None: both do); the other one is retired when it is the caller's.

    With `merge` (`content`, perhaps `task`) the winner says that from now on. `revert` takes it back, `restore` brings
    the other side back.
    """
    body: dict[str, object] = {"winner": winner, "reason": reason}
    if merge is not None:
        body["merge"] = dict(merge)
    return await wire.write("POST", f"{CONFLICTS}/{segment(id)}/resolve", body, idempotency_key=idempotency_key)


async def _decided(wire: Wire, id: str, what: str, reason: str | None, key: str | None) -> DecidedEvolution:
    return await wire.write(
        "POST", f"{EVOLUTIONS}/{segment(id)}/{what}", params={"reason": reason}, idempotency_key=key
    )


class EvolutionEndpoints:
    """The work of models on knowledge."""

    evolve = Endpoint(evolve)
    evolution = Endpoint(evolution)
    evolutions = Endpoint(evolutions)
    apply_evolution = Endpoint(apply_evolution)
    reject_evolution = Endpoint(reject_evolution)
    revert_evolution = Endpoint(revert_evolution)
    revert = Endpoint(revert)
    extract = Endpoint(extract)
    extraction = Endpoint(extraction)
    extractions = Endpoint(extractions)
    conflict = Endpoint(conflict)
    conflicts = Endpoint(conflicts)
    resolve_conflict = Endpoint(resolve_conflict)

"""Tools for memories: recall for a message, remember, confirm, list, and decide on what waits."""

from __future__ import annotations

from kledger.answers.memory import (
    Confirmed,
    DecidedHeld,
    DecidedProposal,
    HeldList,
    MemoryHealth,
    MemoryList,
    Remembered,
)
from kledger.answers.recall import Recalled
from kledger.client import memory, recall
from kledger.client.tools import arguments as given
from kledger.client.tools.defaults import AGENT, default_owner, default_scopes
from kledger.client.tools.hints import tool
from kledger.client.wire import Wire
from kledger.contract.projects import is_shared_kind


@tool("Recall for a message", reads=True, answers=Recalled)
async def memory_recall(
    wire: Wire,
    message: given.Message,
    session_id: given.OneSession = "",
    target_agent: given.TargetAgent = "",
    top_k: given.TopK = 5,
    budget_tokens: given.Budget = None,
    language: given.Language = None,
) -> Recalled:
    """Before you answer a message, ask what is known of it: memories of all layers, shared memory, documents.

    `text` is all of it to put into the prompt. `nothing_known` true: nothing answers; say so, or research. State the
    session_id, so that what its context holds is left out; target_agent asks what another agent knows.
    """
    return await recall.recall(
        wire,
        message,
        session=session_id or None,
        target_agent=target_agent or None,
        top_k=top_k,
        budget_tokens=budget_tokens,
        language=language,
    )


@tool("Remember")
async def memory_save(
    wire: Wire,
    layer: given.Layer = "semantic",
    content: given.MemoryContent = "",
    task: given.MemoryTask = "",
    kind: given.Kind = "",
    importance: given.Share = None,
    confidence: given.Share = None,
    category: given.Category = "",
    event: given.Event = "",
    outcome: given.Outcome = "",
    participants: given.Participants = None,
    artifacts: given.Artifacts = None,
    happened_at: given.HappenedAt = "",
    name: given.Name = "",
    trigger: given.Trigger = "",
    steps: given.Steps = None,
    tags: given.Words = None,
    related: given.RelatedIds = None,
    session: given.FromSession = "",
    scopes: given.Scopes = None,
    owner: given.Owner = None,
    message_id: given.MessageId = "",
    supersedes: given.Supersedes = "",
    lifetime: given.Lifetime = None,
) -> Remembered:
    """Remember something: `short` what matters this week (a preference, a decision, a follow-up, a mood), `semantic` a
    fact, `episodic` what happened, `procedural` how something is done.

    It is an item like all others: search finds it, feedback counts. One thing a memory. What your project shares
    (`kind` project_context, adr, convention, known_issue, user_preference) is proposed: a coordinator approves it.
    """
    return await memory.remember(
        wire,
        content or None,
        layer,
        task=task or None,
        kind=kind or None,
        importance=importance,
        confidence=confidence,
        category=category or None,
        event=event or None,
        outcome=outcome or None,
        participants=participants,
        artifacts=artifacts,
        happened_at=happened_at or None,
        name=name or None,
        trigger=trigger or None,
        steps=steps,
        tags=tags,
        related=related,
        session=session or None,
        scopes=scopes or (None if is_shared_kind(kind) and wire.caller.project else default_scopes()),
        owner=owner or default_owner(wire.caller.agent or AGENT),
        message_id=message_id or None,
        supersedes=supersedes or None,
        lifetime=lifetime,
    )


@tool("Confirm a memory")
async def memory_confirm(wire: Wire, memory_id: given.MemoryId, reason: given.ConfirmReason = "") -> Confirmed:
    """Say that a memory holds, for instance when your user says "remember this": a short memory stays for good then."""
    return await memory.confirm(wire, memory_id, case={"reason": reason} if reason else None)


@tool("List memories", reads=True)
async def memory_list(
    wire: Wire,
    layer: given.OnlyLayer = None,
    kind: given.OnlyKind = "",
    status: given.WithStatus = "active",
    limit: given.Limit = 10,
    next: given.Next = None,
    since: given.Since = "",
    until: given.Until = "",
    tags: given.OnlyTags = None,
) -> MemoryList:
    """Memories by when they happened, the latest first. With `status` proposed: what waits for you in the projects that
    you coordinate, and what you have proposed."""
    return await memory.memories(
        wire,
        layers=[layer] if layer else None,
        kinds=[kind] if kind else None,
        since=since or None,
        until=until or None,
        tags=tags,
        status=status,
        limit=limit,
        offset=next or 0,
    )


@tool("Decide on a proposal")
async def memory_review(
    wire: Wire,
    memory_id: given.MemoryId,
    decision: given.Decision,
    reason: given.ReviewReason = "",
    expected_version: given.ReadVersion = None,
) -> DecidedProposal:
    """Approve or reject what somebody proposes for the shared memory of a project that you coordinate."""
    decide = memory.approve if decision == "approve" else memory.reject
    return await decide(wire, memory_id, expected_version=expected_version, reason=reason or None)


@tool("List what is held back", reads=True)
async def memory_held(wire: Wire, limit: given.Limit = 10, next: given.Next = None) -> HeldList:
    """What an import, an extraction or a document said again although a person had retired or corrected it: it is not
    saved. Show it to your user, who decides."""
    return await memory.held_statements(wire, limit=limit, offset=next or 0)


@tool("Decide on what is held back")
async def memory_held_decide(
    wire: Wire, held_id: given.HeldId, decision: given.HeldDecision, reason: given.HeldReason = ""
) -> DecidedHeld:
    """Save what is held back as it was stated (release), or never (drop), as your user said: they had given it up."""
    decide = memory.release_statement if decision == "release" else memory.drop_statement
    return await decide(wire, held_id, reason=reason or None)


@tool("See how your memories are", reads=True)
async def memory_health(wire: Wire) -> MemoryHealth:
    """How many memories there are of each layer, how sure they are, and which need a look: expired, in conflict,
    promoted, never recalled."""
    return await memory.memory_health(wire)

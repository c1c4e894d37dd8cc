"""Tools for single items: read one, put right what is one's own, see where it came from, find some in what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kledger.answers.knowledge import Changed, WholeItem
from kledger.answers.lineage import LineageOf
from kledger.answers.models import Extraction
from kledger.answers.parts import Moved
from kledger.client import evolutions, knowledge
from kledger.client.tools import arguments as given
from kledger.client.tools.hints import tool
from kledger.client.wire import Wire


@tool("Read one item", reads=True)
async def knowledge_read(wire: Wire, knowledge_id: given.KnowledgeId) -> WholeItem:
    """Read one item whole by its id: its status, its source, and the cases in which it helped or harmed."""
    return await knowledge.get(wire, knowledge_id)


@tool("Correct an item of yours")
async def knowledge_revise(
    wire: Wire,
    knowledge_id: given.KnowledgeId,
    task: given.NewTask = "",
    content: given.NewContent = "",
    types: given.NewTypes = None,
    tags: given.NewTags = None,
    scopes: given.NewScopes = None,
    reason: given.RevisionReason = "",
    expected_version: given.ReadVersion = None,
) -> Changed:
    """State anew what an item of yours says, when you know better. What you leave out stays as it is.

    The earlier version stays readable. Of an item that is another's, say with knowledge_update what came of it.
    """
    return await knowledge.revise(
        wire,
        knowledge_id,
        task=task or None,
        content=content or None,
        types=types,
        tags=tags,
        scopes=scopes,
        reason=reason or None,
        expected_version=expected_version,
    )


@tool("Retire an item of yours", hides=True)
async def knowledge_retire(
    wire: Wire,
    knowledge_id: given.KnowledgeId,
    reason: given.RetirementReason = "",
    expected_version: given.ReadVersion = None,
) -> Moved:
    """Take an item of yours out of recall: it does not hold any more, or your user wants it gone.

    It stays readable by its id, and its owner can restore it. What a person wants erased for good is forgotten by the
    operator.
    """
    return await knowledge.retire(wire, knowledge_id, expected_version=expected_version, reason=reason or None)


@tool("See where something came from", reads=True)
async def knowledge_lineage(wire: Wire, ref: given.Ref) -> LineageOf:
    """Where an item came from and what came of it: its messages and traces, the events that made it, its recalls.

    Of `trace:ID` or `message:ID`: everything that it caused.
    """
    return await knowledge.lineage(wire, ref)


@tool("Find knowledge in what was said")
async def knowledge_extract(
    wire: Wire,
    text: given.Material = "",
    conversation: given.Conversation = None,
    kind: given.OfMaterial = "statement",
    scopes: given.ExtractedScopes = None,
) -> Extraction:
    """Have a model find what is worth keeping in a text or in messages, and keep it: after a task, when your user told
    you something of themselves, when they judged a result, before messages are dropped.

    What is known already is confirmed, what contradicts it is kept as a conflict. The node needs a model for it;
    without one, keep what you learned with knowledge_save.
    """
    said: Sequence[Mapping[str, Any]] | None = conversation
    return await evolutions.extract(wire, text or None, messages=said, kind=kind, scopes=scopes)

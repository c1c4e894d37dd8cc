"""When is a case the one that was stated before? Then it has the event id that it had, and counts once.

A case that says when or where it happened (a timestamp, a trace, a message) happened once: the same actor stating it
again of the same item, in the same words, repeats itself, with or without a key. A case that says neither may happen
any number of times.
"""

from __future__ import annotations

import uuid

import orjson

from ledger.event import Lineage
from ledger.events.knowledge import KnowledgeRated
from producers.operations.publish import NAMESPACE

_WORDS = ("task", "query", "outcome", "reason")


def case_event_id(org: str, item_id: str, actor: str, verdict: KnowledgeRated, lineage: Lineage) -> str | None:
    """The event id that follows from a case; None for a case that may happen again.

    Trace and message of the request tell a case apart where the case has no time or trace of its own, and words.
    """
    case = verdict.case
    around = None
    if case.timestamp is None and case.trace_id is None and case.message_id is None:
        around = (lineage.trace_id, lineage.message_id)
        if around == (None, None) or not any(getattr(case, name) for name in _WORDS):
            return None
    said = [org, item_id, actor, verdict.verdict, case.model_dump(exclude_none=True), around]
    return str(uuid.uuid5(NAMESPACE, orjson.dumps(said).decode()))

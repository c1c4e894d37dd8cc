"""Event ids of cases that count once.

A case with a time or place (a timestamp, a trace, a message) happened once: when the same actor rates the same item
with it again, in the same words, it is a duplicate, with or without an Idempotency-Key. A case with neither may happen
any number of times.
"""

from __future__ import annotations

import orjson

from ledger.event import Lineage
from ledger.events.knowledge import KnowledgeRated
from ledger.named_ids import named_id
from producers.operations.publish import NAMESPACE

_WORDS = ("task", "query", "outcome", "reason")


def case_event_id(org: str, item_id: str, actor: str, verdict: KnowledgeRated, lineage: Lineage) -> str | None:
    """The event id derived from a case; None for a case that may happen again.

    Where a case has words but no time or trace of its own, trace and message of the request identify it.
    """
    case = verdict.case
    around = None
    if case.timestamp is None and case.trace_id is None and case.message_id is None:
        around = (lineage.trace_id, lineage.message_id)
        if around == (None, None) or not any(getattr(case, name) for name in _WORDS):
            return None
    stated = orjson.Fragment(case.__pydantic_serializer__.to_json(case, exclude_none=True))
    return named_id(NAMESPACE, orjson.dumps((org, item_id, actor, verdict.verdict, stated, around)))

"""First cases: verdicts that come with an imported item, published as the first ratings of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kledger.contract.errors import InvalidPayload
from kledger.contract.knowledge import Case
from kledger.contract.words import Verdict
from kledger.requests.knowledge import EvalBody, SaveRequest
from ledger import new_item
from ledger.event import NO_LINEAGE, NewEvent
from ledger.events.knowledge import KnowledgeRated
from ledger.named_ids import named_id
from producers.operations.publish import NAMESPACE, lifted, refuse_unkeepable
from producers.operations.same_case import case_event_id

VERDICTS: tuple[Verdict, ...] = ("helpful", "harmful")
_BEGINS = {"helpful": new_item.HELPFUL, "harmful": new_item.HARMFUL}


def before_cases(evaluation: EvalBody, verdict: Verdict) -> int:
    """How often an item helped or harmed besides the cases of its history, which are counted one by one.

    A count in the payload is the total. Raises InvalidPayload where it is less than the number of cases.
    """
    count, cases = getattr(evaluation, verdict), len(evaluation.history(verdict))
    if count is None:
        return _BEGINS[verdict]
    if count < cases:
        raise InvalidPayload(
            f"eval.{verdict} is {count}, and {verdict}_history has {cases} cases: state how often it was so in all, or "
            "leave the count out",
            errors=[{"field": f"eval.{verdict}", "reason": f"is less than the {cases} cases of its history"}],
        )
    return int(count) - cases


def refuse_cases(payload: SaveRequest) -> None:
    """Raise InvalidPayload where a save outside an import has cases: each is rated by whom it happened to."""
    if payload.eval is None:
        return
    errors = [
        {"field": f"eval.{verdict}_history", "reason": "has cases, which an import takes"}
        for verdict in VERDICTS
        if payload.eval.history(verdict)
    ]
    if errors:
        raise InvalidPayload(
            f"{' and '.join(each['field'] for each in errors)}: the cases of an item are taken when it is imported "
            "(kledger import, /api/knowledge/batch); save this one without them, and add each case with "
            "add_helpful_case or add_harmful_case",
            errors=errors,
        )


def first_cases(payload: SaveRequest) -> list[KnowledgeRated]:
    """The cases of a payload, the helpful ones first, rated by the owner of the item. Raises InvalidPayload."""
    if payload.eval is None:
        return []
    ratings = [
        KnowledgeRated(verdict=verdict, case=Case(**case.model_dump(include=set(Case.model_fields))))
        for verdict in VERDICTS
        for case in payload.eval.history(verdict)
    ]
    for fact in ratings:
        refuse_unkeepable(fact)
    return ratings


def with_its_cases(event: NewEvent, cases: Sequence[KnowledgeRated]) -> list[NewEvent]:
    """The rating events of the item that `event` saves; they are appended in the same atomic batch.

    A case with a time, trace or message counts once, as everywhere (same_case.py).
    """
    by_id: dict[str, NewEvent] = {}
    for number, fact in enumerate(cases):
        own_id = case_event_id(event.org, event.entity_id, event.actor, fact, NO_LINEAGE)
        own_id = own_id or named_id(NAMESPACE, f"{event.id}\ncase {number}")
        rating = fact.model_copy(update={"through": event.actor})
        lineage = lifted(event.lineage, fact.case)
        by_id.setdefault(own_id, replace(event, fact=rating, id=own_id, expects=None, lineage=lineage))
    return list(by_id.values())

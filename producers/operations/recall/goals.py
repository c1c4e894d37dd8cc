"""Goals of agents: focused with a search, and read with the knowledge that was injected.

A focus publishes two events in one atomic batch: what was found for the goal, and the recall that served it. A goal
belongs to whoever focused it. It never shows an item that its reader may not see now.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from kledger.contract.bounds import NewId
from kledger.contract.errors import Erased, UnknownGoal, ViewBehind
from kledger.contract.language import ENGLISH, Language
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import FocusRequest
from ledger import one_answer
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.goal import GoalFocused, goal_entity_id
from ledger.events.recall import RecallServed
from producers.operations.desk import ANY, Desk, Freshness, first_entity, reach
from producers.operations.outcomes import part_of_list
from producers.operations.publish import event_id, publish
from producers.operations.recall.later import with_later_first
from producers.operations.recall.search import search
from producers.operations.recall.served import recall_event
from producers.operations.stated_before import earlier_event
from producers.requests.reading import refusal
from projections.overview.goals import goals
from projections.search.prompt.said_once import found_once, said_once
from projections.search.prompt.section import WORDS, goal_text, knowledge_section
from projections.views.goals import ask
from projections.views.lineage import ask as events

_GOAL_ID: TypeAdapter[str] = TypeAdapter(NewId)
_OF_LAST_FOCUS = ("focuses", "created_at", "focused_at", "recall_id", "trace_id", "message_id", "position")
CATCH_UP = 2.0
"""Seconds that a focus waits for the head of the log; after that it uses what the view has."""


async def focus(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    goal_id: str,
    payload: FocusRequest,
    retry: uuid.UUID | None = None,
    *,
    language: Language = ENGLISH,
    freshness: Freshness = ANY,
) -> JsonObject:
    """Focus a goal (FocusedGoal): inject knowledge that matches its description; repeating it adds what is new.

    Raises InvalidPayload, IllegalSubject, PayloadTooLarge, SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    try:
        _GOAL_ID.validate_python(goal_id)
    except ValidationError as error:
        raise refusal(error.errors(include_url=False, include_input=False), "the id of the goal") from error
    owner = first_entity(caller)
    own_id = event_id(retry)
    fields = {"goal_id": goal_id, "description": payload.description}
    if retry is not None and await earlier_event(desk, [owner], own_id, fields) is not None:
        before = await _kept(desk, caller, owner, goal_id, own_id, language)
        if before is not None:
            return before
    await _wait_for_head(desk, freshness)

    async def found(most: int) -> tuple[list[JsonObject], int]:
        recalled = await search(
            desk,
            caller,
            lineage,
            payload.description,
            top_k=most,
            min_score=payload.min_score,
            min_match=payload.min_match,
            record=False,
            as_ranked=True,
            freshness=freshness,
        )
        return recalled["results"], recalled["position"]

    items, reached = await found_once(found, payload.top_k)
    items = await with_later_first(desk, items)
    recall = recall_event(
        desk,
        caller,
        lineage,
        "focus",
        payload.description,
        items,
        reached,
        retry,
        language=language,
    )
    assert isinstance(recall.fact, RecallServed)  # this is what recall_event makes
    fact = GoalFocused(
        goal_id=goal_id,
        owner=owner,
        description=payload.description,
        items=recall.fact.items,
        recall=recall.entity_id,
    )
    caused = lineage if lineage.causation_id else replace(lineage, causation_id=recall.id)
    event = NewEvent(fact, goal_entity_id(owner, goal_id), owner, desk.org, caused, id=own_id)
    appended = await publish(desk.ledger, desk.tally, [recall, event])
    if appended[-1].duplicate:
        await desk.view.wait_for(appended[-1].position)
        if (before := await _kept(desk, caller, owner, goal_id, own_id, language)) is not None:
            return before
    return _focused(caller, fact, items, own_id, appended[-1].position, language)


async def _wait_for_head(desk: Desk, freshness: Freshness) -> None:
    """Wait up to CATCH_UP seconds for the current head of the log, unless the request names a position."""
    if freshness.min_position:
        return
    head = (await desk.ledger.head()).position
    with contextlib.suppress(ViewBehind):
        await desk.view.wait_for(head, CATCH_UP)
        await desk.searcher.wait_for(head, CATCH_UP)


async def _kept(
    desk: Desk, caller: Caller, owner: str, goal_id: str, own_id: str, language: Language
) -> JsonObject | None:
    """The answer to a focus that is in the log already."""
    if own_id not in await desk.view.ask(events.kept_events, desk.org, [owner], [own_id]):
        return None
    goal = await desk.view.ask(ask.goal, desk.org, [owner], goal_id, own_id)
    if goal is None:
        return None
    items, _ = await desk.view.ask(ask.shown_items, desk.org, caller, goal)
    fact = GoalFocused(goal_id=goal_id, owner=owner, description=goal.description, recall=goal.recall_id)
    return _focused(caller, fact, items, own_id, goal.position, language)


def _focused(
    caller: Caller, fact: GoalFocused, items: list[JsonObject], own_id: str, position: int, language: Language
) -> JsonObject:
    return {
        "title": WORDS[language].focused,
        "output": goal_text(fact.description, said_once(items), language, caller.person()),
        "metadata": {"items": one_answer.with_room(items)},
        "goal_id": fact.goal_id,
        "owner": fact.owner,
        "description": fact.description,
        "count": len(items),
        "recall_id": fact.recall,
        "event_id": own_id,
        "position": position,
    }


async def listed(
    desk: Desk,
    caller: Caller,
    *,
    owner: str | None = None,
    limit: int = 20,
    offset: int = 0,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The goals of the caller in brief (GoalList), the one that was focused last first.

    The operator's are those of all, unless an `owner` is named. Raises ViewBehind.
    """
    await reach(desk, freshness)
    position = desk.view.position
    owners: list[str] | None = [each for each in caller.reading_as() if owner in (None, each)]
    if caller.is_operator:
        owners = None if owner is None else [owner]
    found, total = await desk.view.ask(goals, desk.org, owners, limit, offset)
    return part_of_list(found, total, limit, offset, position)


async def goal(
    desk: Desk,
    caller: Caller,
    goal_id: str,
    *,
    owner: str | None = None,
    language: Language = ENGLISH,
    freshness: Freshness = ANY,
) -> JsonObject:
    """A goal of the caller (Goal), as of its last focus. The operator reads any goal by naming the `owner`.

    Without `owner` it is the caller's own, the most specific identity first. Raises UnknownGoal, Erased, ViewBehind.
    """
    await reach(desk, freshness)
    owners = [owner] if owner is not None else caller.reading_as()
    shown = None
    if all(caller.may_act_for(each) for each in owners):
        shown = await desk.view.ask(ask.goal, desk.org, owners, goal_id)
    if shown is None:
        raise UnknownGoal(
            f"there is no goal {goal_id[:200]!r} of yours: focus it first, or check the id and as whom you ask",
            id=goal_id,
        )
    if shown.erased:
        raise Erased(f"what {goal_id} said was erased with the person it belonged to", id=goal_id)
    items, left_out = await desk.view.ask(ask.shown_items, desk.org, caller, shown)
    return {
        "goal_id": goal_id,
        "owner": shown.owner,
        "description": shown.description,
        "knowledge": one_answer.with_room(items),
        "section": knowledge_section(said_once(items), language, caller.person()),
        "left_out": left_out,
        **{name: getattr(shown, name) for name in _OF_LAST_FOCUS},
    }

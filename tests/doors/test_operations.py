"""What every door binds, asked directly: who acts, what is lifted, what is recorded, what is kept once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing

import orjson
import pytest

from kledger.contract.errors import InvalidPayload, VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import FeedbackRequest, SaveManyRequest, SaveRequest, SourceBody, UpdateRequest
from ledger.event import NO_LINEAGE, JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved
from producers.operations import feedback
from producers.operations.bulk import importing
from producers.operations.knowledge import changes, saving, verdicts
from producers.operations.profiles import reading as profiles
from producers.operations.profiles.changes import patch
from producers.operations.publish import event_id, lifted, refuse_unkeepable
from producers.operations.recall import search as recall
from projections.views.profiles.merge_patch import merge_patch
from tests.doors.live_desk import LiveDesk, live_desk

ALICE = Caller(user="alice", agent="writer", team="frontend")
OPERATOR = Caller()


@pytest.fixture
async def desk() -> AsyncIterator[LiveDesk]:
    async with live_desk() as opened:
        yield opened


async def envelopes(desk: LiveDesk) -> list[JsonObject]:
    """Everything in the log, in order."""
    return [orjson.loads(event.body) async for events in desk.ledger.read() for event in events]


def payload(**fields: object) -> SaveRequest:
    return SaveRequest.model_validate({"task": "t", "content": "c", "type": "tool", **fields})


@pytest.mark.parametrize(
    ("caller", "fields", "owner"),
    [
        (ALICE, {}, "user:alice"),
        (Caller(team="frontend", agent="writer"), {}, "agent:writer"),
        (ALICE, {"owner": "team:frontend"}, "team:frontend"),
        (OPERATOR, {"source": {"agent_id": "importer"}}, "agent:importer"),
        (OPERATOR, {}, "user:local"),
        (OPERATOR, {"owner": "org:anybody"}, "org:anybody"),
    ],
)
async def test_the_owner_states_a_save(desk: LiveDesk, caller: Caller, fields: JsonObject, owner: str) -> None:
    await saving.save(desk, caller, NO_LINEAGE, payload(**fields))
    (envelope,) = await envelopes(desk)
    assert (envelope["actor"], envelope["data"]["owner"], envelope["data"]["scopes"]) == (owner, owner, [owner])


async def test_whoever_rates_does_it_as_themselves_and_the_owner_revises(desk: LiveDesk) -> None:
    saved = await saving.save(desk, ALICE, NO_LINEAGE, payload(owner="team:frontend", scopes=["public"]))
    both = UpdateRequest.model_validate({"content": "new", "update_score": 5, "add_helpful_case": {}})
    await feedback.update(desk, ALICE, NO_LINEAGE, saved["id"], both)
    await feedback.update(desk, OPERATOR, NO_LINEAGE, saved["id"], UpdateRequest(update_score=4))
    told = [(envelope["type"], envelope["actor"]) for envelope in await envelopes(desk)]
    assert told == [
        ("knowledge.saved", "team:frontend"),
        ("knowledge.revised", "team:frontend"),
        ("knowledge.scored", "user:alice"),
        ("knowledge.rated", "user:alice"),
        ("knowledge.scored", "user:local"),
    ]


async def test_a_recall_says_what_was_served_to_whom_out_of_which_state(desk: LiveDesk) -> None:
    saved = await saving.save(desk, ALICE, NO_LINEAGE, payload())
    await desk.view.wait_for(saved["position"])
    answer = await recall.search(desk, ALICE, Lineage(trace_id="T"), "c")
    envelope = (await envelopes(desk))[-1]
    assert envelope["subject"] == f"recall/{answer['recall_id']}"
    assert (envelope["actor"], envelope["traceid"]) == ("user:alice", "T")
    assert envelope["data"] == {
        "kind": "search",
        "query": "c",
        "visible_scopes": ["user:alice", "agent:writer", "team:frontend", "public"],
        "items": [{"id": saved["id"], "version": 1, "relevance": 1.0}],
        "view_position": saved["position"],
        "ranking": {"policy": "containing", "matches": [1.0], "session": None, "language": None, "intent": None},
    }


async def test_before_the_first_event_there_is_nothing_to_find(desk: LiveDesk) -> None:
    await saving.save(desk, ALICE, NO_LINEAGE, payload())
    answer = await recall.search(desk, ALICE, NO_LINEAGE, "c", as_of=0, record=False)
    assert (answer["results"], answer["position"]) == ([], 0)


def test_the_doors_lineage_wins_and_what_is_too_long_for_an_envelope_stays_where_it_was() -> None:
    source = SourceBody(trace_id="of the source", message_id="m" * 600)
    assert lifted(NO_LINEAGE, source) == Lineage(trace_id="of the source")
    assert lifted(Lineage(trace_id="of the door"), source).trace_id == "of the door"
    assert lifted(NO_LINEAGE, source, trace_id="of the payload").trace_id == "of the payload"


def test_a_nul_character_is_refused_and_the_text_that_looks_like_one_is_not() -> None:
    refuse_unkeepable(KnowledgeSaved(types=["tool"], task=r"\u0000", content="c", scopes=["public"], owner="user:a"))
    with pytest.raises(InvalidPayload, match=r"task holds a NUL"):
        refuse_unkeepable(KnowledgeSaved(types=["tool"], task="a\0", content="c", scopes=["public"], owner="user:a"))


def test_event_ids_follow_from_the_key_alone() -> None:
    key = uuid.uuid4()
    assert event_id(key, 1) == event_id(key, 1) != event_id(key, 2)
    assert event_id(None) != event_id(None)


async def test_an_import_larger_than_a_slice_is_kept_in_order_and_once(desk: LiveDesk) -> None:
    items = [{"task": "t", "content": f"c {n}", "type": "tool"} for n in range(700)]
    told = await importing.save_many(desk, ALICE, NO_LINEAGE, SaveManyRequest(items=items))
    assert [outcome["position"] for outcome in told["results"]] == list(range(1, 701))
    assert len({outcome["id"] for outcome in told["results"]}) == 700
    again = await importing.save_many(desk, ALICE, NO_LINEAGE, SaveManyRequest(items=items[::-1]))
    assert (again["saved"], again["unchanged"]) == (0, 700)
    assert desk.tally.appended == {"knowledge.saved": 700}


async def test_one_taken_id_does_not_hold_up_what_came_with_it(desk: LiveDesk) -> None:
    async with desk.projector.paused():  # the view knows nothing of it yet
        await saving.save(desk, OPERATOR, NO_LINEAGE, payload(id="k-300", content="other"))
        items = [{"id": f"k-{n}", "task": "t", "content": "c", "type": "tool"} for n in range(400)]
        request = SaveManyRequest(items=items)
        under_way = asyncio.create_task(importing.save_many(desk, OPERATOR, NO_LINEAGE, request))
        async with aclosing(desk.ledger.read(follow=True)) as log:
            async for kept in log:
                if kept[-1].position >= 251:  # its first slice is kept, the second is not
                    break
    told = await under_way
    assert (told["saved"], told["refused"]) == (399, 1)
    assert told["results"][300]["error"] is not None
    assert told["results"][300]["error"]["code"] == "knowledge_exists"


async def test_a_batch_of_verdicts_with_a_key_counts_once(desk: LiveDesk) -> None:
    saved = await saving.save(desk, ALICE, NO_LINEAGE, payload(scopes=["public"]))
    request = FeedbackRequest(feedback_list=[{"knowledge_id": saved["id"], "is_helpful": True}] * 3)
    key = uuid.uuid4()
    first = await verdicts.rate_many(desk, ALICE, NO_LINEAGE, request, key)
    again = await verdicts.rate_many(desk, ALICE, NO_LINEAGE, request, key)
    assert (first["updated"], again["updated"]) == (3, 3)
    assert first["position"] == again["position"] == 4
    assert desk.tally.appended["knowledge.rated"] == 3


async def test_whatever_many_say_of_a_user_at_once_is_kept(desk: LiveDesk) -> None:
    """Each patch is of what the one before left, though all were asked before the first was answered."""
    preferences = {"communication_style": "short", "location_preference": "Graz", "work_lifestyle": "early"}
    scheduling = {"notes": "no calls", "meeting_buffer_minutes": 5, "max_meetings_per_day": 3}
    stated: list[JsonObject] = [
        {"occupation": "engineer"},
        {"timezone": "Europe/Vienna"},
        {"primary_language": "de"},
        {"interests": ["chess"]},
        {"avoid_topics": ["politics"]},
        *({"preferences": {name: value}} for name, value in preferences.items()),
        *({"scheduling_preferences": {name: value}} for name, value in scheduling.items()),
    ]
    answers = await asyncio.gather(*(patch(desk, ALICE, NO_LINEAGE, "user", each) for each in stated))
    assert len({each.position for each in answers}) == len(stated)
    last = max(answers, key=lambda each: each.position).content
    for each in stated:
        assert merge_patch(last, each) == last, f"{each} is lost"


async def test_a_writer_that_never_gets_its_turn_is_told_so(desk: LiveDesk) -> None:
    saved = await saving.save(desk, ALICE, NO_LINEAGE, payload())
    plain = desk.ledger.append

    async def append(event: NewEvent) -> object:
        await plain(NewEvent(KnowledgeRated(verdict="helpful"), saved["id"], "user:alice"))
        return await plain(event)

    desk.ledger.append = append  # type: ignore[assignment, method-assign]  # somebody is always faster
    with pytest.raises(VersionConflict, match="try again"):
        await changes.retire(desk, ALICE, NO_LINEAGE, saved["id"])
    desk.ledger.append = plain  # type: ignore[method-assign]
    await desk.view.wait_for((await desk.ledger.head()).position)
    assert not (await profiles.both(desk, ALICE)).begun  # and nothing else was written
    kinds = {envelope["type"] for envelope in await envelopes(desk)}
    assert kinds == {"knowledge.saved", "knowledge.rated"}

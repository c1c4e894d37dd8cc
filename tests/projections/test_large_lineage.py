"""A lineage takes little memory however large its events are, and says where a chain of causes goes on."""

from __future__ import annotations

import duckdb
import pytest

from ledger import one_answer
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved
from projections.fold_kit import page
from projections.views.lineage import ask
from projections.views.lineage.roles import MAX_STEPS, around
from tests.doors.http_door import ALICE, Door, http_door
from tests.doors.live_desk import LiveDesk

SAVED = KnowledgeSaved(types=["tool"], task="t", content="c", scopes=["user:alice"], owner="user:alice")


async def _chain(desk: LiveDesk, length: int) -> list[str]:
    """Items, each saved because of the one before; the ids of their events."""
    ids: list[str] = []
    for number in range(length):
        lineage = Lineage(causation_id=ids[-1]) if ids else Lineage()
        event = NewEvent(SAVED, f"k{number}", "user:alice", lineage=lineage)
        await desk.ledger.append(event)
        ids.append(event.id)
    await desk.view.wait_for((await desk.ledger.head()).position)
    return ids


async def _lineage(door: Door, ref: str) -> tuple[list[str], bool]:
    answer = await door.get("/api/lineage", params={"ref": ref}, headers=ALICE)
    assert answer.is_success, answer.text
    return [event["event_id"] for event in answer.json()["events"]], answer.json().get("more", False)


async def test_a_chain_of_causes_beyond_the_bound_says_that_there_may_be_more_and_goes_on_from_an_event() -> None:
    async with http_door() as door:
        ids = await _chain(door.desk, MAX_STEPS + 10)
        events, more = await _lineage(door, f"k{len(ids) - 1}")
        assert more
        assert events == ids[-MAX_STEPS - 1 :]
        earlier, _ = await _lineage(door, f"event:{events[0]}")
        assert set(ids) == {*events, *earlier}
        later, more = await _lineage(door, "k0")
        assert more
        assert later == ids[: MAX_STEPS + 1]
        assert await _lineage(door, "k5") == (ids[: MAX_STEPS + 6], True)


async def test_a_chain_within_the_bound_is_whole() -> None:
    async with http_door() as door:
        ids = await _chain(door.desk, 5)
        assert await _lineage(door, "k4") == (ids, False)


@pytest.mark.parametrize("ref", ["k1", "event:same"])
def test_events_of_many_actors_with_one_id_that_cause_each_other_are_walked_through_once(ref: str) -> None:
    actors = 50
    with duckdb.connect() as con:
        con.execute(
            f"""
            CREATE TABLE events AS SELECT 'default' AS org, 'knowledge' AS entity, 'k' || i AS entity_id,
                'same' AS event_id, 'knowledge.saved' AS type, i AS position FROM range({actors}) AS t(i);
            CREATE TABLE lineage AS SELECT org, 'caused_by' AS relation, 'event:' || event_id AS ref, position, event_id
                FROM events"""
        )
        walk, values = around("default", ref, "TRUE", [])
        for each in ("up", "down"):
            rows = con.execute(f"{walk} SELECT position FROM {each}", values).fetchall()
            assert len(set(rows)) == actors
            assert len(rows) <= 2 * actors, f"{each} has an event at each step of each way to it"


async def test_events_that_cause_each_other_in_a_circle_are_told_once() -> None:
    async with http_door() as door:
        ids = [f"e{number}" for number in range(3)]
        for number, own in enumerate(ids):
            event = NewEvent(SAVED, f"k{number}", "user:alice", id=own, lineage=Lineage(causation_id=ids[number - 1]))
            await door.desk.ledger.append(event)
        await door.desk.view.wait_for(3)
        for ref in ("k0", "k2", "event:e1"):
            events, more = await _lineage(door, ref)
            assert sorted(events) == ids
            assert more, "a circle has no end"


async def test_what_the_events_say_is_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_FEW", 2)
    monkeypatch.setattr(one_answer, "MOST_BYTES", 10_000)
    read: list[int] = []
    fitting_rows = page.fitting_rows

    def counted(*args: object, **more: object) -> object:
        found = fitting_rows(*args, **more)  # type: ignore[arg-type]
        if args[1] is ask._EVENTS:
            read.append(len(found))
        return found

    monkeypatch.setattr(ask, "fitting_rows", counted)
    async with http_door() as door:
        origin = Lineage(trace_id="t")
        await door.desk.ledger.append(NewEvent(SAVED, "k", "user:alice", lineage=origin))
        for number in range(12):
            revised = KnowledgeRevised(content=f"{number} " + "x" * 3_000)
            await door.desk.ledger.append(NewEvent(revised, "k", "user:alice", lineage=origin))
        await door.desk.view.wait_for(13)
        events, _ = await _lineage(door, "k")
        assert len(events) == 13
        assert max(read) < 6
        assert sum(read) == 13

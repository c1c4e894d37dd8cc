"""How memories are: each number counts what its list shows, of what the caller sees and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from consumers.reactors.lives import GRACE, LifeKeeper
from ledger.event import JsonObject, NewEvent, utc_now
from ledger.events.conflict import ConflictRecorded, ConflictResolved
from ledger.events.recall import RecallServed, ServedItem
from producers.operations.publish import publish_each
from tests.doors.http_door import ALICE, BOB, Door, http_door
from tests.memory.test_short_memories import K, M, keeper, over, read, recall, said
from tests.projections.histories import rows

__all__ = ["keeper"]

SURE: JsonObject = {"id": "sure", "layer": "semantic", "content": "sure", "confidence": 0.9}
UNSURE: JsonObject = {"id": "unsure", "layer": "semantic", "content": "unsure", "confidence": 0.1}
NUMBERS = ("total", "expired", "proposed", "conflicting", "promoted", "never_recalled")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def contradict(door: Door, first: str, second: str, name: str = "conflict-1") -> None:
    fact = ConflictRecorded(first=first, first_version=1, second=second, second_version=1, reason="r")
    await door.desk.ledger.append(NewEvent(fact, name, "user:alice"))
    await door.desk.view.wait_for(await door.head())


async def health(door: Door, who: dict[str, str] = ALICE) -> dict[str, Any]:
    """The numbers, each of which has as many memories in its list."""
    found = await read(door, f"{M}/health", who)
    for name in NUMBERS:
        listed = await read(door, found["lists"][name], who)
        assert listed["total"] == len(listed["results"]) == found[name], name
    return {**{name: found[name] for name in (*NUMBERS, "mean_confidence")}, **found["by_layer"]}


async def test_each_number_has_its_list(door: Door) -> None:
    await said(door, M, SURE)
    await said(door, M, UNSURE)
    await said(door, M, {"layer": "episodic", "event": "calm"})
    await said(door, M, {"kind": "adr", "content": "one service", "scopes": ["project:ledger"]})
    await said(door, M, {"id": "kept", "layer": "short", "kind": "mood", "content": "kept"})
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": "m", "lifetime": 1})
    await said(door, f"{M}/kept/confirm")
    await over(door)
    await contradict(door, "sure", "unsure")
    assert len(await recall(door)) == 1
    found = await health(door)
    layers = {"short": 0, "semantic": 3, "episodic": 1, "procedural": 0}
    assert found.items() >= layers.items()
    assert {name: found[name] for name in NUMBERS} == {
        "total": 4, "expired": 1, "proposed": 1, "conflicting": 2, "promoted": 1, "never_recalled": 3,
    }  # fmt: skip
    confidences = [each["confidence"] for each in (await read(door, M))["results"]]
    assert found["mean_confidence"] == pytest.approx(sum(confidences) / 4)
    view = rows(door.desk.view.instance.con.cursor(), f"SELECT {', '.join(NUMBERS)} FROM memory_health")
    assert view == [tuple(found[name] for name in NUMBERS)]


async def test_a_resolved_conflict_is_counted_no_more(door: Door) -> None:
    await said(door, M, SURE)
    await said(door, M, UNSURE)
    await contradict(door, "sure", "unsure")
    await door.desk.ledger.append(NewEvent(ConflictResolved(), "conflict-1", "user:alice"))
    await door.desk.view.wait_for(await door.head())
    assert (await health(door))["conflicting"] == 0


async def test_nobody_learns_of_memories_or_conflicts_that_they_do_not_see(door: Door) -> None:
    empty = await health(door, BOB)
    assert empty == {**dict.fromkeys(NUMBERS, 0), "mean_confidence": None} | dict.fromkeys(
        ("short", "semantic", "episodic", "procedural"), 0
    )
    await said(door, M, SURE | {"scopes": ["public"]})
    await said(door, M, UNSURE)
    alone = await health(door, BOB)
    await contradict(door, "sure", "unsure")
    assert await health(door, BOB) == alone
    assert (await health(door))["conflicting"] == 2


async def test_cleaning_is_a_preview_first_and_can_be_taken_back(door: Door) -> None:
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": "m", "lifetime": 1})
    await said(door, M, SURE)
    head = await door.head()
    assert (await said(door, f"{M}/clean"))["ids"] == []
    await over(door)
    preview = await said(door, f"{M}/clean")
    assert (preview["dry_run"], preview["ids"], preview["count"], preview["more"]) == (True, ["mood"], 1, False)
    assert (await said(door, f"{M}/clean", {"dry_run": False}, BOB))["ids"] == []
    assert await door.head() == head
    cleaned = await said(door, f"{M}/clean", {"dry_run": False})
    assert (cleaned["dry_run"], cleaned["ids"], cleaned["position"]) == (False, ["mood"], head + 1)
    assert (await health(door))["expired"] == 0
    assert (await read(door, f"{K}/mood"))["status"] == "retired"
    assert (await said(door, f"{M}/clean", {"dry_run": False}))["ids"] == []
    await said(door, f"{K}/mood/restore")
    assert (await read(door, f"{K}/mood"))["status"] == "active"


async def test_cleaning_leaves_alone_what_somebody_brings_back_meanwhile(
    door: Door, keeper: LifeKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mood", "other"):
        await said(door, M, {"id": name, "layer": "short", "kind": "mood", "content": name, "lifetime": 1})
    await over(door)
    assert await keeper.look(utc_now() + 2 * GRACE) == 2
    tries: list[Any] = []

    async def after_a_restore(*args: Any) -> Any:
        if not tries:
            await said(door, f"{K}/mood/restore")
            await said(door, f"{M}/mood/confirm")  # so that it stays, however slow the machine
        tries.append(args)
        return await publish_each(*args)

    monkeypatch.setattr("producers.operations.memory.health.publish_each", after_a_restore)
    assert (await said(door, f"{M}/clean", {"dry_run": False}))["ids"] == ["other"]
    assert (await read(door, f"{K}/mood"))["status"] == "active"
    assert (await read(door, f"{K}/other"))["status"] == "retired"


async def test_a_recall_by_somebody_who_does_not_read_a_memory_is_none(door: Door) -> None:
    await said(door, M, SURE)
    served = [ServedItem(id="sure", version=1, relevance=0.5)]
    for actor in ("user:mallory", "user:alice"):
        fact = RecallServed(query="q", visible_scopes=[actor], items=served, view_position=1)
        await door.desk.ledger.append(NewEvent(fact, f"recall-{actor[5:]}", actor))
        await door.desk.view.wait_for(await door.head())
        assert (await health(door))["never_recalled"] == (actor == "user:mallory")

"""Does the overview count what its lists show, and the days what happened with what the caller sees?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from ledger.event import NewEvent, utc_now
from ledger.events.recall import RecallServed, ServedItem
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.test_health import contradict
from tests.memory.test_short_memories import K, M, over, read, said

OVERVIEW = "/api/overview"
NUMBERS = ("total", "expired", "proposed", "conflicting", "never_recalled")
KINDS = ("saved", "revised", "recalled", "helpful", "harmful")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def overview(door: Door, who: dict[str, str] = ALICE, **asked: Any) -> dict[str, Any]:
    """The overview, each of whose numbers has as many items in its list."""
    await door.desk.view.wait_for(await door.head())
    found = await read(door, OVERVIEW, who, **asked)
    for name in NUMBERS:
        assert (await read(door, found["lists"][name], who))["total"] == found[name], name
    assert sum(found["by_layer"].values()) == found["total"]
    return found


def today(found: dict[str, Any]) -> dict[str, int]:
    return {kind: sum(day[kind] for day in found["days"][-2:]) for kind in KINDS}  # midnight may have been in between


async def rated(door: Door, item_id: str, *verdicts: str, who: dict[str, str] = ALICE) -> None:
    for verdict in verdicts:
        body = {f"add_{verdict}_case": {"task": f"t{await door.head()}"}}
        answer = await door.put(f"{K}/{item_id}", json=body, headers=who)
        assert answer.is_success, answer.text


async def served(door: Door, *item_ids: str, actor: str = "user:alice") -> None:
    items = [ServedItem(id=item_id, version=1, relevance=0.5) for item_id in item_ids]
    fact = RecallServed(query="q", visible_scopes=[actor], items=items, view_position=1)
    await door.desk.ledger.append(NewEvent(fact, f"recall-{await door.head()}", actor))


async def test_each_number_has_its_list(door: Door) -> None:
    await door.saved(id="plain")
    await door.saved(id="other")
    await door.saved(id="gone")
    await said(door, M, {"layer": "episodic", "event": "calm"})
    await said(door, M, {"kind": "adr", "content": "one service", "scopes": ["project:ledger"]})
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": "m", "lifetime": 1})
    await over(door)
    await door.delete(f"{K}/gone", headers=ALICE)
    await contradict(door, "plain", "other")
    await served(door, "plain")
    found = await overview(door)
    assert {name: found[name] for name in NUMBERS} == {
        "total": 3, "expired": 1, "proposed": 1, "conflicting": 2, "never_recalled": 2,
    }  # fmt: skip
    assert found["by_layer"].items() >= {"plain": 2, "episodic": 1, "short": 0, "shared": 0}.items()
    assert found["mean_confidence"] == pytest.approx(0.5)


async def test_a_day_has_what_happened_with_items_that_the_caller_sees(door: Door) -> None:
    await door.saved(id="a", scopes=["public"])
    await door.saved(id="b")
    await door.saved(BOB, id="bobs")
    for _ in range(2):
        await door.put(f"{K}/a", json={"content": f"at {await door.head()}"}, headers=ALICE)
    await rated(door, "a", "helpful", "harmful", "helpful")
    await served(door, "a", "b")
    await served(door, "a", "bobs", actor="user:bob")
    await served(door, "bobs", actor="user:bob")
    assert today(await overview(door)) == {"saved": 2, "revised": 2, "recalled": 2, "helpful": 2, "harmful": 1}
    assert today(await overview(door, BOB)) == {"saved": 2, "revised": 2, "recalled": 3, "helpful": 2, "harmful": 1}


async def test_days_are_the_last_ones_in_utc_with_the_empty_ones(door: Door) -> None:
    for days in (1, 7, 366):
        before = utc_now().date()
        found = [day["day"] for day in (await overview(door, days=days))["days"]]
        assert found[-1] in {before.isoformat(), utc_now().date().isoformat()}
        assert len(found) == days
        last = utc_now().date() if found[-1] == utc_now().date().isoformat() else before
        assert found == [(last - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    for odd in ("0", "367", "x"):
        refusal(await door.get(OVERVIEW, params={"days": odd}, headers=ALICE), 422, "invalid_payload")


async def test_items_that_helped_that_turned_harmful_and_that_nobody_was_given(door: Door) -> None:
    for name in ("best", "good", "mixed", "worse", "turned", "recovered"):
        await door.saved(id=name)
    await rated(door, "best", "helpful", "helpful", "helpful")
    await rated(door, "good", "helpful")
    await rated(door, "mixed", "helpful", "harmful")
    await rated(door, "worse", "harmful", "harmful")
    await rated(door, "turned", "helpful", "helpful", "helpful", "harmful", "harmful")
    await rated(door, "recovered", "helpful", "harmful", "harmful", "helpful")
    await served(door, "good", "mixed", "worse", "turned", "recovered")
    found = await overview(door)
    assert [item["id"] for item in found["most_helpful"]][:2] == ["best", "turned"]
    assert [item["id"] for item in found["turned_harmful"]] == ["worse", "turned"]
    (never,) = found["never_recalled_items"]
    assert never == {
        "id": "best", "task": "a task", "helpful": 4, "harmful": 0, "confidence": never["confidence"],
        "updated_at": (await read(door, f"{K}/best"))["updated_at"],
    }  # fmt: skip
    await door.delete(f"{K}/worse", headers=ALICE)
    assert [item["id"] for item in (await overview(door))["turned_harmful"]] == ["turned"]


async def test_nobody_learns_of_what_they_do_not_see(door: Door) -> None:
    await door.saved(BOB, id="bobs")
    alone = await overview(door)
    assert (alone["total"], alone["mean_confidence"], today(alone)) == (0, None, dict.fromkeys(KINDS, 0))
    await door.saved(BOB, id="shown", scopes=["public"])
    before = await overview(door)
    await rated(door, "bobs", "harmful", "harmful", "harmful", who=BOB)
    await served(door, "bobs", actor="user:bob")
    await contradict(door, "bobs", "shown")
    after = await overview(door)
    assert {**after, "position": 0} == {**before, "position": 0}

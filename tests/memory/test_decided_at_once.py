"""Two decisions on one conflict, or one evolution, at once: one counts, and the other one changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.event import Fact, NewEvent
from ledger.events.evolution import EvolutionProposed, EvolutionRequested, EvolutionStarted
from ledger.events.slim import SlimReported, SlimRequested
from ledger.events.usage import Usage
from tests.doors.at_once import Request, at_every_moment, refused_since, rows
from tests.doors.http_door import ALICE, Door, http_door
from tests.memory.test_health import contradict


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


class Doing:
    """What can be decided, each about what has this name."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def conflict(self, name: str) -> None:
        for side in "ab":
            await self._door.saved(id=f"{name}-{side}")
        await contradict(self._door, f"{name}-a", f"{name}-b", f"conflict-{name}")

    async def evolution(self, name: str) -> None:
        await self._door.saved(id=name)
        usage = Usage(model="m", prompt_version="1")
        await self._stated(
            f"evolution-{name}",
            EvolutionRequested(item_id=name, base_version=1, feedback="shorter", apply=False),
            EvolutionStarted(call="1", model="m"),
            EvolutionProposed(item_id=name, content=f"{name}, shorter", usage=usage),
        )

    async def slim(self, name: str) -> None:
        await self._stated(
            f"slim-{name}",
            SlimRequested(owner="user:alice", threshold=0.9, apply=False),
            SlimReported(candidates=0, groups=0, items=0, seconds=0.0),
        )

    async def _stated(self, entity_id: str, *facts: Fact) -> None:
        for fact in facts:
            await self._door.desk.ledger.append(NewEvent(fact, entity_id, "user:alice"))

    def resolved(self, winner: str, **more: Any) -> Request:
        return self._asked("conflicts/conflict-{name}/resolve", {"winner": "{name}-" + winner, **more})

    def rejected(self, kind: str) -> Request:
        return self._asked(f"{kind}s/{kind}-{{name}}/reject")

    def applied(self, kind: str) -> Request:
        return self._asked(f"{kind}s/{kind}-{{name}}/apply" + ("?wait=0" if kind == "slim" else ""))

    def _asked(self, path: str, body: dict[str, Any] | None = None) -> Request:
        async def request(name: str) -> httpx.Response:
            told = {
                key: each.format(name=name) if isinstance(each, str) else each for key, each in (body or {}).items()
            }
            return await self._door.post(f"/api/{path.format(name=name)}", json=told, headers=ALICE)

        return request


BOTH: dict[str, Any] = {"merge": {"content": "what both say"}}
PAIRS = {
    "one side holds, and the other one": lambda do: (do.conflict, do.resolved("a"), do.resolved("b")),
    "one side holds, twice": lambda do: (do.conflict, do.resolved("a"), do.resolved("a")),
    "both in one, and the other side": lambda do: (do.conflict, do.resolved("a", **BOTH), do.resolved("b")),
    "an evolution rejected twice": lambda do: (do.evolution, do.rejected("evolution"), do.rejected("evolution")),
    "an evolution rejected, and applied": lambda do: (do.evolution, do.rejected("evolution"), do.applied("evolution")),
    "an evolution applied, and rejected": lambda do: (do.evolution, do.applied("evolution"), do.rejected("evolution")),
    "a slim rejected, and applied": lambda do: (do.slim, do.rejected("slim"), do.applied("slim")),
    "a slim applied, and rejected": lambda do: (do.slim, do.applied("slim"), do.rejected("slim")),
}


@pytest.mark.parametrize("pair", PAIRS)
async def test_of_two_decisions_at_once_one_counts_and_the_other_one_changes_nothing(door: Door, pair: str) -> None:
    begin, request, rival = PAIRS[pair](Doing(door))
    async for met in at_every_moment(door, begin, request, rival):
        about = (met.name, met.told.text, met.rival.text)
        assert await refused_since(door, met.before) == [], about
        first, second = sorted((met.told, met.rival), key=lambda answer: answer.status_code)
        assert (first.is_success, second.status_code) == (True, 409), about
        assert second.json()["error"]["code"] in ("illegal_state", "version_conflict"), about
        sides = await rows(door, "SELECT id FROM knowledge WHERE starts_with(id, ?) AND status = 'active'", met.name)
        assert len(sides) == (0 if "slim" in pair else 1), about


async def test_a_side_that_is_given_away_meanwhile_is_not_retired(door: Door) -> None:
    do = Doing(door)

    async def given(name: str) -> httpx.Response:
        anew = {"owner": "user:bob", "scopes": ["user:bob"]}
        return await door.put(f"/api/knowledge/{name}-b", json=anew, headers=ALICE)

    async for met in at_every_moment(door, do.conflict, do.resolved("a"), given):
        about = (met.name, met.told.text, met.rival.text)
        assert await refused_since(door, met.before) == [], about
        assert await rows(door, "SELECT status FROM knowledge WHERE id = ?", f"{met.name}-b") == [("active",)], about

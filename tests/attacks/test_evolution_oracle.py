"""An attack by a publisher that asks for another's item to be rewritten: the wait tells nothing of how the item stands.

Over NATS anybody may state an evolution of theirs, of any item. Whether it is settled depends on the item's version;
what the asker is told of that is what they may read themselves.
"""

from __future__ import annotations

from typing import Any

import pytest

from kledger.contract.scopes import Caller
from ledger.event import Fact, NewEvent
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised, KnowledgeSaved
from ledger.events.usage import Usage
from producers.operations.models import evolutions
from tests.doors.live_desk import live_desk

ADA, MALLORY = "user:ada", "agent:mallory"
USAGE = Usage(model="m", prompt_version="1")

WORLDS: dict[str, list[Fact]] = {
    "it is as it was": [],
    "it is another": [KnowledgeRevised(content="new")],
    "it is retired": [KnowledgeRetired()],
}


async def told(world: str, *, readers: str = ADA, item: str = "adas") -> tuple[dict[str, Any], bool]:
    """What Mallory is told of an evolution of Ada's item, in one of the worlds."""
    async with live_desk() as desk:
        saved = KnowledgeSaved(types=["tool"], task="t", content="c", scopes=[readers], owner=ADA)
        for fact in (saved, *WORLDS[world]):
            await desk.ledger.append(NewEvent(fact, "adas", ADA))
        for stage in (
            EvolutionRequested(item_id=item, base_version=1, feedback="f"),
            EvolutionProposed(item_id=item, content="x", usage=USAGE),
        ):
            await desk.ledger.append(NewEvent(stage, "evolution-1", MALLORY))
        await desk.view.wait_for((await desk.ledger.head()).position)
        answer, done = await evolutions.awaited(desk, Caller(agent="mallory"), "evolution-1", 0.0)
        of_the_log = ("requested_at", "updated_at", "position")
        return {name: value for name, value in answer.items() if name not in of_the_log}, done


@pytest.mark.parametrize("world", [*WORLDS])
async def test_a_hidden_item_answers_alike_however_it_stands_and_as_one_that_is_not_there(world: str) -> None:
    missing, done = await told("it is as it was", item="none")
    assert await told(world) == (
        {**missing, "item_id": "adas", "reason": missing["reason"].replace("none", "adas")},
        done,
    )


async def test_an_item_that_the_asker_reads_says_whether_it_has_moved_on() -> None:
    assert [(await told(world, readers=MALLORY))[1] for world in WORLDS] == [False, True, True]

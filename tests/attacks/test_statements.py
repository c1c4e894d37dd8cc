"""Nothing that may be stated stops a fold or a read: a short run of `make statements`, the same each time."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.statements.campaign import run
from tests.attacks.statements.statements import Message, Request, Statements
from tests.journeys.running_node import running


async def test_whatever_is_stated_the_head_is_reached_reads_answer_and_a_replay_agrees(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--quack", "off") as node:
        told = await run(node, seed=31, count=250, largest=40_000)
    assert told.broken == []
    assert told.statements == 250
    assert told.events > 120, "statements reach the log"
    assert told.counted > 0.8 * told.well_formed > 40, "what is well formed counts, and what follows is about it"
    assert len(told.refused) > 3, "and some of them are refused there"


def test_a_seed_gives_the_same_statements_again() -> None:
    one, other = Statements(5, 1_000), Statements(5, 1_000)
    made = [one.next() for _ in range(300)]
    assert made == [other.next() for _ in range(300)]
    assert {type(each) for each in made} == {Request, Message}

"""What was erased with its person asks for no look: lists have it, and no number or name of what is to be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from kledger import LedgerClient
from kledger.contract.words import MemoryConcern, Verdict
from tests.journeys.running_node import result_of, running

CONCERNS: tuple[MemoryConcern, ...] = get_args(MemoryConcern)
SHOWN = ("most_helpful", "turned_harmful", "never_recalled_items")


def to_look_at(reader: LedgerClient) -> dict[str, Any]:
    """What the project is told to look at; each number of a list is that of the list."""
    health: dict[str, Any] = {**reader.memory_health()}
    overview: dict[str, Any] = {**reader.overview()}
    for name in CONCERNS:
        assert reader.memories(concern=name)["total"] == health[name], name
        assert reader.list(concern=name)["total"] == overview.get(name, health[name]), name
    named = {name: {each["id"] for each in overview[name]} for name in SHOWN}
    return {**{name: health[name] for name in CONCERNS}, **named}


def test_what_was_erased_is_no_longer_told_as_something_to_look_at(tmp_path: Path) -> None:
    # A node of its own: of a shared one the project sees what others made public.
    with running(tmp_path / "data", "--quack", "off") as node, node.client() as ledger:
        vera = ledger.acting_as(user="vera-erased")
        reader = ledger.acting_as(agent="onlooker", project="erased-things")
        scopes = ["project:erased-things"]
        vera.remember("She was in a hurry", layer="short", kind="mood", id="erased-mood", scopes=scopes)
        vera.confirm("erased-mood")
        verdicts: dict[str, Verdict] = {"erased-good": "helpful", "erased-bad": "harmful"}
        for name, verdict in verdicts.items():
            vera.save(f"What vera knows of {name}", f"It is {name}.", ["tool"], id=name, scopes=scopes)
            for task in ("one", "two", "three"):
                vera.rate(name, verdict, task=task)
        ids = {"erased-mood", "erased-good", "erased-bad"}
        before = to_look_at(reader)
        assert (before["promoted"], before["never_recalled"]) == (1, 1)
        assert before["never_recalled_items"] == ids
        assert ("erased-good" in before["most_helpful"], before["turned_harmful"]) == (True, {"erased-bad"})
        result_of(ledger, "forget", subject="user:vera-erased")
        nothing: dict[str, Any] = dict.fromkeys(CONCERNS, 0)
        assert to_look_at(reader) == nothing | {name: set() for name in SHOWN}
        assert {each["id"] for each in reader.list(owner="user:vera-erased")["results"]} == ids
        rows = ledger.sql("SELECT count(*) FROM knowledge WHERE owner = 'user:vera-erased' AND erased")["rows"]
        assert rows == [[3]]

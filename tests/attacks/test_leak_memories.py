"""Does anybody learn of somebody else's memories? Each question by each door, beside what is told of nothing.

All that is Ada's alone holds her word. Two memories are more people's: one is everybody's, one her team's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl

import pytest

from kledger import LedgerClient
from kledger.contract.words import MemoryConcern
from tests.attacks.leak_doors import Ask, Doors, Told, Who, about, changes, lacking, listing, search
from tests.journeys.running_node import caught_up, head, running, until
from tests.openai_server import embedding_endpoint

WORD = "zqadasmemory"
ADA: Who = {"user": "ada", "team": "web"}
OTHERS: dict[str, Who] = {
    "a stranger": {"user": "mallory"},
    "one of her team": {"user": "bob", "team": "web"},
    "an agent of her team": {"agent": "scribe", "team": "web"},
}
ALL, TEAM = "of-all", "of-the-team"
SEEN = {"a stranger": {ALL}, "one of her team": {ALL, TEAM}, "an agent of her team": {ALL, TEAM}}
MINE = ("mood", "episode", "procedure", "over", "promoted", "fact")
"""What is Ada's alone; `over` is expired, `promoted` is what she confirmed."""
NOT_THERE = "not-there"
M = "/api/memory"


def shown(item_id: str, **given: Any) -> Ask:
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return Ask(f"GET {M}/{item_id}", ("memory", (item_id,), given), ["memory", "show", item_id, *options], given)


def confirmed(item_id: str) -> Ask:
    return Ask(
        f"POST {M}/{item_id}/confirm", ("confirm", (item_id,), {}), ["memory", "confirm", item_id], body={},
        tool=("memory_confirm", {"memory_id": item_id}),
    )  # fmt: skip


def listed(**given: Any) -> Ask:
    """The timeline; `layer` and `kind` are lists in the client."""
    given = {"limit": 100, **given}
    names = {"layer": "layers", "kind": "kinds"}
    client = {names.get(name, name): [value] if name in names else value for name, value in given.items()}
    words = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return Ask(f"GET {M}", ("memories", (), client), ["memory", "list", *words], given)


HEALTH = Ask(f"GET {M}/health", ("memory_health", (), {}), ["memory", "health"], tool=("memory_health", {}))


def cleaned(*, dry_run: bool) -> Ask:
    words = ["memory", "clean"] if dry_run else ["memory", "clean", "--apply"]
    return Ask(f"POST {M}/clean", ("clean_memories", (), {"dry_run": dry_run}), words, body={"dry_run": dry_run})


@dataclass
class Adas:
    """The node, and the position before her fact was shared with nobody but herself."""

    doors: Doors
    ledger: LedgerClient
    before: int

    def ask(self, who: Who, ask: Ask, commands: bool = True) -> Iterator[tuple[str, Told]]:
        """What each door that can be asked tells; a command takes ten times as long as any other."""
        for door in self.doors.of(ask):
            if commands or door != "command":
                yield door, self.doors.all[door](who, ask)


def remember(ledger: LedgerClient) -> int:
    """Memories of every layer, one of which is over, one promoted, and one in conflict with what her team reads."""
    ada = ledger.acting_as(**ADA)
    ada.remember(f"calm today {WORD}", "short", kind="mood", id="mood", tags=[WORD], session=WORD)
    ada.remember(
        layer="episodic", event=f"calm sea {WORD}", outcome=WORD, participants=[WORD], artifacts=[WORD],
        happened_at="2026-02-17T14:30:00Z", id="episode",
    )  # fmt: skip
    ada.remember(layer="procedural", name=f"calm {WORD}", trigger=WORD, steps=[WORD], id="procedure")
    ada.remember(f"calm for a moment {WORD}", "short", kind="mood", lifetime=1, id="over")
    ada.remember(f"calm for good {WORD}", "short", kind="decision", id="promoted")
    assert ada.confirm("promoted", case={"reason": WORD})["promoted"]
    ada.remember("calm is common", id=ALL, scopes=["public"], confidence=0.5)
    ada.remember("The gate opens at eight.", task="When the gate opens", id=TEAM, scopes=["team:web"], confidence=0.5)
    ada.remember(f"calm fact {WORD}", category=WORD, id="fact", scopes=["public"], types=["tool"])
    before = head(ledger)
    ada.revise("fact", scopes=["user:ada"])
    until(lambda: caught_up(ledger) and ada.memories(status="expired")["total"] == 1, "one is over")
    until(lambda: ada.history("over")["versions"][-1]["status"] == "expired", "and the node has stated that")
    return before


@pytest.fixture(scope="module")
def adas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adas]:
    with embedding_endpoint() as server:
        environment = {"KLEDGER_MODEL_URL": server.url, "KLEDGER_MODEL": "big"}
        with running(tmp_path_factory.mktemp("memories") / "data", env=environment) as node, node.client() as ledger:
            before = remember(ledger)
            ada = ledger.acting_as(**ADA)
            # What she says alone contradicts what her team reads of hers: a conflict of which nobody else may know.
            found = {"type": "tool", "task": "When the gate opens", "content": f"At nine, {WORD}.", "domain": WORD}
            server.chat.says({"items": [found | {"category": "exp", "message_ids": []}]}, to="<message id=")
            verdict = {"item": 0, "verdict": "conflict", "known": TEAM, "reason": WORD}
            server.chat.says({"verdicts": [verdict]}, to="<new item=")
            ada.extract(f"At nine, {WORD}.")
            caught_up(ledger)
            doors = Doors(node.url)
            yield Adas(doors, ledger, before)
            doors.close()


def ids(told: Told) -> set[str]:
    assert told.code is None, told
    return {each["id"] for each in told.document["results"]}


def each_way(asks: list[Ask], adas: Adas) -> Iterator[tuple[str, str, Ask, Told]]:
    """What others are told through each door; one of them in turn asks the commands too."""
    for number, ask in enumerate(asks):
        for turn, (principal, who) in enumerate(OTHERS.items()):
            for door, told in adas.ask(who, ask, commands=number % len(OTHERS) == turn):
                yield principal, door, ask, told


QUESTIONS: list[Callable[[str], Ask]] = [
    shown,
    confirmed,
    lambda item_id: about("get", item_id),
    lambda item_id: about("history", item_id),
    lambda item_id: about("why", item_id),
    lambda item_id: about("lineage", item_id),
]


def test_a_memory_of_hers_is_told_of_and_confirmed_as_what_is_not_there(adas: Adas) -> None:
    before = head(adas.ledger)
    asks = [(question, item_id) for question in QUESTIONS for item_id in MINE]
    asks.append((lambda item_id: shown(item_id, as_of=adas.before), "fact"))  # which everybody might read then

    @cache
    def told_of_nothing(question: Callable[[str], Ask], principal: str, door: str) -> tuple[str | None, str]:
        return lacking(adas.doors.all[door](OTHERS[principal], question(NOT_THERE)), NOT_THERE)

    for number, (question, item_id) in enumerate(asks):
        for turn, (principal, who) in enumerate(OTHERS.items()):
            for door, told in adas.ask(who, question(item_id), commands=number % len(OTHERS) == turn):
                nothing = told_of_nothing(question, principal, door)
                assert lacking(told, item_id) == nothing, (principal, door, item_id)
                assert WORD not in told.text, (principal, door, item_id)
    assert head(adas.ledger) == before, "nothing was said of any"
    for _, told in adas.ask(ADA, shown("fact")):
        assert (told.code, told.document["category"]) == (None, WORD)


def test_whatever_others_would_change_of_a_memory_of_hers_is_told_of_as_what_is_not_there(adas: Adas) -> None:
    before = head(adas.ledger)
    for number, name in enumerate(changes(NOT_THERE)):
        item_id = MINE[number % len(MINE)]
        for principal, who in OTHERS.items():
            nothing = dict(adas.ask(who, changes(NOT_THERE)[name], commands=False))
            for door, told in adas.ask(who, changes(item_id)[name], commands=False):
                assert lacking(told, item_id) == lacking(nothing[door], NOT_THERE), (principal, door, name)
    assert head(adas.ledger) == before


def test_remembering_over_a_memory_of_hers_tells_that_the_id_is_taken_and_nothing_else(adas: Adas) -> None:
    said = set()
    for item_id in MINE:
        body = {"id": item_id, "layer": "semantic", "content": "calm"}
        over = Ask(
            f"POST {M}", ("remember", ("calm",), {"id": item_id}),
            ["memory", "save", "calm", "--layer", "semantic", "--id", item_id], body=body,
        )  # fmt: skip
        for door, told in adas.ask(OTHERS["a stranger"], over, commands=item_id == "mood"):
            said.add((door if door in ("command", "sdk") else "request", *lacking(told, item_id)))
            assert WORD not in told.text, (door, item_id)
    assert [(words_of, code) for words_of, code, _ in sorted(said)] == [
        (words_of, "knowledge_exists") for words_of in ("command", "request", "sdk")
    ], "in the words of each"


def test_lists_timelines_and_searches_hold_what_each_may_read_alone(adas: Adas) -> None:
    asks = [
        listed(),
        *(listed(status=status) for status in ("all", "expired", "retired")),
        *(listed(layer=layer) for layer in ("short", "semantic", "episodic", "procedural")),
        *(listed(concern=concern, status="all") for concern in get_args(MemoryConcern)),
        *(listed(kind="mood", status="all"), listed(owner="user:ada", status="all"), listed(as_of=adas.before)),
        listed(since="2026-02-17T00:00:00Z", until="2026-02-18T00:00:00Z", status="all"),
        *(listing(), listing(status="all"), listing(owner="user:ada", status="all")),
        *(search("calm"), search(WORD), search("calm", path="keyword"), search("calm", as_of=adas.before)),
    ]
    for principal, door, ask, told in each_way(asks, adas):
        assert ids(told) <= SEEN[principal], (principal, door, ask)
        assert WORD not in told.text.replace(f'"query": "{WORD}"', ""), (principal, door, ask)
    for principal, door, ask, told in each_way([listed()], adas):
        assert ids(told) == SEEN[principal], (principal, door, ask)
    for door, told in adas.ask(ADA, listed(status="all")):
        assert ids(told) == {*MINE, ALL, TEAM}, door


def test_health_counts_for_others_what_their_lists_show_and_no_conflict_with_what_they_do_not_see(adas: Adas) -> None:
    @cache
    def in_list(principal: str, listed_at: str) -> set[str]:
        path, _, query = listed_at.partition("?")
        return ids(adas.doors.http(OTHERS[principal], Ask(f"GET {path}", ("", (), {}), [], dict(parse_qsl(query)))))

    for principal, door, _, told in each_way([HEALTH, HEALTH, HEALTH], adas):
        found, count = told.document, len(SEEN[principal])
        layers = {"short": 0, "semantic": count, "episodic": 0, "procedural": 0}
        assert (found["total"], found["by_layer"]) == (count, layers), (principal, door)
        assert (found["expired"], found["conflicting"], found["promoted"]) == (0, 0, 0), (principal, door)
        assert found["mean_confidence"] == pytest.approx(0.5), (principal, door)
        assert WORD not in told.text
        for name, path in found["lists"].items():
            there = in_list(principal, path)
            assert len(there) == found[name], (principal, name)
            assert there <= SEEN[principal], (principal, name)
    for door, told in adas.ask(ADA, HEALTH):
        found = told.document
        assert (found["total"], found["expired"], found["conflicting"], found["promoted"]) == (7, 1, 1, 1), door


def test_who_recalls_what_they_may_read_learns_nothing_of_what_else_is_recalled(adas: Adas) -> None:
    starts: list[Literal["", "calm"]] = ["", "calm"]
    for principal, who in OTHERS.items():
        ledger = adas.ledger.acting_as(**who)
        told: list[Any] = [ledger.startup(query, top_k=50, min_score=1, record=False) for query in starts]
        told.append(ledger.focus("goal", "calm", top_k=50, min_score=1))
        assert WORD not in json.dumps(told), principal
        for each in told[:2]:
            assert {one["id"] for one in each["results"]} <= SEEN[principal], principal


def test_others_clean_nothing_of_hers_and_she_cleans_it_in_the_end(adas: Adas) -> None:
    before = head(adas.ledger)
    for dry_run in (True, False):
        for principal, door, _, told in each_way([cleaned(dry_run=dry_run)] * len(OTHERS), adas):
            assert (told.code, told.document["ids"]) == (None, []), (principal, door)
    assert head(adas.ledger) == before
    for door, told in adas.ask(ADA, cleaned(dry_run=True)):
        assert told.document["ids"] == ["over"], door
    assert adas.ledger.acting_as(**ADA).clean_memories(dry_run=False)["ids"] == ["over"]

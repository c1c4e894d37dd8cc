"""Does anybody learn of somebody else's resources, goals and models' work? Each by each door, beside what is not there.

Everything is Ada's and holds her word; whoever else asks, of her own team too, is told what they are told of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from kledger import LedgerClient
from ledger.event import JsonObject
from tests.attacks.leak_doors import Ask, Doors, Told, Who, lacking
from tests.journeys.running_node import caught_up, head, running
from tests.openai_server import embedding_endpoint

WORD = "zqadasword"
ADA: Who = {"user": "ada", "team": "web"}
OTHERS: dict[str, Who] = {
    "a stranger": {"user": "mallory"},
    "one of her team": {"user": "bob", "team": "web"},
    "an agent of her team": {"agent": "scribe", "team": "web"},
}
SWEPT = "The yard is swept by hand on Sundays."


def one(path: str, getter: str, *command: str) -> Callable[[str], Ask]:
    """Reading one thing by its id; `getter` is a method of the SDK."""
    return lambda name: Ask(
        f"GET {path}/{quote(name, safe='')}",
        (getter, (name,), {}),
        [*command, name] if command else [],
        tool=("resource_get", {"resource_id": name}) if path == "/api/resource" else None,
    )


def decided(path: str, verb: str, method: str, *command: str, **given: Any) -> Callable[[str], Ask]:
    """Deciding on one thing by its id."""
    return lambda name: Ask(
        f"POST {path}/{quote(name, safe='')}/{verb}", (method, (name,), given), [*command, name], body=given or None
    )


QUESTIONS: dict[str, list[Callable[[str], Ask]]] = {
    "evolution": [
        one("/api/evolutions", "evolution", "evolution", "show"),
        *(
            decided("/api/evolutions", verb, f"{verb}_evolution", "evolution", verb)
            for verb in ("apply", "reject", "revert")
        ),
    ],
    "extraction": [one("/api/extractions", "extraction", "extraction", "show")],
    "slim": [
        one("/api/slims", "slim_get"),
        *(decided("/api/slims", verb, f"slim_{verb}", "slim", f"--{verb}") for verb in ("apply", "reject", "revert")),
    ],
    "conflict": [
        one("/api/conflicts", "conflict", "conflicts", "show"),
        decided("/api/conflicts", "resolve", "resolve_conflict", "conflicts", "resolve", winner=None),
    ],
    "resource": [
        one("/api/resource", "resources.get", "resource", "show"),
        lambda name: Ask(
            f"GET /api/resource/{quote(name, safe='')}/history",
            ("resources.history", (name,), {}),
            ["resource", "history", name],
        ),
        lambda name: Ask(
            f"DELETE /api/resource/{quote(name, safe='')}",
            ("resources.retire", (name,), {}),
            ["resource", "retire", name],
        ),
    ],
    "goal": [
        lambda name: Ask(f"GET /api/goals/{name}", ("goal", (name,), {}), ["goal", name]),
        lambda name: Ask(
            f"GET /api/goals/{name}",
            ("goal", (name,), {"owner": "user:ada"}),
            ["goal", name, "--owner", "user:ada"],
            {"owner": "user:ada"},
        ),
    ],
}
LISTS = {
    "goal": Ask("GET /api/goals", ("goals", (), {}), ["goals"]),
    "evolution": Ask("GET /api/evolutions", ("evolutions", (), {}), ["evolution", "list"]),
    "extraction": Ask("GET /api/extractions", ("extractions", (), {}), ["extraction", "list"]),
    "slim": Ask("GET /api/slims", ("slims", (), {}), ["slims"]),
    "conflict": Ask("GET /api/conflicts", ("conflicts", (), {}), ["conflicts", "list"]),
    "statement": Ask("GET /api/memory/held", ("held_statements", (), {}), ["memory", "held"], tool=("memory_held", {})),
    "resource": Ask("GET /api/resource", ("resources.list", (), {}), ["resource", "list"]),
}
HELD: list[Callable[[str], Ask]] = [
    lambda name: Ask(
        f"POST /api/memory/held/{name}/release", ("release_statement", (name,), {}), ["memory", "release", name],
        body={}, tool=("memory_held_decide", {"held_id": name, "decision": "release"}),
    ),
    lambda name: Ask(
        f"POST /api/memory/held/{name}/drop", ("drop_statement", (name,), {}), ["memory", "drop", name],
        body={}, tool=("memory_held_decide", {"held_id": name, "decision": "drop"}),
    ),
]  # fmt: skip
"""Decisions on what is held."""
STARTS = [
    Ask(
        "GET /api/recall/startup",
        ("startup", (query,), {"record": False}),
        ["startup", query, "--no-record"],
        {"q": query, "record": "false"},
    )
    for query in ("", WORD)
]


@dataclass
class Adas:
    """The node, and the id of each thing that is Ada's."""

    doors: Doors
    ledger: LedgerClient
    ids: dict[str, str]
    items: list[str]

    def ask(self, who: Who, ask: Ask, commands: bool = True) -> Iterator[tuple[str, Told]]:
        """What each door that can be asked tells; a command takes ten times as long as any other."""
        for door in self.doors.of(ask):
            if commands or door != "command":
                yield door, self.doors.all[door](who, ask)


@pytest.fixture(scope="module")
def adas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adas]:
    with embedding_endpoint() as server:
        environment = {"KLEDGER_MODEL_URL": server.url, "KLEDGER_MODEL": "big"}
        with running(tmp_path_factory.mktemp("work") / "data", env=environment) as node, node.client() as ledger:
            ada = ledger.acting_as(**ADA)
            item = ada.save("When the gate opens", f"At eight, {WORD}.", ["tool"])["id"]
            caught_up(ledger)
            server.chat.says({"content": f"{WORD}, shorter.", "task": None, "reason": WORD}, to="feedback>")
            found: JsonObject = {
                "type": "tool",
                "task": "When the gate opens",
                "content": f"At nine, {WORD}.",
                "domain": WORD,
            }
            found |= {"category": "exp", "message_ids": []}
            verdict = {"item": 0, "verdict": "conflict", "known": item, "reason": WORD}
            server.chat.says({"items": [found]}, to="<message id=")
            server.chat.says({"verdicts": [verdict]}, to="<new item=")
            extraction = ada.extract(f"At nine, {WORD}.")["id"]
            # Not before: what is extracted is compared with all that is known.
            copies = [
                ada.save("Copies", f"{please}copy the {WORD} key twice", ["plan"])["id"] for please in ("", "Please ")
            ]
            server.chat.says({"task": "Copies", "content": f"Copy {WORD} twice."}, to="copy the")
            gone = ada.save("The yard", SWEPT, ["plan"])["id"]
            ada.retire(gone, reason=WORD)
            again = {"task": "The yard", "content": SWEPT.lower(), "tags": {"word": WORD}, "types": ["plan"]}
            held: Any = ada.save_many([again])["results"][0]
            ids = {
                "statement": held["held"]["id"],
                "extraction": extraction,
                "evolution": ada.evolve(item, f"make {WORD} short", dry_run=True)["evolution"]["id"],
                "slim": ada.slim(dry_run=True)["id"],
                "conflict": ada.conflicts()["results"][0]["id"],
                "resource": f"{WORD}/vault",
                "goal": "adas-goal",
            }
            ada.resources.save(ids["resource"], WORD, body=WORD, secure_body=f"{WORD} and more")
            assert WORD in ada.focus(ids["goal"], f"open the gate {WORD}", min_score=1)["output"]
            caught_up(ledger)
            doors = Doors(node.url)
            yield Adas(doors, ledger, ids, [item, *copies])
            doors.close()


def test_what_is_somebody_elses_is_told_of_and_decided_on_as_what_is_not_there(adas: Adas) -> None:
    before = head(adas.ledger)
    for kind, questions in QUESTIONS.items():
        name = adas.ids[kind]
        for _, told in adas.ask(ADA, questions[0](name)):
            assert told.code is None, (kind, told)
        for ask in questions:
            for number, (principal, who) in enumerate(OTHERS.items()):
                nothing = dict(adas.ask(who, ask("not-there"), commands=not number))
                for door, told in adas.ask(who, ask(name), commands=not number):
                    assert lacking(told, name) == lacking(nothing[door], "not-there"), (kind, door, principal)
                    assert WORD not in told.text.replace(name, ""), (kind, door, principal)
    assert head(adas.ledger) == before


def test_what_is_held_of_somebody_else_is_decided_on_as_what_is_not_there(adas: Adas) -> None:
    before, name = head(adas.ledger), adas.ids["statement"]
    for ask in HELD:
        for number, (principal, who) in enumerate(OTHERS.items()):
            nothing = dict(adas.ask(who, ask("not-there"), commands=not number))
            for door, told in adas.ask(who, ask(name), commands=not number):
                assert lacking(told, name) == lacking(nothing[door], "not-there"), (door, principal)
    assert head(adas.ledger) == before


def test_lists_and_starts_hold_what_is_the_callers_alone(adas: Adas) -> None:
    for kind, ask in LISTS.items():
        for door, told in adas.ask(ADA, ask):
            assert adas.ids[kind] in [each.get("id", each.get("goal_id")) for each in told.document["results"]], (
                kind,
                door,
                told,
            )
    for (principal, who), ask in ((other, ask) for other in OTHERS.items() for ask in (*LISTS.values(), *STARTS)):
        for door, told in adas.ask(who, ask):
            assert told.code is None, told
            assert told.document.get("results", []) == [], (principal, door, ask.line)
            assert WORD not in told.text.replace(f'"query": "{WORD}"', ""), (principal, door, ask.line)


def test_nobody_slims_saves_over_or_focuses_into_what_is_adas(adas: Adas) -> None:
    before = [adas.ledger.get(item)["version"] for item in adas.items]
    own = Ask(
        "POST /api/knowledge/slim",
        ("slim", (), {}),
        ["slim"],
        body={},
        tool=("knowledge_slim", {}),
    )
    hers = Ask(
        "POST /api/knowledge/slim",
        ("slim", (), {"owner": "user:ada"}),
        ["slim", "--owner", "user:ada"],
        body={"owner": "user:ada"},
    )
    name = adas.ids["resource"]
    over = Ask(
        "POST /api/resource",
        ("resources.save", (name, "t"), {}),
        ["resource", "save", name, "--title", "t"],
        body={"id": name, "title": "t"},
        tool=("resource_save", {"resource_id": name, "title": "t"}),
    )
    into = Ask(
        f"POST /api/goals/{adas.ids['goal']}/focus",
        ("focus", (adas.ids["goal"], "open the gate"), {"min_score": 1}),
        ["focus", adas.ids["goal"], "open the gate", "--min-score", "1"],
        body={"description": "open the gate", "min_score": 1},
        tool=("goal_focus", {"goal_id": adas.ids["goal"], "description": "open the gate", "min_score": 1}),
    )
    for principal, who in OTHERS.items():
        for door, told in adas.ask(who, own):
            assert (told.code, told.document["groups"]) == (None, []), (principal, door)
        for door, told in adas.ask(who, hers):
            assert told.code == "not_owner", (principal, door)
        for door, told in adas.ask(who, over):
            assert told.code is not None, (principal, door)
            assert WORD not in told.text.replace(name, ""), (principal, door)
        for door, told in adas.ask(who, into):
            assert told.code is None, (principal, door, told)
            assert WORD not in told.text, (principal, door)
    assert [adas.ledger.get(item)["version"] for item in adas.items] == before
    assert adas.ledger.acting_as(**ADA).resources.get(name)["secure_body"] == f"{WORD} and more"
    assert WORD in adas.ledger.acting_as(**ADA).goal(adas.ids["goal"])["section"]


def test_an_import_of_somebody_else_is_not_held_for_what_ada_retired_alone(adas: Adas) -> None:
    for number, who in enumerate(OTHERS.values()):
        said = {"task": "The yard", "content": SWEPT, "types": ["plan"]}
        saved = adas.ledger.acting_as(**who).save_many([said | {"id": f"yard-{number}"}])
        assert (saved["saved"], saved["held"]) == (1, 0), who

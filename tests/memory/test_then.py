"""As of a moment every door answers by the clock of that moment: what was over by then is out, and ages count to it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.memory import Memory
from ledger.backup.writing import back_up
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRated
from tests.integrity.logs import ListedLedger
from tests.journeys.running_node import ENVIRONMENT, caught_up, running, until
from tests.processes.started import KLEDGER
from tests.projections.histories import saved, stored

MEI = "user:mei"
BORN = datetime.fromisoformat("2025-06-01T12:00:00+00:00")
OVER = BORN + timedelta(days=7)
WEEK = 7 * 86_400
MINE: dict[str, Any] = {"scopes": [MEI]}
PAST: list[tuple[datetime, NewEvent]] = [
    (BORN - timedelta(days=140), saved("old", task="Raise the tent", content="Raise the tent with two poles.", **MINE)),
    (BORN, saved("new", task="Raise the tent", content="Raise the tent with three poles.", **MINE)),
    (
        BORN,
        saved("mood", MEI, task="Tent mood", content="Prefers the tent in the shade.", **MINE,
              memory=Memory(layer="short", kind="preference", lifetime=WEEK)),
    ),
    (
        BORN,
        saved("fact", MEI, task="Tent fact", content="The tent is green.", **MINE,
              memory=Memory(layer="semantic", kind="user_preference")),
    ),
    (BORN + timedelta(days=1), saved("stove", task="Stove", content="Light it outside.", **MINE)),
    (BORN + timedelta(days=19), saved("kayak", task="Kayak", content="Row it.", **MINE)),
    (BORN + timedelta(days=30), NewEvent(KnowledgeConfirmed(), "fact", MEI)),
    (
        BORN + timedelta(days=31),
        saved("leak", MEI, task="Storm", content="The tent leaked in the storm.", **MINE,
              memory=Memory(layer="episodic")),
    ),
    (BORN + timedelta(days=41), NewEvent(KnowledgeRated(verdict="helpful"), "leak", MEI)),
    (BORN + timedelta(days=41), NewEvent(KnowledgeRated(verdict="helpful"), "stove", MEI)),
]  # fmt: skip
AFTER_A_DAY, AFTER_19_DAYS = 5, 6
"""Positions of events of these moments."""


@pytest.fixture(scope="module")
def op(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerClient]:
    """The operator of a node whose log is of the past: it was restored from a backup."""
    at = tmp_path_factory.mktemp("then")
    log = [
        each._replace(stored_ns=int(moment.timestamp()) * 10**9)
        for each, (moment, _) in zip(stored([replace(e, time=t) for t, e in PAST]), PAST, strict=True)
    ]
    asyncio.run(back_up(ListedLedger(log), at / "backup"))
    restore = [*KLEDGER, "restore-backup", str(at / "backup"), "--data", str(at / "data")]
    subprocess.run(restore, check=True, capture_output=True, env=ENVIRONMENT)
    with running(at / "data") as node, node.client() as op:
        caught_up(op)
        until(lambda: len(op.history("mood")["versions"]) == 2, "the node states what is over")
        yield op


@pytest.fixture
def mei(op: LedgerClient) -> LedgerClient:
    return op.acting_as(user="mei")


def doors(client: LedgerClient, as_of: Any) -> dict[str, bool]:
    """Whether each door that answers as of a moment has the short memory in recall."""
    found: dict[str, list[Any]] = {
        "list": client.list(as_of=as_of)["results"],
        "timeline": client.memories(as_of=as_of)["results"],
        "search": client.search("tent", as_of=as_of)["results"],
        "search by freshness": client.search("tent", as_of=as_of, path="recency", top_k=20)["results"],
        "search narrowed": client.search("tent", as_of=as_of, layers=["short"])["results"],
        "recall": client.recall("is the tent in the shade", as_of=as_of, min_match=0.1)["results"],
    }
    shown = {door: "mood" in [item["id"] for item in items] for door, items in found.items()}
    statuses = client.facets(as_of=as_of, status="all")["statuses"]
    return shown | {
        "text of a recall": "in the shade" in client.recall("is the tent in the shade", as_of=as_of)["text"],
        "memory": client.memory("mood", as_of=as_of)["status"] == "active",
        "item": client.get("mood", as_of=as_of)["status"] == "active",
        "list of all": {item["id"]: item for item in client.list(as_of=as_of, status="all")["results"]}["mood"][
            "status"
        ] == "active",
        "facets": "expired" not in [each["value"] for each in statuses],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("as_of", "alive"),
    [
        (BORN, True),
        (OVER - timedelta(microseconds=1), True),
        (OVER, False),
        (BORN + timedelta(days=18), False),
        (AFTER_A_DAY, True),
        (AFTER_19_DAYS, False),
    ],
    ids=["as it was saved", "the last moment", "its end", "between two events", "a position", "a position after it"],
)
def test_every_door_says_of_a_moment_the_same_of_what_was_over_by_then(
    mei: LedgerClient, as_of: Any, alive: bool
) -> None:
    assert doors(mei, as_of) == dict.fromkeys(doors(mei, as_of), alive)


@pytest.mark.parametrize("as_of", [BORN + timedelta(days=1), AFTER_A_DAY], ids=["a moment", "a position"])
def test_how_old_and_how_fresh_a_thing_is_counts_to_the_moment_asked_for(mei: LedgerClient, as_of: Any) -> None:
    answer = mei.recall("how do I raise the tent", as_of=as_of)
    assert "new, yesterday" in answer["text"]
    assert "old, 141 days ago" in answer["text"]
    ages = {"new": 1, "old": 141}
    of_recall = {item["id"]: item["why"]["recency"] for item in answer["results"] if item["id"] in ages}
    assert of_recall == {name: pytest.approx(0.5 ** (days / 30), abs=1e-3) for name, days in ages.items()}
    early, late = mei.search("raise the tent", as_of=as_of, top_k=2)["results"]
    assert (early["id"], late["id"]) == ("new", "old")
    assert early["relevance"] - late["relevance"] > 0.015, "a day old against 141 days old"


@pytest.mark.parametrize("as_of", [None, BORN + timedelta(days=41)], ids=["now", "a moment"])
@pytest.mark.parametrize(
    ("asked", "line", "happened"),
    [
        ("where did the tent leak in the storm", "- [{age}] The tent leaked in the storm.", BORN + timedelta(days=31)),
        ("do I light the stove outside", "- Stove: Light it outside. (stove, {age})", BORN + timedelta(days=1)),
    ],
    ids=["an episode", "knowledge"],
)
def test_a_verdict_makes_nothing_younger(
    mei: LedgerClient, asked: str, line: str, happened: datetime, as_of: datetime | None
) -> None:
    days = ((as_of or datetime.now(UTC)) - happened).days
    assert line.format(age=f"{days} days ago") in mei.recall(asked, as_of=as_of)["text"].split("\n")


def test_a_text_of_then_counts_the_sources_of_then(mei: LedgerClient) -> None:
    asked = "which colour has the tent, is the tent green"
    assert "source: 1 conversation)" in mei.recall(asked, as_of=AFTER_19_DAYS)["text"]
    assert "sources: 2 conversations)" in mei.recall(asked)["text"]


def test_what_was_over_keeps_its_end_after_the_node_has_said_so_and_after_it_was_retired(
    op: LedgerClient, mei: LedgerClient
) -> None:
    def ends() -> set[datetime]:
        caught_up(op)
        ((by_sql,),) = op.sql("SELECT epoch_us(expires_at) FROM short_memories WHERE id = 'mood'")["rows"]
        shown = str(mei.memory("mood")["expires_at"])
        return {datetime.fromtimestamp(by_sql / 1e6, UTC), datetime.fromisoformat(shown)}

    assert ends() == {OVER}
    mei.retire("mood")
    assert (ends(), mei.memory("mood")["status"]) == ({OVER}, "retired")
    mei.restore("mood")
    (again,) = ends()
    assert again > OVER + timedelta(days=7), "it lives once more"

"""A person who looks at a page is no agent being served: the look is recorded, and counts for nothing."""

from __future__ import annotations

from typing import get_args

import duckdb
import pytest

from kledger.contract.knowledge import Case
from kledger.contract.memory import PROMOTING_RECALLS, Memory
from kledger.contract.scopes import Caller
from kledger.contract.words import RecallKind
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgePromoted, KnowledgeRated
from ledger.events.recall import RecallServed, ServedItem
from projections.engine import batch
from projections.views.lineage import ask
from tests.projections.histories import rows, saved, stored, view_of

ANN, NODE = "user:ann", "user:local"
MOOD = Memory(layer="short", kind="mood", lifetime=100)
KINDS: tuple[RecallKind, ...] = get_args(RecallKind)


@pytest.fixture(params=[0, 256], ids=["by SQL", "by the models"], autouse=True)
def _road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", request.param)


def served(kind: RecallKind, trace: str) -> NewEvent:
    items = [ServedItem(id=each, version=1, relevance=1.0) for each in ("k1", "k2")]
    fact = RecallServed(kind=kind, query="q", visible_scopes=[ANN], items=items, view_position=1)
    return NewEvent(fact, f"recall-{kind}-{trace}", ANN, lineage=Lineage(trace_id=trace))


def folded(*kinds: RecallKind) -> duckdb.DuckDBPyConnection:
    """A short memory and another one, served by recalls of these kinds; the one is promoted, the other one rated."""
    return view_of(
        stored(
            [
                saved("k1", ANN, scopes=[ANN], memory=MOOD),
                saved("k2", ANN, scopes=[ANN], memory=Memory(layer="semantic")),
                *(served(kind, f"t{n}") for n, kind in enumerate(kinds)),
                NewEvent(KnowledgeRated(verdict="helpful", case=Case(trace_id="t0")), "k2", ANN),
                NewEvent(KnowledgePromoted(cause="recalled"), "k1", NODE),
            ]
        )
    ).con


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_gives_no_credit_and_every_other_recall_does(kind: RecallKind) -> None:
    con = folded(kind)
    credit = "not_served" if kind == "page" else "served"
    assert rows(con, "SELECT credit, verdict FROM feedback") == [(credit, "helpful")]
    assert rows(con, "SELECT supporting FROM knowledge_state WHERE id = 'k2'") == [(int(kind != "page"),)]
    assert rows(con, "SELECT count(*) FROM recalls WHERE kind = 'page'") == [(2 * (kind == "page"),)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_renews_and_promotes_no_memory(kind: RecallKind) -> None:
    con = folded(*[kind] * PROMOTING_RECALLS)
    counted = kind != "page"
    assert rows(con, "SELECT count(*) FROM memory_recalls") == [(PROMOTING_RECALLS * counted,)]
    assert rows(con, "SELECT layer FROM knowledge WHERE id = 'k1'") == [("semantic" if counted else "short",)]
    assert len(rows(con, "FROM refused_events")) == 1 - counted


def test_what_is_only_looked_at_was_never_recalled_and_never_served() -> None:
    looked, recalled = folded("page", "page"), folded("page", "search", "page")
    served_last = "SELECT times_served, recall_id, query FROM last_served WHERE id = 'k2'"
    assert rows(looked, served_last) == [(0, None, None)]
    assert rows(recalled, served_last) == [(1, "recall-search-t1", "q")]
    (never,), (once,) = (rows(con, "SELECT never_recalled FROM memory_health") for con in (looked, recalled))
    assert (never, once) == ((1,), (0,))
    assert rows(looked, "FROM funnel") == []
    assert {kind for (kind,) in rows(recalled, "SELECT kind FROM funnel")} == {"search"}


def test_lineage_tells_a_look_from_a_use() -> None:
    steps, edges, _ = ask.links(folded("page", "search"), "default", Caller(), "k2") or ([], [], False)
    assert [(step["entity_id"], step["role"]) for step in steps if step["entity"] == "recall"] == [
        ("recall-page-t0", "mention"),
        ("recall-search-t1", "use"),
    ]
    shown = {edge["relation"]: edge["entity_id"] for edge in edges if edge["entity"] == "recall"}
    assert shown == {"shown": "recall-page-t0", "served": "recall-search-t1"}

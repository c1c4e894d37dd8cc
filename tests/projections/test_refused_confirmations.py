"""A large batch whose confirmations are all refused is folded, with the verdicts beside them."""

from __future__ import annotations

from kledger.contract.knowledge import Case
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRated, KnowledgeSaved
from tests.projections.histories import stored, view_of

OWNER = "user:ann"
MANY = 100
"""Verdicts of a batch that is folded as a set."""


def test_verdicts_count_beside_confirmations_that_are_all_refused() -> None:
    saved = KnowledgeSaved(types=["tool"], task="t", content="c", scopes=[OWNER], owner=OWNER)
    rated = [NewEvent(KnowledgeRated(verdict="helpful", case=Case(task=f"{n}")), "known", OWNER) for n in range(MANY)]
    unknown = NewEvent(KnowledgeConfirmed(case=Case(task="t")), "nobody-knows", OWNER)
    bench = view_of(stored([NewEvent(saved, "known", OWNER), *rated, unknown]))
    assert bench.con.execute("SELECT count(*), min(verdict), max(verdict) FROM feedback").fetchall() == [
        (MANY, "helpful", "helpful")
    ]
    assert bench.con.execute("SELECT count(*) FROM refused_events").fetchall() == [(1,)]

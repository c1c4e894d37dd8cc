"""A broker whose clock goes backwards: the order is that of positions, and no view depends on the hands of a clock."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from kledger.contract.scopes import Caller
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised
from projections.engine import batch
from projections.live.rebuild import position_at
from projections.views.knowledge.ask import versions
from projections.views.lineage import ask as lineage
from tests.integrity.logs import ListedLedger
from tests.projections.histories import rows, saved, state, stored, view_of

HOUR_NS = 3_600_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def history() -> list[StoredEvent]:
    """A save and nineteen changes, whose stored times jump to and fro by hours."""
    chance = random.Random(3)
    events = [saved("k1", content="at 1")]
    for position in range(2, 21):
        fact = KnowledgeRevised(content=f"at {position}") if position % 2 else KnowledgeRated(verdict="helpful")
        events.append(NewEvent(fact, "k1", "agent:a"))
    return [e._replace(stored_ns=e.stored_ns + chance.randint(-5, 5) * HOUR_NS) for e in stored(events)]


@pytest.mark.parametrize("few", [True, False])
def test_versions_follow_positions_whatever_the_clock_said(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 64 if few else 0)
    log = history()
    times = [event.stored_ns for event in log]
    assert times != sorted(times)
    bench = view_of(log)
    asked = "SELECT version, content, valid_from, valid_to FROM knowledge_versions ORDER BY version"
    revised = [1, *range(3, 21, 2)]
    assert rows(bench.con, asked) == [
        (version, f"at {at}", at, ended)
        for version, (at, ended) in enumerate(zip(revised, [*revised[1:], None], strict=True), 1)
    ]
    assert rows(bench.con, "SELECT content, helpful FROM knowledge") == [("at 19", 11)]
    assert rows(bench.con, "SELECT content FROM knowledge_as_of(6)") == [("at 5",)]
    told = versions(bench.con.cursor(), "default", Caller(), "k1")
    assert [one["version"] for one in told] == sorted(one["version"] for one in told)


def test_the_view_is_the_same_in_any_batches_and_delivered_again() -> None:
    log = history()
    whole = state(view_of(log))
    assert state(view_of(log, cuts=[1, 2, 7, 13])) == whole
    assert state(view_of(log, cuts=list(range(20)))) == whole


async def test_a_moment_is_one_position_in_sql_over_http_and_for_a_replay_whatever_publishers_and_clocks_say() -> None:
    """An event that its publisher dates in 2099 is in the log since it was kept there, and no later moment lacks it."""
    log = history()
    told = orjson.loads(log[4].body) | {"time": "2099-03-05T12:00:00Z"}
    log[4] = log[4]._replace(body=orjson.dumps(told))
    log = [event._replace(stored_ns=event.stored_ns + 789) for event in log]  # views tell microseconds
    bench = view_of(log)
    assert rows(bench.con, "SELECT count(*) FROM refused_events") == [(0,)]
    kept = [event.stored_ns // 1_000 for event in log]
    for microseconds in sorted({at + beside for at in kept for beside in (-1, 0, 1)}):
        moment = EPOCH + timedelta(microseconds=microseconds)
        expected = next((n for n, at in enumerate(kept) if at > microseconds), len(log))
        assert rows(bench.con, f"SELECT position_of('{moment.isoformat()}')") == [(expected,)]
        assert lineage.position_at(bench.con.cursor(), moment)[0] == expected
        assert await position_at(ListedLedger(log), moment) == expected
    assert rows(bench.con, "SELECT content FROM knowledge_as_of(now())") == [("at 19",)]

"""After their retention the views keep of recalls what is counted, and nothing else, as the log alone says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import duckdb
import orjson
import pytest

from kledger.contract.errors import InvalidPayload
from kledger.contract.knowledge import Case
from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated
from ledger.events.recall import Ranking, RecallServed, ServedItem
from ledger.privacy.sealed import ERASED
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.digest import RelationDigest
from projections.engine.duckdb import open_view
from projections.engine.registry import LANES
from projections.fold_kit.page import Window
from projections.fold_kit.workbench import Workbench
from projections.live.persons import embedded_hashes, left_in_clear
from projections.overview.numbers import overview
from projections.views.events.sizes import event_bytes
from projections.views.knowledge.memory_health import health
from projections.views.lineage.ask import links
from projections.views.lineage.traces import traces
from projections.views.recalls import ask
from projections.views.recalls.ask import Wanted
from tests.projections.histories import parts, rows, saved, stored
from tests.projections.planned_digests import digests

ANN, EVE, OPERATOR = Caller(user="ann"), Caller(user="eve"), Caller()
ALL = Window(50)
MIDNIGHT = datetime(2026, 3, 5, tzinfo=UTC)
KEPT = 2
COUNTED = """SELECT position, time, org, kind, rank, item_id, actor, trace_id FROM recalls ORDER BY position, rank"""
# Rows of the day that is past its retention first.
OLD, NEW = ("r0", "r1", "r-looked", "r-nothing"), ("r2",)


def recalled(name: str, actor: str = "user:ann", kind: str = "search", *, items: Sequence[str] = ("k1",)) -> NewEvent:
    served = [ServedItem(id=item, version=1, relevance=0.5) for item in items]
    said = {"kind": kind, "query": f"asked {name}", "visible_scopes": [actor], "items": served, "view_position": 1}
    fact = RecallServed.model_validate(said | {"ranking": Ranking(policy="p", matches=[0.5 for _ in served])})
    return NewEvent(fact, name, actor, id=f"event of {name}", lineage=Lineage(f"trace of {name}", f"said {name}"))


def helped(trace: str) -> NewEvent:
    return NewEvent(KnowledgeRated(verdict="helpful", case=Case(task="t", trace_id=trace)), "k1", "user:ann")


def on_days(*days: tuple[float, NewEvent]) -> list[StoredEvent]:
    """The events, each kept so many days after midnight."""
    events = stored([event for _, event in days])
    return [
        event._replace(stored_ns=int((MIDNIGHT + timedelta(days=day)).timestamp()) * 10**9)
        for event, (day, _) in zip(events, days, strict=True)
    ]


LOG = on_days(
    (0.1, saved("k1", "user:ann")),
    (0.2, saved("k2", "user:ann")),
    (0.3, recalled("r0", items=("k1", "k1"))),
    (0.5, recalled("r1", "agent:a")),
    (0.6, recalled("r-looked", kind="page", items=("k2",))),
    (0.9, recalled("r-nothing", items=())),
    (1.1, recalled("r2")),
    (2.9, helped("trace of r0")),
    (3.0, helped("trace of r0")),
    (3.1, helped("trace of r-looked")),
    (3.2, helped("trace of r2")),
)


def view(days: int | None = KEPT, log: Sequence[StoredEvent] = LOG, cuts: Sequence[int] = ()) -> Workbench:
    bench = Workbench(open_view(None, days))
    for part in parts(log, cuts):
        fold_batch(bench, part)
    return bench


@pytest.fixture(name="con")
def _con() -> duckdb.DuckDBPyConnection:
    return view().con


def state(bench: Workbench) -> dict[str, RelationDigest]:
    return digests(bench.con)


@pytest.mark.parametrize("small", [0, 256])
def test_every_split_of_the_log_reduces_the_same_recalls(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = state(view())
    assert whole != state(view(None))
    monkeypatch.setattr(batch, "SMALL", small)
    monkeypatch.setattr(gate, "LEAST", 0)
    for cuts in ((), (7, 8), range(len(LOG))):
        assert state(view(cuts=cuts)) == whole
        assert state(view(None, cuts=cuts)) == state(view(None))


@pytest.mark.parametrize("settled", [1, 4, len(LOG)])
def test_a_rebuild_reduces_the_same_recalls_in_its_lanes(settled: int) -> None:
    bench = Workbench(open_view(None, KEPT))
    bench.open_lanes(LANES)
    for number, part in enumerate(parts(LOG, range(len(LOG)))):
        fold_batch(bench, part)
        if number % settled == 0:
            bench.settle()
    bench.settle()
    assert state(bench) == state(view())
    bench.close()


def test_a_day_is_kept_until_the_log_has_an_event_of_so_many_days_after_it() -> None:
    def left(upto: int) -> list[str]:
        return [name for (name,) in rows(view(log=LOG[:upto]).con, "SELECT entity_id FROM recall_events ORDER BY ALL")]

    assert left(8) == sorted((*OLD, *NEW))
    assert left(9) == [*NEW]


def test_a_clock_of_the_broker_that_goes_back_brings_nothing_back() -> None:
    late = on_days(*[(0.0, saved(f"k{n}")) for n in range(len(LOG))], (0.7, recalled("late")))[-1:]
    assert rows(view(log=[*LOG, *late]).con, "SELECT entity_id FROM recall_events") == [("r2",)]
    assert state(view(log=[*LOG, *late], cuts=range(12))) == state(view(log=[*LOG, *late]))


@pytest.mark.parametrize("at", [0, 6, 10])
def test_what_an_event_says_of_its_own_time_moves_nothing(at: int) -> None:
    """A publisher's clock is a year ahead, as that of a recall or of another event."""
    told = orjson.loads(LOG[at].body) | {"time": "2027-03-05T12:00:00Z"}
    ahead = [*LOG[:at], LOG[at]._replace(body=orjson.dumps(told)), *LOG[at + 1 :]]
    asked = "SELECT entity_id, stream_time FROM recall_events ORDER BY ALL"
    assert rows(view(log=ahead).con, asked) == rows(view().con, asked)
    assert rows(view(log=ahead).con, "FROM recall_retention") == rows(view().con, "FROM recall_retention")
    assert state(view(log=ahead, cuts=range(len(LOG)))) == state(view(log=ahead))


def test_all_that_counts_recalls_comes_out_the_same(con: duckdb.DuckDBPyConnection) -> None:
    whole = view(None).con
    moment = MIDNIGHT + timedelta(days=4)
    for query in (
        COUNTED,
        "SELECT position, verdict, credit FROM feedback ORDER BY position",
        "SELECT COLUMNS(*) FROM knowledge_state ORDER BY id",
        "SELECT id, times_served, last_served, actor FROM last_served ORDER BY id",
        "SELECT position, rank, item_id, verdict, verdict_position FROM funnel ORDER BY ALL",
        "SELECT position, time, stream_time, type, org, entity, actor, trace_id FROM events ORDER BY position",
        "FROM memory_health",
    ):
        assert rows(con, query) == rows(whole, query), query
    for caller in (OPERATOR, ANN, EVE):
        assert overview(con, "default", caller, moment, 30) == overview(whole, "default", caller, moment, 30)
        assert health(con, "default", caller, moment) == health(whole, "default", caller, moment)
        assert traces(con, "default", caller, 20) == traces(whole, "default", caller, 20)
    for after, upto in ((0, len(LOG)), (2, 6), (6, 7)):  # the second has recalls that are past alone
        assert event_bytes(con, after, upto) == event_bytes(whole, after, upto) != {}


def test_the_words_and_the_ids_of_what_is_past_are_gone(con: duckdb.DuckDBPyConnection) -> None:
    every = str([rows(con, f"FROM {table}") for (table,) in rows(con, "SELECT table_name FROM duckdb_tables()")])
    for name in OLD:
        for gone in (f"asked {name}", f"event of {name}", f"said {name}"):
            assert gone not in every
    assert "asked r2" in every
    past = "SELECT DISTINCT recall_id, query, item_version, relevance, match, policy FROM recalls WHERE position < 7"
    assert rows(con, past) == [(None,) * 6]
    assert rows(con, "SELECT DISTINCT event_id, entity_id, data FROM events WHERE position IN (3, 4, 5, 6)") == [
        (None, None, None)
    ]
    assert {at for (at,) in rows(con, "SELECT position FROM lineage WHERE entity = 'recall'")} == {7}


def test_what_is_listed_says_how_many_there_were_before(con: duckdb.DuckDBPyConnection) -> None:
    def told(caller: Caller, **wanted: Any) -> tuple[list[str], int]:
        found = ask.recalls(con, "default", caller, Wanted(**wanted), ALL)
        assert found.total == len(found.results)
        return [each["recall_id"] for each in found.results], found.past

    assert told(OPERATOR) == (["r2"], 4)
    assert told(ANN) == (["r2"], 3)
    assert told(EVE) == ([], 0)
    assert told(ANN, counts=True) == (["r2"], 2)
    assert told(ANN, counts=False) == ([], 1)
    assert told(OPERATOR, item="k1") == (["r2"], 2)
    assert told(OPERATOR, kind="page") == ([], 1)
    assert told(OPERATOR, trace="trace of r1") == ([], 1)
    assert told(OPERATOR, since=4, until=7) == ([], 3)
    served = ask.of_item(con, "default", ANN, "k1", ALL)
    assert ([each["recall_id"] for each in served.results], served.past) == (["r2"], 1)


def test_a_recall_that_is_past_is_told_from_one_that_never_was_to_its_actor_alone(
    con: duckdb.DuckDBPyConnection,
) -> None:
    assert ask.past_retention(con, "default", ANN, "r0") == 3
    assert ask.past_retention(con, "default", OPERATOR, "r1") == 4
    for caller, name in ((EVE, "r0"), (ANN, "r1"), (ANN, "r2"), (ANN, "never")):
        assert ask.past_retention(con, "default", caller, name) is None
    assert (ask.recall(con, "default", ANN, "r2") or {})["query"] == "asked r2"
    assert links(con, "default", ANN, "trace:trace of r1") is None
    for caller, ref, older in (
        (OPERATOR, "k1", 2),
        (ANN, "k1", 1),
        (EVE, "k1", 0),
        (OPERATOR, "trace:trace of r1", 1),
        (ANN, "trace:trace of r1", 0),
        (OPERATOR, "message:said r1", 0),
    ):
        assert ask.past_around(con, "default", caller, ref) == older, (caller, ref)


@pytest.mark.parametrize("small", [0, 256])
def test_an_event_is_counted_once_however_long_ago_it_was_first(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", small)
    monkeypatch.setattr(gate, "LEAST", 0)
    again = on_days(
        *[(4.0, saved(f"x{n}")) for n in range(len(LOG))],
        (4.0, recalled("r0")),
        (4.0, NewEvent(recalled("r0").fact, "r0", "user:eve", id="event of r0")),
    )[len(LOG) :]
    con = view(log=[*LOG, *again], cuts=[len(LOG)]).con
    assert rows(con, "SELECT position, code FROM refused_events") == [(12, "duplicate_event")]
    assert rows(con, "SELECT position FROM recall_events WHERE position > 11") == [(13,)]


def test_a_forgetting_finds_the_embeddings_of_what_was_asked_and_what_is_in_clear(
    con: duckdb.DuckDBPyConnection,
) -> None:
    whole = view(None).con
    assert embedded_hashes(con, "user:ann") == embedded_hashes(whole, "user:ann")
    assert sha256(b"asked r0").hexdigest() in embedded_hashes(con, "user:ann")
    assert left_in_clear(con, "user:ann") == left_in_clear(whole, "user:ann")
    erased = recalled("r0")
    log = on_days((0.1, NewEvent(erased.fact.model_copy(update={"query": ERASED}), "r0", "user:ann")), (9.0, saved()))
    assert rows(view(log=log).con, "SELECT count(*), count(said) FROM recall_remains") == [(1, 0)]


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_a_file_keeps_the_detail_for_a_day_at_least(days: int) -> None:
    with pytest.raises(InvalidPayload, match="1 to 36,500 days"):
        open_view(None, days)

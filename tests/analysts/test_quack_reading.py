"""Can analysts read while the node writes, and can the node still do its work behind the closed door?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from kledger.contract.errors import IllegalQuery, NodeMisconfigured, ServiceFailed
from projections.analysts.quack import QuackAddress, load_extensions, prepare, serve, stop
from projections.analysts.sql import answer_to, sql_read_only
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("quack_client.py")
BATCH = 25


def open_view(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path), config={"memory_limit": "300MB", "threads": 2})
    connection.execute("CREATE TABLE events (position BIGINT, body VARCHAR)")
    connection.execute("CREATE MACRO after(p) AS TABLE SELECT * FROM events WHERE position > p")
    prepare(connection)
    return connection


@pytest.fixture
def view(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = open_view(tmp_path / "view.duckdb")
    yield connection
    connection.close()


def write_batch(connection: duckdb.DuckDBPyConnection, first: int) -> None:
    """As the node's fold does it: Arrow in, one transaction."""
    positions = list(range(first, first + BATCH))
    arrived = pa.table({"position": positions, "body": [f"事件 {p}" for p in positions]})
    connection.register("arrived", arrived)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO events SELECT position, body FROM arrived")
    connection.execute("COMMIT")
    connection.unregister("arrived")


def test_a_reader_in_another_process_sees_whole_batches_while_the_node_writes(
    view: duckdb.DuckDBPyConnection,
) -> None:
    address = serve(view)
    batches = 30
    reader = subprocess.Popen(
        [sys.executable, str(CLIENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    orders = {"attach": address.attach_statement(), "mode": "count", "until": batches * BATCH}
    reader.stdin.write(json.dumps(orders) + "\n")
    reader.stdin.flush()
    seen = [json.loads(reader.stdout.readline())]  # attached, and reads an empty table

    failures: list[BaseException] = []
    news = threading.Condition()

    def write() -> None:
        try:
            cursor = view.cursor()
            for number in range(batches):
                write_batch(cursor, 1 + number * BATCH)
                if number % 10 == 9:
                    cursor.execute("CHECKPOINT")
                    with news:  # the reader keeps up: every tenth state is seen while writing goes on
                        assert news.wait_for(lambda: seen[-1][0] >= (number + 1) * BATCH, timeout=30)  # noqa: B023
        except BaseException as failure:
            failures.append(failure)

    writer = threading.Thread(target=write)
    writer.start()
    for line in reader.stdout:
        with news:
            seen.append(json.loads(line))
            news.notify()
    writer.join()
    reader.stdin.close()
    reader.stdout.close()
    stop(view, address)
    assert failures == []
    assert reader.wait(PATIENCE) == 0
    counts = [count for count, _ in seen]
    assert counts[0] == 0
    assert counts[-1] == batches * BATCH
    assert counts == sorted(counts)
    assert {10 * BATCH, 20 * BATCH} <= set(counts)
    assert all(count % BATCH == 0 for count in counts), "a reader saw half a transaction"
    assert all(count == last for count, last in seen)


def test_another_instance_takes_the_port_over_and_the_analyst_attaches_again(tmp_path: Path) -> None:
    old, rebuilt = open_view(tmp_path / "old.duckdb"), open_view(tmp_path / "rebuilt.duckdb")
    write_batch(rebuilt, 1)
    address = serve(old, token="the-same-token")
    analyst = duckdb.connect()
    load_extensions(analyst)
    analyst.execute(address.attach_statement())
    assert analyst.execute("SELECT count(*) FROM kl.events").fetchall() == [(0,)]

    stop(old, address)
    assert serve(rebuilt, port=address.port, token="the-same-token") == address
    old.close()

    with pytest.raises(duckdb.Error, match="Invalid connection id"):
        analyst.execute("SELECT count(*) FROM kl.events").fetchall()
    analyst.execute("DETACH kl")
    analyst.execute(address.attach_statement())
    assert analyst.execute("SELECT count(*) FROM kl.events").fetchall() == [(BATCH,)]
    stop(rebuilt, address)
    stop(rebuilt, address)
    rebuilt.close()
    analyst.close()


def test_the_node_can_still_write_spill_and_checkpoint_behind_the_closed_door(
    view: duckdb.DuckDBPyConnection,
) -> None:
    write_batch(view, 1)
    view.execute("CREATE TEMP TABLE staged AS SELECT * FROM events")
    view.execute("CREATE TABLE later (i INTEGER)")
    view.execute("CREATE OR REPLACE VIEW recent AS SELECT * FROM events WHERE position > 10")
    view.execute("BEGIN")
    view.execute("DELETE FROM events")
    view.execute("ROLLBACK")
    assert view.execute("SELECT count(*) FROM events").fetchall() == [(BATCH,)]
    # 300 MB of memory, some 500 MB to sort: it spills to the view's own temporary directory.
    sorted_rows = view.execute(
        "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY hash(range), repeat('x', 40) || range) "
        "FROM range(5_000_000))"
    ).fetchall()
    assert sorted_rows == [(5_000_000,)]
    view.execute("CHECKPOINT")


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1",
        "SET GLOBAL lock_configuration = false",
        "SET GLOBAL enable_external_access = true",
        "SET GLOBAL quack_authorization_function = 'quack_nop_authorization'",
        "ATTACH 'other.duckdb'",
        "COPY events TO 'events.csv'",
        "FROM read_text('events.csv')",
    ],
)
def test_the_door_cannot_be_opened_again_even_by_the_node(statement: str, view: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="configuration"):
        view.execute(statement)


def test_an_unprepared_view_is_not_served() -> None:
    connection = duckdb.connect()
    with pytest.raises(ServiceFailed, match="prepare"):
        serve(connection)
    connection.close()


@pytest.mark.parametrize("left_out", ["lock_configuration", "enable_external_access", "quack_authorization_function"])
def test_a_view_of_which_one_setting_was_left_as_it_is_is_not_served(left_out: str) -> None:
    made = {"quack_authorization_function": "kledger_admit", "enable_external_access": "false"}
    connection = duckdb.connect()
    load_extensions(connection)
    for name, value in {**made, "lock_configuration": "true"}.items():
        if name != left_out:
            connection.execute(f"SET GLOBAL {name} = '{value}'")
    with pytest.raises(ServiceFailed, match="not closed to writing"):
        serve(connection)
    connection.close()


def test_a_view_is_served_on_loopback_only(view: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(IllegalQuery, match="TLS proxy"):
        serve(view, host="0.0.0.0")


def test_a_taken_port_is_named(view: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    other = open_view(tmp_path / "other.duckdb")
    address = serve(other)
    with pytest.raises(NodeMisconfigured, match=rf":{address.port} \(Address already in use\): choose .* --quack PORT"):
        serve(view, port=address.port)
    stop(other, address)
    other.close()


def test_an_address_hides_its_token_when_it_is_printed() -> None:
    address = QuackAddress("127.0.0.1", 9494, "it's secret")
    assert "secret" not in repr(address)
    assert address.attach_statement() == "ATTACH 'quack:127.0.0.1:9494' AS kl (TOKEN 'it''s secret')"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("INTERVAL '1' day + INTERVAL '2 seconds'", "1 day 00:00:02"),
        ("[INTERVAL '1' month]", "[1 month]"),
        ("'101'::BIT", "101"),
        ("'\\x00a'::BLOB", "\\x00a"),
        ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"),
        ("170141183460469231731687303715884105728::BIGNUM", "170141183460469231731687303715884105728"),
        ("TIMETZ '10:00:00+05'", "10:00:00+05"),
        ("{'a': '1'::BIT}", "{'a': 1}"),
        ("'a'::VARIANT", "a"),
    ],
)
def test_what_arrow_has_as_something_else_is_told_as_duckdb_writes_it(
    value: str, told: str, view: duckdb.DuckDBPyConnection
) -> None:
    answer = answer_to(view, f'SELECT 1 AS "a""b", {value} AS a, 2 AS a; -- both have one name')
    assert (answer["columns"], answer["rows"]) == (['a"b', "a", "a"], [[1, told, 2]])


def test_one_select_is_answered_as_arrow(view: duckdb.DuckDBPyConnection) -> None:
    write_batch(view, 1)
    answer = sql_read_only(view, "SELECT position, body FROM after(10) ORDER BY position LIMIT 2")
    assert answer.to_pylist() == [{"position": 11, "body": "事件 11"}, {"position": 12, "body": "事件 12"}]
    nothing = sql_read_only(view, "SELECT position, body FROM events WHERE false")
    assert (nothing.column_names, nothing.num_rows) == (["position", "body"], 0)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM events", "DELETE is not admitted"),
        ("INSERT INTO events VALUES (1, '')", "INSERT is not admitted"),
        ("SELECT 1; DELETE FROM events", "one of several statements"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT current_setting('threads')", "current_setting"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM events", "nothing"),
        ("SELECT '\ud800'", "not Unicode"),
        ("SELECT error('mine')", "mine"),
        (f"SELECT '{'漢' * 64}'::JSON", "cannot be read"),  # DuckDB cuts the text within a character
        ("SELECT CAST(if(range = 50_000, 'x', '1') AS INTEGER) FROM range(60_000)", "Could not convert"),
        ("FROM arrived", "arrived does not exist"),
        ("FROM 'events.csv'", "looks like a file"),
    ],
)
def test_anything_else_is_an_illegal_query(statement: str, reason: str, view: duckdb.DuckDBPyConnection) -> None:
    write_batch(view, 1)
    with pytest.raises(IllegalQuery, match=reason):
        sql_read_only(view, statement)
    assert view.execute("SELECT count(*) FROM events").fetchall() == [(BATCH,)]


def test_a_query_without_end_is_stopped(view: duckdb.DuckDBPyConnection) -> None:
    endless = "SELECT count(*) FROM range(1_000_000_000) a, range(1_000_000_000) b WHERE a.range * b.range = -1"
    with pytest.raises(IllegalQuery, match=r"longer than 0\.3 seconds"):
        sql_read_only(view, endless, timeout_seconds=0.3)
    assert sql_read_only(view, "SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_long_answer_is_stopped_in_the_middle(view: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(IllegalQuery, match=r"longer than 0\.3 seconds"):
        sql_read_only(view, "FROM range(1_000_000_000_000)", timeout_seconds=0.3, row_limit=10**13, byte_limit=10**15)


def test_an_answer_without_end_is_stopped(view: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(IllegalQuery, match="add a LIMIT"):
        sql_read_only(view, "FROM range(1_000_000_000)", row_limit=1000)
    assert sql_read_only(view, "FROM range(1000)", row_limit=1000).num_rows == 1000


@pytest.mark.parametrize("through", ["FROM kl.moments", "FROM kl.query('FROM moments')"])
def test_times_beyond_the_calendar_reach_a_client_as_they_are(view: duckdb.DuckDBPyConnection, through: str) -> None:
    edges = [
        "-infinity",
        "0044-03-15 (BC) 00:00:00+00",
        "2026-01-01 00:00:00+00",
        "294246-01-01 00:00:00+00",
        "infinity",
    ]
    view.execute("CREATE TABLE moments (moment TIMESTAMPTZ)")
    view.executemany("INSERT INTO moments VALUES (?::TIMESTAMPTZ)", [[one] for one in reversed(edges)])
    address = serve(view)
    analyst = duckdb.connect()
    load_extensions(analyst)
    analyst.execute("SET TimeZone = 'UTC'")
    analyst.execute(address.attach_statement())
    assert analyst.execute(f"SELECT moment::VARCHAR FROM ({through}) ORDER BY moment").fetchall() == [
        (one,) for one in edges
    ]
    later = f"SELECT count(*) FROM ({through}) WHERE moment > '2026-01-01 00:00:00+00'"
    assert analyst.execute(later).fetchall() == [(2,)]
    assert len(analyst.execute(through).fetchall()) == len(edges), "Python has a value for each of them"
    stop(view, address)
    analyst.close()

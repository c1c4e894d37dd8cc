"""Does the guard tell reading from everything else, for this version of DuckDB?"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import duckdb
import pytest

from projections.analysts.statement_guard import LONGEST_STATEMENT, StatementGuard, build_guard

# Every volatile built-in of DuckDB 1.5.5. A new version with another list has to be looked at: is the new one
# harmless? Then it may be admitted in statement_guard; and it is added here in either case.
VOLATILE_IN_1_5_5 = {
    *("current_connection_id", "current_query", "current_query_id", "current_transaction_id", "currval"),
    *("error", "gen_random_uuid", "nextval", "random", "setseed", "sleep_ms", "stats"),
    *("uuid", "uuidv4", "uuidv7", "write_log"),
}


@pytest.fixture(scope="module")
def guard() -> Iterator[StatementGuard]:
    connection = duckdb.connect()
    connection.execute("CREATE MACRO lineage_of(x) AS TABLE SELECT x AS ref")
    connection.execute("CREATE MACRO twice(x) AS x * 2")
    yield build_guard(connection)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT #1, #2 FROM t",
        "FROM main.t",
        "TABLE t",
        "VALUES (1)",
        "select 1;",
        "SELECT 1; -- done",
        "/* first */ SELECT 1",
        "DESCRIBE t",
        "SHOW TABLES",
        "SUMMARIZE t",
        "FROM lineage_of('trace:1')",
        "SELECT twice(x), TWICE(x) FROM t",
        "WITH RECURSIVE r AS (SELECT 1 x UNION ALL SELECT x + 1 FROM r WHERE x < 9) FROM r",
        "WITH a AS MATERIALIZED (FROM t) SELECT * FROM a UNION ALL SELECT * FROM a",
        "PIVOT t ON x IN ('a', 'b') USING count(*)",
        "UNPIVOT t ON a, b INTO NAME n VALUE v",
        "SELECT * FROM t ASOF JOIN u USING (x)",
        "SELECT tags->>'$.domain', tags.domain, count(*) FILTER (helpful > 0) FROM knowledge GROUP BY ALL",
        "SELECT [i * 2 FOR i IN l], list_filter(l, lambda x: x > 1), {'a': 1}, MAP {'a': 1}, l[1:2] FROM t",
        "SELECT unnest(types), if(a, b, c), ifnull(a, b), coalesce(a, b), TRY_CAST(a AS INTEGER) FROM t",
        "SELECT row_number() OVER w, lag(x) OVER w, ntile(4) OVER w FROM t WINDOW w AS (ORDER BY x)",
        "SELECT time AT TIME ZONE 'Asia/Shanghai', now() - INTERVAL 1 DAY, current_date FROM events",
        "SELECT quantile_cont(score, 0.5), arg_max(id, score), string_agg(id, ',' ORDER BY id) FROM t",
        "SELECT grouping(x), count(*) FROM t GROUP BY ROLLUP (x)",
        "SELECT x FROM t, LATERAL (SELECT t.y AS x), unnest(t.l) AS u(z)",
        "SELECT '知识' AS \"标题\" FROM t WHERE content LIKE '%账本%'",
        "SELECT 'DELETE FROM t; nextval(1)' AS \"nextval\"",
        "SELECT random(), uuid()",
    ],
)
def test_reading_is_admitted(statement: str, guard: StatementGuard) -> None:
    assert guard.refusal(statement) is None


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("delete from t", "DELETE is not admitted"),
        ("-- a\n/* b */ ; drop table t", "DROP is not admitted"),
        ("BEGIN", "not needed"),
        ("PIVOT t ON x USING count(*)", "IN (...)"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("SELECT 1\x00", "NUL"),
        ("SELECT '" + "x" * LONGEST_STATEMENT + "'", "characters"),
        ("WITH knowledge AS (FROM range(nextval('s'))) FROM knowledge", "nextval()"),
        ("FROM t AT (VERSION => nextval('s'))", "nextval()"),
        ("SELECT x FROM t ORDER BY nextval('s')", "nextval()"),
        ("SELECT * REPLACE (nextval('s') AS x) FROM t", "nextval()"),
        ("SELECT COLUMNS(c -> current_setting(c) = '') FROM t", "current_setting()"),
        ("SHOW pg_settings", "pg_settings"),
        ('DESCRIBE SELECT * FROM "PG_SETTINGS"', "pg_settings"),
        ("FROM '/etc/passwd'", "looks like a file"),
        ("FROM 's3://bucket/x.parquet'", "looks like a file"),
    ],
)
def test_a_refusal_names_its_reason(statement: str, part: str, guard: StatementGuard) -> None:
    reason = guard.refusal(statement)
    assert reason is not None
    assert reason.startswith("This ledger view is read-only: ")
    assert part in reason


@pytest.mark.parametrize(
    "statement", ["SELECT " + "[" * 900 + "1" + "]" * 900, "SELECT " + "abs(" * 900 + "1" + ")" * 900]
)
def test_a_statement_that_is_nested_beyond_all_reading_is_refused_as_that(
    statement: str, guard: StatementGuard
) -> None:
    """It ended in `Python exception occurred while executing the UDF: RecursionError`."""
    assert "the statement is nested too deeply" in (guard.refusal(statement) or "")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT cuont(*) FROM t", "there is no function cuont() here: is count() meant?"),
        ("SELECT later_made_macro(1)", "there is no function later_made_macro() here."),
        ("SELECT a FROM t WHERE date_trnc('day', time) > '2026-01-01'", "date_trnc() here: is date_trunc() meant?"),
        ("FROM generate_serie(1, 3)", "there is no function generate_serie() here: is generate_series() meant?"),
    ],
)
def test_a_function_that_is_none_is_not_called_forbidden(statement: str, told: str, guard: StatementGuard) -> None:
    """It was told as one that is not admitted, as if an operator could admit it."""
    reason = guard.refusal(statement)
    assert reason is not None
    assert reason.startswith("The statement does not run: ")
    assert told in reason


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELECT id FROM kl.knowledge", "write knowledge alone"),
        ("SELECT 1 FROM t JOIN KL.main.feedback f ON f.x = t.x", "write feedback alone"),
        ("DESCRIBE kl.knowledge", "write knowledge alone"),
        ("FROM kl.lineage_of('trace:1')", "write lineage_of(…) alone"),
        ("FROM kl.query($$ FROM knowledge $$)", "send what stands in its $$ … $$ alone"),
    ],
)
def test_the_name_that_the_ledger_has_where_it_is_attached_is_told_to_be_none_here(
    statement: str, told: str, guard: StatementGuard
) -> None:
    refusal = guard.refusal(statement) or ""
    assert refusal.startswith("The statement does not run: kl is the ledger's name in the DuckDB that attached it")
    assert told in refusal


@pytest.mark.parametrize("name", ["nextval", "sleep_ms", "read_text", "quack_serve", "kledger_anything", "read_csv"])
def test_a_function_that_duckdb_has_is_told_as_one_that_is_not_admitted(name: str, guard: StatementGuard) -> None:
    for statement in (f"SELECT {name}('x')", f"FROM {name}('x')"):
        assert "is not admitted" in (guard.refusal(statement) or "")


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT", "SELECT clause without selection list"),
        ("SELEC 1; DROP TABLE t", 'syntax error at or near "SELEC"'),
        ("SELECT 'a", "unterminated quoted string"),
    ],
)
def test_what_does_not_parse_is_refused_in_the_words_of_duckdb(
    statement: str, sentence: str, guard: StatementGuard
) -> None:
    reason = guard.refusal(statement)
    assert reason is not None
    assert reason.startswith("The statement does not parse: ")
    assert sentence in reason
    assert "read-only" not in reason


def test_a_refusal_lists_every_word_that_counts_as_a_select(guard: StatementGuard) -> None:
    reason = guard.refusal("DROP TABLE t")
    assert reason is not None
    for word, statement in {"SHOW": "SHOW TABLES", "DESCRIBE": "DESCRIBE t", "SUMMARIZE": "SUMMARIZE t"}.items():
        assert guard.refusal(statement) is None
        assert word in reason


def test_each_volatile_function_of_this_duckdb_was_looked_at() -> None:
    fresh = duckdb.connect()
    volatile = fresh.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'aggregate') AND (has_side_effects OR stability = 'VOLATILE')"
    ).fetchall()
    fresh.close()
    assert {name for (name,) in volatile} == VOLATILE_IN_1_5_5


def test_no_table_function_that_takes_a_file_or_a_query_is_admitted(guard: StatementGuard) -> None:
    suspicious = (
        "read_",
        "scan",
        "glob",
        "query",
        "quack",
        "parquet",
        "checkpoint",
        "log",
        "secret",
        "setting",
    )
    assert [name for name in guard.table_functions if any(part in name for part in suspicious)] == []


def test_views_that_show_settings_logs_or_statements_are_refused(guard: StatementGuard) -> None:
    assert guard.refused_relations == {"duckdb_logs", "pg_settings", "pg_prepared_statements"}


def test_functions_of_the_nodes_own_python_are_not_for_analysts() -> None:
    connection = duckdb.connect()
    connection.create_function("peek", lambda path: path, ["VARCHAR"], "VARCHAR")
    reason = build_guard(connection).refusal("SELECT peek('x')")
    connection.close()
    assert reason is not None
    assert "peek()" in reason


def test_many_threads_may_ask_at_once(guard: StatementGuard) -> None:
    wrong: list[str] = []

    def ask(number: int) -> None:
        wrong.extend(
            f"thread {number}"
            for _ in range(50)
            if guard.refusal(f"SELECT {number}") is not None or guard.refusal("DROP TABLE t") is None
        )

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

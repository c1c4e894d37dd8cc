"""What can an analyst with a valid token break? Nothing: every attack comes from a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from projections.analysts.quack import QuackAddress, prepare, serve, stop

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("quack_client.py")
CLOUD_KEY = "cloud-key-of-the-node"

# What it is, where it is said ("server": the text goes over the wire; "client": DuckDB turns it into protocol
# messages against the attached catalog), and the statement, in which {host_file} and the like are filled in.
ATTACKS: dict[str, tuple[str, str]] = {
    "inserting a row": ("server", "INSERT INTO knowledge VALUES ('x', 'y', 1)"),
    "inserting a row through the attached table": ("client", "INSERT INTO kl.knowledge VALUES ('x', 'y', 1)"),
    "inserting from a query of the client": (
        "client",
        "INSERT INTO kl.knowledge SELECT 'x' || range, 'y', 1 FROM range(5000)",
    ),
    "the made-up insert that asks for an append": ("server", "INSERT INTO main.knowledge VALUES (NULL)"),
    "an insert behind a comment": ("server", "/* SELECT 1 */ INSERT INTO knowledge VALUES ('x', 'y', 1)"),
    "an insert that returns rows": ("server", "INSERT INTO knowledge VALUES ('x', 'y', 1) RETURNING *"),
    "copying a file of the client into a table": (
        "client",
        "COPY kl.knowledge FROM '{host_file}' (HEADER false)",
    ),
    "updating": ("server", "UPDATE knowledge SET content = 'gone'"),
    "updating through the attached table": ("client", "UPDATE kl.knowledge SET content = 'gone'"),
    "deleting": ("server", "DELETE FROM knowledge"),
    "deleting through the attached table": ("client", "DELETE FROM kl.knowledge"),
    "truncating": ("server", "TRUNCATE knowledge"),
    "merging": (
        "server",
        "MERGE INTO knowledge k USING (SELECT 'k1' AS id) s ON k.id = s.id WHEN MATCHED THEN DELETE",
    ),
    "dropping a table": ("server", "DROP TABLE knowledge"),
    "dropping through the attached catalog": ("client", "DROP TABLE kl.knowledge"),
    "dropping a view through the attached catalog": ("client", "DROP VIEW kl.helpful"),
    "altering": ("server", "ALTER TABLE knowledge ADD COLUMN x INTEGER"),
    "commenting": ("server", "COMMENT ON TABLE knowledge IS 'mine'"),
    "creating a table": ("server", "CREATE TABLE mine AS SELECT 1"),
    "creating a table through the attached catalog": ("client", "CREATE TABLE kl.mine (i INTEGER)"),
    "creating a table from a query of the client": ("client", "CREATE TABLE kl.mine AS SELECT 1 AS i"),
    "creating a temporary table": ("server", "CREATE TEMP TABLE mine AS SELECT 1"),
    "creating a view": ("server", "CREATE OR REPLACE VIEW helpful AS SELECT 1"),
    "creating a schema": ("server", "CREATE SCHEMA mine"),
    "creating a schema through the attached catalog": ("client", "CREATE SCHEMA kl.mine"),
    "creating a macro": ("server", "CREATE MACRO nextval(x) AS 1"),
    "creating a temporary macro": ("server", "CREATE TEMP MACRO f(x) AS 1"),
    "creating a secret": ("server", "CREATE SECRET (TYPE quack, TOKEN 'abcd')"),
    "creating an index": ("server", "CREATE INDEX i ON knowledge (id)"),
    "creating a sequence": ("server", "CREATE SEQUENCE mine"),
    "creating a type": ("server", "CREATE TYPE mine AS ENUM ('a')"),
    "copying a table to a file": ("server", "COPY knowledge TO '{directory}/stolen.csv'"),
    "copying a query to a file": ("server", "COPY (SELECT 1) TO '{directory}/stolen.parquet'"),
    "copying from a file": ("server", "COPY knowledge FROM '{host_file}'"),
    "exporting the database": ("server", "EXPORT DATABASE '{directory}/stolen'"),
    "importing a database": ("server", "IMPORT DATABASE '{directory}'"),
    "attaching a file": ("server", "ATTACH '{directory}/other.duckdb' AS other"),
    "attaching memory": ("server", "ATTACH ':memory:' AS other"),
    "attaching the server to itself": ("server", "ATTACH 'quack:127.0.0.1:{port}' AS self (TOKEN '{token}')"),
    "detaching": ("server", "DETACH view"),
    "using another schema": ("server", "USE memory"),
    "installing an extension": ("server", "INSTALL spatial"),
    "installing from a repository": ("server", "INSTALL h3 FROM community"),
    "loading an extension": ("server", "LOAD httpfs"),
    "loading a file": ("server", "LOAD '{host_file}'"),
    "setting": ("server", "SET threads = 1"),
    "setting for all": ("server", "SET GLOBAL enable_external_access = true"),
    "switching the guard off": (
        "server",
        "SET GLOBAL quack_authorization_function = 'quack_nop_authorization'",
    ),
    "unlocking the configuration": ("server", "SET GLOBAL lock_configuration = false"),
    "resetting": ("server", "RESET threads"),
    "setting a variable": ("server", "SET VARIABLE x = 1"),
    "a pragma that sets": ("server", "PRAGMA enable_profiling"),
    "a pragma that assigns": ("server", "PRAGMA threads = 1"),
    "a pragma that writes a file": ("server", "PRAGMA profiling_output = '{directory}/stolen.json'"),
    "a pragma that only looks": ("server", "PRAGMA table_info('knowledge')"),
    "calling": ("server", "CALL enable_logging()"),
    "checkpointing": ("server", "CHECKPOINT"),
    "checkpointing by force": ("server", "FORCE CHECKPOINT"),
    "checkpointing by a function": ("server", "FROM checkpoint()"),
    "checkpointing by a function, by force": ("server", "FROM force_checkpoint()"),
    "vacuuming": ("server", "VACUUM"),
    "analyzing": ("server", "ANALYZE"),
    "explaining and so running an insert": (
        "server",
        "EXPLAIN ANALYZE INSERT INTO knowledge VALUES ('x', 'y', 1)",
    ),
    "explaining": ("server", "EXPLAIN SELECT 1"),
    "preparing": ("server", "PREPARE p AS DELETE FROM knowledge"),
    "executing": ("server", "EXECUTE p"),
    "deallocating": ("server", "DEALLOCATE p"),
    "leaving a transaction open": ("server", "BEGIN"),
    "leaving a transaction open, in other words": ("server", "START TRANSACTION"),
    "committing": ("server", "COMMIT"),
    "rolling back": ("server", "ROLLBACK"),
    "two statements": ("server", "SELECT 1; DROP TABLE knowledge"),
    "two statements, the writing one first": ("server", "DROP TABLE knowledge; SELECT 1"),
    "two statements, the second after an unending comment": (
        "server",
        "SELECT 1; /* */ DROP TABLE knowledge --",
    ),
    "two statements over a NUL": ("server", "SELECT 1;\x00 DROP TABLE knowledge"),
    "a statement after unusual spaces": ("server", "\u00a0\u2003DROP\u00a0TABLE\u2003knowledge"),
    "a full-width keyword": ("server", "ＤＲＯＰ TABLE knowledge"),
    "no statement": ("server", ""),
    "only a comment": ("server", "-- nothing"),
    "a data-modifying common table expression": (
        "server",
        "WITH gone AS (DELETE FROM knowledge RETURNING *) SELECT * FROM gone",
    ),
    "a select into": ("server", "SELECT * INTO mine FROM knowledge"),
    "a pivot that creates a type": ("server", "PIVOT knowledge ON id USING sum(helpful)"),
    "moving a sequence": ("server", "SELECT nextval('ids')"),
    "moving a sequence by a method call": ("server", "SELECT ('ids').nextval()"),
    "moving a sequence by a quoted name": ("server", "SELECT \"NEXTVAL\"('ids')"),
    "moving a sequence by a qualified name": ("server", "SELECT main.nextval('ids')"),
    "moving a sequence in a subquery": ("server", "SELECT 1 WHERE 1 IN (SELECT nextval('ids'))"),
    "moving a sequence in a lambda": ("server", "SELECT list_transform([1], lambda x: nextval('ids'))"),
    "moving a sequence in a limit": ("server", "FROM knowledge LIMIT (SELECT nextval('ids'))"),
    "moving a sequence in a window": ("server", "SELECT sum(1) OVER (ORDER BY nextval('ids'))"),
    "moving a sequence in an aggregate's filter": (
        "server",
        "SELECT count(*) FILTER (nextval('ids') > 0) FROM knowledge",
    ),
    "moving a sequence in a recursive expression": (
        "server",
        "WITH RECURSIVE a AS (SELECT 1 x UNION SELECT nextval('ids') FROM a WHERE x < 3) FROM a",
    ),
    "moving a sequence in a table function": ("server", "FROM range(nextval('ids'))"),
    "seeding the random numbers": ("server", "SELECT setseed(0.5)"),
    "sleeping": ("server", "SELECT sleep_ms(10)"),
    "sleeping as in PostgreSQL": ("server", "SELECT pg_sleep(0.01)"),
    "writing the log": ("server", "SELECT write_log('hello')"),
    "switching logging on": ("server", "FROM enable_logging()"),
    "reading the log": ("server", "FROM duckdb_logs"),
    "a query in a string": ("server", "FROM query('SELECT 1')"),
    "a table name in a string": ("server", "FROM query_table('pg_settings')"),
    "a table name in a macro's string": ("server", "FROM histogram('pg_settings', 'name')"),
    "a serialized query": ("server", "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))"),
    "planning a query in a string": ("server", "SELECT json_serialize_plan('SELECT 1')"),
    "reading a text file of the host": ("server", "FROM read_text('{host_file}')"),
    "reading a binary file of the host": ("server", "FROM read_blob('{host_file}')"),
    "reading a csv file of the host": ("server", "FROM read_csv('{host_file}')"),
    "reading a json file of the host": ("server", "FROM read_json('{host_file}')"),
    "reading a parquet file of the host": ("server", "FROM parquet_scan('{host_file}')"),
    "reading the metadata of a file": ("server", "FROM parquet_metadata('{host_file}')"),
    "reading a database file of the host": ("server", "FROM read_duckdb('{host_file}')"),
    "reading a file by its name alone": ("server", "FROM '{host_file}'"),
    "sniffing a file": ("server", "FROM sniff_csv('{host_file}')"),
    "listing a directory": ("server", "FROM glob('{directory}/*')"),
    "reading a file in a subquery": ("server", "SELECT (SELECT content FROM read_text('{host_file}'))"),
    "asking another machine": ("server", "FROM read_csv('http://127.0.0.1:{port}/x.csv')"),
    "asking another machine over Quack": (
        "server",
        "FROM quack_query('quack:127.0.0.1:{port}', 'SELECT 1', token := '{token}')",
    ),
    "asking by catalog name": ("server", "FROM quack_query_by_name('kl', 'SELECT 1')"),
    "starting a server of their own": (
        "server",
        "FROM quack_serve('quack:127.0.0.1:{other_port}', token := 'abcd')",
    ),
    "stopping the server": ("server", "FROM quack_stop('quack:127.0.0.1:{port}')"),
    "listing the servers": ("server", "FROM quack_server_list()"),
    "watching other analysts": ("server", "FROM quack_active_connections()"),
    "renaming the node": ("server", "FROM quack_identify(name := 'mine')"),
    "asking who the node is": ("server", "FROM whoami()"),
    "calling the guard itself": ("server", "SELECT kledger_admit('s', 'SELECT 1')"),
    "reading one setting": ("server", "SELECT current_setting('s3_secret_access_key')"),
    "reading the settings": ("server", "FROM duckdb_settings()"),
    "reading the settings as in PostgreSQL": ("server", "FROM pg_catalog.pg_settings"),
    "describing the settings": ("server", "SUMMARIZE pg_settings"),
    "reading the secrets": ("server", "FROM duckdb_secrets()"),
    "asking which secret is used": ("server", "FROM which_secret('s3://bucket/x', 's3')"),
    "adding a key": ("server", "PRAGMA add_parquet_key('k', '0123456789112345')"),
    "reading an environment variable": ("server", "SELECT getenv('HOME')"),
    "scanning memory by address": ("server", "FROM arrow_scan(1, 2, 3)"),
    "scanning a variable of the node": ("server", "FROM pandas_scan(1)"),
    "naming a variable of the node": ("server", "FROM served"),
    "an internal function": ("server", "SELECT __internal_decompress_integral_integer(1::UTINYINT, 2)"),
    "a statement of a million characters": ("server", "SELECT '" + "x" * 1_000_000 + "'"),
    "ten thousand brackets": ("server", "SELECT " + "[" * 10_000 + "]" * 10_000),
}

ADMITTED: dict[str, tuple[str, str, list[list[object]]]] = {
    "a table": ("client", "SELECT id FROM kl.knowledge ORDER BY id", [["k1"], ["k2"], ["k3"]]),
    "a view": ("client", "SELECT id FROM kl.helpful ORDER BY id", [["k2"], ["k3"]]),
    "an aggregate": ("client", "SELECT sum(helpful) FROM kl.knowledge WHERE id > 'k1'", [[3]]),
    "a join with a table of one's own": (
        "client",
        "SELECT k.id FROM kl.knowledge k JOIN (VALUES ('k2')) mine(id) USING (id)",
        [["k2"]],
    ),
    "a pivot on one's own side": (
        "client",
        "SELECT count(*) FROM (PIVOT (SELECT * FROM kl.knowledge) ON id IN ('k1', 'k2') USING sum(helpful))",
        [[3]],
    ),
    "a table macro, over the wire": ("server", "SELECT id FROM knowledge_above(1)", [["k3"]]),
    "a scalar macro, over the wire": ("server", "SELECT twice(21)", [[42]]),
    "Chinese": ("server", "SELECT content FROM knowledge WHERE content LIKE '%知识%'", [["知识账本"]]),
    "a semicolon at the end": ("server", "SELECT 1;", [[1]]),
    "a common table expression": ("server", "WITH a AS (SELECT 1 AS x) SELECT x + 1 FROM a", [[2]]),
    "the catalog": (
        "server",
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'knowledge'",
        [[1]],
    ),
    "a word of DDL in a text": (
        "server",
        "SELECT 'DROP TABLE knowledge; --'",
        [["DROP TABLE knowledge; --"]],
    ),
}


class Served:
    def __init__(self, connection: duckdb.DuckDBPyConnection, address: QuackAddress, directory: Path) -> None:
        self.connection, self.address, self.directory = connection, address, directory

    def digest(self) -> list[object]:
        """All an analyst could have changed: rows, catalog, settings, servers, files."""
        return [
            self.connection.execute(query).fetchall()
            for query in (
                "FROM knowledge ORDER BY ALL",
                "FROM events ORDER BY ALL",
                "SELECT table_name, sql, comment FROM duckdb_tables() ORDER BY ALL",
                "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
                "SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal ORDER BY 1",
                "SELECT sequence_name, last_value FROM duckdb_sequences() ORDER BY ALL",
                "SELECT database_name, path FROM duckdb_databases() ORDER BY ALL",
                "SELECT name, value FROM duckdb_settings() ORDER BY ALL",
                "SELECT listen_uri FROM quack_server_list() ORDER BY ALL",
            )
        ] + [sorted(path.name for path in self.directory.iterdir())]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("view")
    (directory / "host.csv").write_text("host-secret,1,1\n")
    connection = duckdb.connect(str(directory / "view.duckdb"))
    connection.execute(
        """
        CREATE TABLE knowledge (id VARCHAR, content VARCHAR, helpful INTEGER);
        INSERT INTO knowledge VALUES ('k1', 'nothing', 0), ('k2', '知识账本', 1), ('k3', 'more', 2);
        CREATE TABLE events (position BIGINT);
        CREATE VIEW helpful AS SELECT * FROM knowledge WHERE helpful > 0;
        CREATE MACRO knowledge_above(n) AS TABLE SELECT * FROM knowledge WHERE helpful > n;
        CREATE MACRO twice(n) AS n * 2;
        CREATE SEQUENCE ids;
        CHECKPOINT;
        """
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", CLOUD_KEY)
        environment.setenv("AWS_SECRET_ACCESS_KEY", CLOUD_KEY)
        environment.setenv("AWS_SESSION_TOKEN", CLOUD_KEY)
        prepare(connection)
    address = serve(connection)
    yield Served(connection, address, directory)
    stop(connection, address)
    connection.close()


def run_client(attach: str, statements: list[tuple[str, str]]) -> list[dict[str, object]]:
    orders = json.dumps({"attach": attach, "mode": "statements", "statements": statements})
    finished = subprocess.run(
        [sys.executable, str(CLIENT)],
        input=orders + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


@pytest.fixture(scope="module")
def outcomes(served: Served) -> dict[str, object]:
    """What each attack and each honest query got, all by one client, honest ones last; and both digests."""
    fill = {
        "{host_file}": str(served.directory / "host.csv"),
        "{directory}": str(served.directory),
        "{port}": str(served.address.port),
        "{other_port}": str(served.address.port + 1),
        "{token}": served.address.token,
    }

    def filled(statement: str) -> str:
        for key, value in fill.items():
            statement = statement.replace(key, value)
        return statement

    statements = [(where, filled(sql)) for where, sql in ATTACKS.values()]
    statements += [(where, sql) for where, sql, _ in ADMITTED.values()]
    before = served.digest()
    answers = run_client(served.address.attach_statement(), statements)
    assert len(answers) == len(statements)
    return {
        "before": before,
        "after": served.digest(),
        **dict(zip([*ATTACKS, *ADMITTED], answers, strict=True)),
    }


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_analyst_is_refused(attack: str, outcomes: dict[str, dict[str, object]]) -> None:
    answer = outcomes[attack]
    assert "rows" not in answer, answer
    assert CLOUD_KEY not in str(answer)
    assert "host-secret" not in str(answer)


@pytest.mark.parametrize("attack", [name for name, (where, _) in ATTACKS.items() if where == "server"])
def test_a_refusal_says_that_the_view_is_read_only_or_that_nothing_could_be_read(
    attack: str, outcomes: dict[str, dict[str, str]]
) -> None:
    message = outcomes[attack]["error"]
    by_the_client = ("unterminated quoted string", "syntax error", "Authorization failed")
    by_the_server = (
        "read-only",
        "does not parse",
        "does not exist",
        "file system operations are disabled",
        "no function",
    )
    assert any(part in message for part in by_the_client + by_the_server), message


@pytest.mark.parametrize("query", ADMITTED)
def test_after_all_attacks_the_same_analyst_still_reads(query: str, outcomes: dict[str, object]) -> None:
    assert outcomes[query] == {"rows": ADMITTED[query][2]}


def test_no_attack_changed_a_row_a_definition_a_setting_or_a_file(outcomes: dict[str, object]) -> None:
    assert outcomes["after"] == outcomes["before"]


def test_the_keys_of_the_nodes_environment_are_no_settings_of_the_view(served: Served) -> None:
    settings = served.connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    assert CLOUD_KEY not in str(settings)


@pytest.mark.parametrize("token", ["", "wrong-token"])
def test_without_the_right_token_nobody_attaches(token: str, served: Served) -> None:
    attach = QuackAddress(served.address.host, served.address.port, token).attach_statement()
    [answer] = run_client(attach, [])
    assert "rows" not in answer
    assert "uthenticat" in str(answer["error"])

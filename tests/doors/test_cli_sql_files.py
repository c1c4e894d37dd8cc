"""Rows of `kledger sql` for other programs: every column, every value, and the types that JSON can carry."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from producers.http.answers import Json
from projections.analysts import quack
from projections.analysts.sql import answer_to
from tests.doors.scripted_node import ScriptedNode, commanded_node
from tests.journeys.running_node import ENVIRONMENT, KLEDGER, ROOT
from tests.patience import PATIENCE

QUERY = (
    "SELECT i::INT AS i, 'a,\"' || i || chr(10) || '字' AS a, 'b' AS b, i > 1 AS a, i / 4 AS d, "
    "1.25::DECIMAL(9, 2) AS n, "
    "now() AS t, current_date AS day, [i] AS l, {'k': NULL} AS s, 1000000000000000000000000000001::HUGEINT AS h, "
    "NULL AS none, 'x'::BLOB AS bytes, INTERVAL 1 DAY AS gap, TIME '01:02:03' AS o FROM range(3) r(i)"
)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with commanded_node(monkeypatch) as node:
        yield node


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def rows(node: ScriptedNode) -> dict[str, Any]:
    """What a node answers to the query, by DuckDB and through JSON."""
    connection = duckdb.connect()
    quack.prepare(connection)
    document = {**answer_to(connection, QUERY), "position": 7}
    told: dict[str, Any] = json.loads(bytes(Json(document).body))
    node.says("POST /api/admin/sql", told)
    return told


def test_a_file_to_write_is_out_or_into_with_every_command_that_writes_one(
    node: ScriptedNode, rows: dict[str, Any], tmp_path: Path
) -> None:
    for option in ("--out", "--into"):
        file = tmp_path / f"rows{option}.csv"
        assert kledger("sql", QUERY, option, str(file)).exit_code == 0
        assert file.stat().st_size
    for command in ("sql", "replay", "prove"):
        shown = kledger(command, "--help").stdout
        assert "--out" in shown
        assert "--into" in shown


def test_csv_has_every_column_and_row(node: ScriptedNode, rows: dict[str, Any]) -> None:
    ran = kledger("sql", QUERY, "--format", "csv")
    assert ran.exit_code == 0, ran.stderr
    head, *lines = csv.reader(io.StringIO(ran.stdout))
    assert head == rows["columns"]
    assert [line[1] for line in lines] == ['a,"0\n字', 'a,"1\n字', 'a,"2\n字']
    assert [line[3] for line in lines] == ["false", "false", "true"]
    assert all(len(line) == len(head) for line in lines)


def test_parquet_keeps_types_and_tells_columns_of_one_name_apart(
    node: ScriptedNode, rows: dict[str, Any], tmp_path: Path
) -> None:
    ran = kledger("sql", QUERY, "--out", str(tmp_path / "rows.parquet"))
    assert ran.exit_code == 0, ran.stderr
    table = pq.read_table(tmp_path / "rows.parquet")
    kept = {name: str(kind) for name, kind in zip(table.column_names, table.schema.types, strict=True)}
    assert {name: kept[name] for name in ("i", "a", "a_1", "d", "n", "day")} == {
        "i": "int32",
        "a": "string",
        "a_1": "bool",
        "d": "double",
        "n": "decimal128(9, 2)",
        "day": "date32[day]",
    }
    assert kept["t"].startswith("timestamp[us, tz=")
    assert kept["h"] == "decimal128(38, 0)"
    assert int(table["h"][0].as_py()) == 10**30 + 1
    assert json.loads(table["l"][2].as_py()) == [2]
    assert table.num_rows == 3


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_no_rows_make_a_file_with_its_columns(node: ScriptedNode, form: str, tmp_path: Path) -> None:
    node.says(
        "POST /api/admin/sql", {"columns": ["a"], "types": ["int64"], "rows": [], "truncated": False, "position": 1}
    )
    file = tmp_path / "rows"
    ran = kledger("sql", "SELECT 1 AS a WHERE false", "--format", form, "--out", str(file))
    assert ran.exit_code == 0, ran.stderr
    assert b"a" in file.read_bytes()


def test_a_file_of_no_known_kind_is_refused_before_the_node_is_asked(node: ScriptedNode, tmp_path: Path) -> None:
    for more in (["--out", str(tmp_path / "rows.xlsx")], ["--format", "table", "--out", str(tmp_path / "rows.csv")]):
        ran = kledger("sql", "SELECT 1", *more)
        assert ran.exit_code == 2
        assert "--format" in ran.stderr
    assert not node.asked
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("out", [[], ["--out", "/dev/stdout", "--force"]], ids=["stdout", "a file that is stdout"])
def test_rows_for_programs_steer_no_terminal_and_are_kept_as_they_are_elsewhere(
    node: ScriptedNode, form: str, out: list[str]
) -> None:
    steering = "a\x1b]0;owned\x07\x9b2J\u202eb\rc"
    row = {"columns": ["a\x1b[2J"], "types": ["string"], "rows": [[steering]], "truncated": False, "position": 1}
    node.says("POST /api/admin/sql", row)
    command = [*KLEDGER, "sql", "SELECT 1", "--format", form, *out]
    environment = {**ENVIRONMENT, "KLEDGER_URL": node.url}
    main, other = pty.openpty()
    subprocess.run(command, stdout=other, check=True, cwd=ROOT, env=environment, timeout=PATIENCE)
    os.close(other)
    shown = os.read(main, 4096).decode()
    os.close(main)
    assert not set(shown) & set("\x1b\x07\x9b\u202e")
    assert "owned" in shown
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT, env=environment, timeout=PATIENCE)
    assert steering in (json.loads(piped.stdout)["rows"][0][0] if form == "json" else piped.stdout.decode())

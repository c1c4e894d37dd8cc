"""What DuckDB cannot hold in memory is in clear: it goes beside the file it belongs to, and nowhere else."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from projections.engine.duckdb import open_new_view, open_view, spilled_of
from projections.fold_kit.parser import Parser
from tests.house.project import PACKAGES, ROOT, modules

MORE_THAN_FITS = """
SET memory_limit = '24MB';
CREATE TEMP TABLE large AS SELECT range AS number, md5(range::VARCHAR) AS text FROM range(1000000)"""


def new_view(path: Path) -> duckdb.DuckDBPyConnection:
    return open_new_view(path, memory_limit="64MB")


@pytest.mark.parametrize("opened", [new_view, open_view], ids=["one that is made anew", "the live one"])
def test_a_view_spills_beside_its_file_and_not_where_the_program_is_run(
    opened: Callable[[Path], duckdb.DuckDBPyConnection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, file = tmp_path / "here", tmp_path / "views" / "view-000001.duckdb"
    for directory in (here, file.parent):
        directory.mkdir()
    monkeypatch.chdir(here)
    with contextlib.closing(opened(file)) as con:
        con.execute(MORE_THAN_FITS)
        assert [*spilled_of(file).iterdir()]
        assert [*here.iterdir()] == []
    assert not spilled_of(file).exists()


def test_what_parses_bodies_spills_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(Parser()) as parser, pytest.raises(duckdb.OutOfMemoryException):
        parser.con.execute(MORE_THAN_FITS)
    assert [*tmp_path.iterdir()] == []


def connects(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "duckdb.connect":
            yield node


def test_whoever_opens_a_database_in_memory_says_where_it_spills() -> None:
    """DuckDB would take `.tmp` in the current directory."""
    seen, silent = 0, []
    for path in modules(PACKAGES):
        for call in connects(path):
            seen += 1
            file = bool(call.args) and ":memory:" not in ast.unparse(call.args[0])
            if not file and "temp_directory" not in ast.unparse(call):
                silent.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert seen > 4
    assert silent == []

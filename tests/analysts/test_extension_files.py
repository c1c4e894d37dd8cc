"""DuckDB checks the signatures of its extension files once a process, and again where a file is another one since."""

from __future__ import annotations

import contextlib
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from projections.analysts import quack
from projections.engine.duckdb import open_view


@pytest.fixture
def extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of copies of the files, which are loaded instead of the installed ones."""
    for name in ("httpfs", "quack"):
        spec = find_spec(f"duckdb_extension_{name}")
        assert spec is not None
        assert spec.origin is not None
        shutil.copytree(Path(spec.origin).parent / "extensions", tmp_path / name / "extensions")

    def copied(module: str) -> SimpleNamespace:
        return SimpleNamespace(origin=tmp_path / module.removeprefix("duckdb_extension_") / "__init__.py")

    monkeypatch.setattr(quack, "find_spec", copied)
    return tmp_path


def the_file(extensions: Path, name: str) -> Path:
    (file,) = extensions.glob(f"{name}/extensions/*/{name}.duckdb_extension")
    return file


def prepared() -> duckdb.DuckDBPyConnection:
    """A view as a node opens it."""
    con = open_view(None, unsigned_extensions=quack.are_checked())
    try:
        quack.prepare(con)
    except BaseException:
        con.close()
        raise
    return con


def test_they_are_checked_once_and_no_view_admits_unsigned_ones(extensions: Path) -> None:
    assert not quack.are_checked()
    for _ in range(2):
        with contextlib.closing(prepared()) as con:
            assert con.execute("SELECT current_setting('allow_unsigned_extensions')").fetchone() == (False,)
            with pytest.raises(duckdb.Error):
                con.execute("SET GLOBAL allow_unsigned_extensions = true")
        assert quack.are_checked()


@pytest.mark.parametrize("name", ["httpfs", "quack"])
def test_a_file_that_was_changed_since_is_checked_again_and_refused(extensions: Path, name: str) -> None:
    prepared().close()
    with the_file(extensions, name).open("r+b") as file:
        file.seek(4_096)
        file.write(b"changed")
    assert not quack.are_checked()
    with pytest.raises(duckdb.Error, match="signature"):
        prepared()

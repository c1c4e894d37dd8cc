"""What queries put on the disk beside the view, because it does not fit into memory, has a bound."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from kledger.contract.errors import IllegalQuery
from projections.analysts import quack
from projections.analysts.memory_watch import MIB, AnalystLimits
from projections.analysts.sql import sql_read_only
from projections.engine.duckdb import open_view, spilled_of

SORTED = """
SELECT max(s), max(h) FROM (
    SELECT h, s, row_number() OVER (ORDER BY h) AS r
    FROM (SELECT hash(i) AS h, i::VARCHAR || repeat('a', 200) AS s FROM range({rows}) t(i)))
WHERE r % 3 = 0
"""
SMALL, LARGE = SORTED.format(rows=1_000), SORTED.format(rows=2_000_000)
MOST = 64 * MIB


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def view(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A view that has to spill what sorts a gigabyte."""
    con = open_view(tmp_path / "view.duckdb")
    con.execute("SET memory_limit = '64MB'")
    yield con
    con.close()


@pytest.mark.parametrize(
    ("limits", "free"),
    [(AnalystLimits(disk=MOST), 1_000 * MOST), (AnalystLimits(), 2 * MOST)],
    ids=["set", "half the disk"],
)
def test_a_query_that_would_fill_the_disk_is_refused_and_leaves_nothing_there(
    view: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: AnalystLimits, free: int
) -> None:
    monkeypatch.setattr(quack, "analyst_limits", lambda: limits, raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: Disk(free, 0, free))
    quack.prepare(view)
    with pytest.raises(IllegalQuery, match="more memory than the node has for it"):
        sql_read_only(view, LARGE, timeout_seconds=600)
    spilled = spilled_of(tmp_path / "view.duckdb")
    assert not spilled.exists() or [*spilled.iterdir()] == []
    assert sql_read_only(view, SMALL).num_rows == 1


def test_what_fits_into_the_bound_is_answered(view: duckdb.DuckDBPyConnection) -> None:
    quack.prepare(view)
    assert sql_read_only(view, LARGE, timeout_seconds=600).num_rows == 1

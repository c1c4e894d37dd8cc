"""A statement that meets a damaged block of the view's file says so, and one that only speaks of damage does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kledger.contract.errors import IllegalQuery, ServiceFailed
from ledger.runtime.damaged_file import damaged_mark
from producers.node.operator import Operator
from projections.analysts.quack import prepare
from projections.engine.duckdb import checkpoint, open_view
from projections.engine.view import Instance, View

BLOCK, HEADERS = 256 * 1024, 3 * 4096


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    """A view whose file has a table in whose last block bytes were changed; nobody has read it."""
    path = tmp_path / "view.duckdb"
    with contextlib.closing(open_view(path)) as con:
        con.execute("CREATE TABLE kept AS SELECT n, md5(n::VARCHAR) AS said FROM range(90_000) AS of(n)")
        checkpoint(con)
        last = con.execute("SELECT max(block_id) FROM pragma_storage_info('kept') WHERE segment_type = 'VARCHAR'")
        ((block,),) = last.fetchall()
    with path.open("r+b") as file:
        file.seek(HEADERS + block * BLOCK + BLOCK // 2)
        file.write(b"\xa5" * 64)
    opened = View(Instance(open_view(path), path))
    prepare(opened.instance.con)
    yield opened
    opened.close()


async def asked(view: View, statement: str) -> None:
    await Operator(cast(Any, SimpleNamespace(view=view)), cast(Any, None), cast(Any, None), cast(Any, None)).sql(
        statement
    )


@pytest.mark.parametrize("statement", ["SELECT sum(length(said)) FROM kept", "SELECT said FROM kept"])
async def test_a_statement_that_meets_a_damaged_block_is_told_what_to_do_and_the_node_is_too(
    view: View, statement: str
) -> None:
    with pytest.raises(ServiceFailed, match="kledger rebuild makes it anew"):
        await asked(view, statement)
    assert "Corrupt database file" in view.instance.damage
    assert damaged_mark(cast(Path, view.instance.path)).exists()


@pytest.mark.parametrize("said", ["Corrupt database file", "IO Error: Corrupt database file: computed checksum"])
@pytest.mark.parametrize(
    "statement",
    ["SELECT error('{}')", "SELECT CASE WHEN n = 40_000 THEN error('{}') ELSE n END FROM range(50_000) t(n)"],
)
async def test_a_statement_that_speaks_of_damage_has_the_view_taken_for_damaged_by_nobody(
    view: View, statement: str, said: str
) -> None:
    with pytest.raises(IllegalQuery, match=said):
        await asked(view, statement.format(said))
    assert not view.instance.damage
    assert not damaged_mark(cast(Path, view.instance.path)).exists()

"""What a view's connections have from the beginning."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import NodeMisconfigured
from projections.engine.duckdb import checkpoint, open_new_view, open_view
from projections.live.rebuild import rebuild_into
from projections.live.view_file import LiveFiles
from tests.integrity.logs import ListedLedger
from tests.projections.histories import saved, stored


@pytest.mark.parametrize("kept", ["in memory", "live", "rebuilt"])
def test_every_reader_of_a_view_reads_times_in_utc_wherever_the_machine_stands(kept: str, tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    con = open_new_view(path, memory_limit="1GB") if kept == "rebuilt" else open_view(path if kept == "live" else None)
    for reader in (con, con.cursor()):
        assert reader.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        assert reader.execute("SELECT make_timestamptz(0)::VARCHAR").fetchall() == [("1970-01-01 00:00:00+00",)]
    con.close()


def test_a_checkpoint_of_a_new_view_writes_all_of_it_and_leaves_its_settings_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    settings = "SELECT current_setting('threads'), current_setting('checkpoint_threshold')"
    con = open_new_view(path, memory_limit="1GB")
    before = con.execute(settings).fetchall()
    con.execute("UPDATE checkpoints SET position = 7")
    checkpoint(con)
    shutil.copy(path, tmp_path / "copy.duckdb")  # as it is on the disk now, with nothing that is still in memory
    assert con.execute(settings).fetchall() == before
    con.close()
    with duckdb.connect(str(tmp_path / "copy.duckdb")) as copy:
        assert copy.execute("SELECT position FROM checkpoints").fetchall() == [(7,)]


def test_a_checkpoint_while_another_one_writes_is_an_error_and_not_left_out(tmp_path: Path) -> None:
    con = open_new_view(tmp_path / "views.duckdb", memory_limit="1GB")
    reader = con.cursor()
    reader.execute("USE view")
    reader.execute("BEGIN TRANSACTION")
    reader.execute("UPDATE recall_retention SET days = 3")
    with pytest.raises(duckdb.Error, match="Cannot CHECKPOINT"):
        checkpoint(con)
    con.close()


async def test_a_rebuild_without_room_for_its_file_leaves_none(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))
    try:
        with pytest.raises(duckdb.IOException, match="Could not write"):
            await rebuild_into(ListedLedger(stored([saved()])), tmp_path / "view.duckdb")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


async def test_a_node_whose_program_was_changed_under_it_says_so_of_what_the_new_one_folded(tmp_path: Path) -> None:
    files, path = LiveFiles(tmp_path, None), tmp_path / "view-000002.duckdb"
    await rebuild_into(ListedLedger(stored([saved()])), path)
    files.open_rebuilt(path).close()
    with duckdb.connect(str(path)) as folded:
        folded.execute("UPDATE checkpoints SET schema_version = 7")
    with pytest.raises(NodeMisconfigured, match="stop it and start it again"):
        files.open_rebuilt(path)
    assert not path.exists()

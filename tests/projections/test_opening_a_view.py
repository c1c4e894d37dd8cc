"""What a view's connections have from the beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections.engine.duckdb import open_new_view, open_view


@pytest.mark.parametrize("kept", ["in memory", "live", "rebuilt"])
def test_every_reader_of_a_view_reads_times_in_utc_wherever_the_machine_stands(kept: str, tmp_path: Path) -> None:
    path = tmp_path / "views.duckdb"
    con = open_new_view(path, memory_limit="1GB") if kept == "rebuilt" else open_view(path if kept == "live" else None)
    for reader in (con, con.cursor()):
        assert reader.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        assert reader.execute("SELECT make_timestamptz(0)::VARCHAR").fetchall() == [("1970-01-01 00:00:00+00",)]
    con.close()

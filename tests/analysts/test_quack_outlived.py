"""A session over Quack may outlive the connection of the view that it reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
OUTLIVED = """
import contextlib, gc, os, sys
from pathlib import Path
import duckdb
from projections.analysts import quack
from projections.engine.duckdb import open_view

view = open_view(Path(sys.argv[1]))
quack.prepare(view)
analyst = duckdb.connect()
quack.load_extensions(analyst)
analyst.execute(quack.serve(view).attach_statement())
assert analyst.execute("FROM kl.query('SELECT 42')").fetchall() == [(42,)]
view.close()
del view
gc.collect()
for _ in range(200):
    with contextlib.suppress(duckdb.Error):
        analyst.execute("FROM kl.query('SELECT 42')").fetchall()
os._exit(0)  # the server of a view that is closed cannot be stopped
"""


def test_a_statement_of_a_session_that_outlives_its_view_ends_no_process(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OUTLIVED, str(tmp_path / "view.duckdb")]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr

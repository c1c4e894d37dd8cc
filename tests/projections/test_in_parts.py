"""A rebuild folds in parts, on two threads, and comes to the views that one thread comes to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.event import StoredEvent
from projections.engine.batch import fold_batch
from projections.engine.digest import digests, state_digest
from projections.live import catch_up
from projections.live.rebuild import rebuild_into
from tests.conftest import LoopThread
from tests.examples import tries
from tests.integrity.logs import ListedLedger
from tests.projections.histories import histories, new_view


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


law = settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@law
@given(log=histories(), size=st.integers(1, 9))
def test_any_history_folds_alike_in_parts_and_as_a_whole(loop: LoopThread, log: list[StoredEvent], size: int) -> None:
    bench = new_view()
    fold_batch(bench, log)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(catch_up, "_LIST", size)
        patched.setattr(catch_up, "_BATCH", size)
        rebuilt = loop.run(rebuild_into(ListedLedger(log), Path(directory) / "view.duckdb"))
    assert rebuilt.digest == state_digest(digests(bench.con))

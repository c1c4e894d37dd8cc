"""A search of the engine takes no thread but that of its caller."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest

from projections.vectors.embedding.hashed import DIMENSIONS, MODEL, hashed_vectors
from projections.vectors.store import edge as edge_store
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.points import points_of, text_of
from tests.search.test_damaged_vectors import STORES, answers

THREADS = Path("/proc/self/task")
pytestmark = pytest.mark.skipif(not THREADS.is_dir(), reason="this system does not name the threads of a process")


def engine_threads() -> set[str]:
    """The threads of this process that engines search with."""
    threads = set()
    for each in THREADS.iterdir():
        with suppress(OSError):  # it has ended meanwhile
            if (each / "comm").read_text().startswith("edge-search"):
                threads.add(each.name)
    return threads


def begun_by_searches_of(directory: Path) -> int:
    """How many threads a store in this directory begins to search with."""
    before = engine_threads()
    with closing(EdgeStore(directory, MODEL, DIMENSIONS)) as store:
        if store.count() == 0:
            store.upsert(points_of(STORES, list(hashed_vectors([*map(text_of, STORES)]))))
            store.set_checkpoint(len(STORES))
        assert answers(store) == [len(STORES)] * 4
        return len(engine_threads() - before)


def test_a_store_that_is_made_or_opened_again_has_at_most_one_thread_to_search_with(tmp_path: Path) -> None:
    assert begun_by_searches_of(tmp_path) <= 1
    assert begun_by_searches_of(tmp_path) <= 1


def test_a_store_that_was_made_with_more_threads_has_one_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(edge_store, "_THREADS", 3)
        assert begun_by_searches_of(tmp_path) == 3
    assert begun_by_searches_of(tmp_path) <= 1

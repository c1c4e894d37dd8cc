"""Of a segment of the archive is unpacked what is asked for: the events that a fold refuses, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.archive import event_file
from ledger.archive.event_file import SegmentWriter, events_at, events_in
from ledger.archive.events import SegmentEvents
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRevised
from projections.archive.reading import Archive
from tests.archive.archives import archived, folded
from tests.conftest import LoopThread
from tests.examples import law as law_of
from tests.projections.histories import saved, stored

COUNT = 12
LOG = stored([saved(f"k{at}", content=f"said {at} 次") for at in range(COUNT)])


def written(path: Path, log: list[StoredEvent], group: int, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A file of these events in row groups of `group`, the last ones first, as those of another organisation."""
    monkeypatch.setattr(event_file, "GROUP_EVENTS", group)
    writer = SegmentWriter(path)
    for event in [*log[COUNT // 2 :], *log[: COUNT // 2]]:
        writer.add(event, bytes(32))
    writer.close()
    return path.read_bytes()


@law_of(30)
@given(places=st.sets(st.integers(0, COUNT - 1)), group=st.integers(1, COUNT))
def test_events_at_some_positions_are_those_of_the_whole_file(
    places: set[int], group: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = sorted(places)
    with pytest.MonkeyPatch.context() as monkeypatch:
        content = written(tmp_path_factory.mktemp("file") / "events.parquet", LOG, group, monkeypatch)
    found = events_in(events_at(content, COUNT, np.array(at, np.int64) + LOG[0].position))
    assert found == [LOG[place] for place in at]


def test_a_position_that_a_file_does_not_have_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(tmp_path / "events.parquet", LOG, 5, monkeypatch)
    with pytest.raises(ValueError, match="1 events at 2 positions"):
        events_at(content, COUNT, np.array([3, COUNT + 1]))


def test_row_groups_without_a_wanted_position_are_not_unpacked_whatever_the_foot_of_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pq.read_table(pa.BufferReader(written(tmp_path / "events.parquet", LOG, 2, monkeypatch)))
    pq.write_table(
        rows, silent := pa.BufferOutputStream(), row_group_size=2, use_dictionary=["subject"], write_statistics=False
    )
    content = silent.getvalue().to_pybytes()
    unpacked: list[Any] = []
    iterated = pq.ParquetFile.iter_batches

    def noted(file: Any, size: int, groups: list[int], *more: Any, **named: Any) -> Any:
        unpacked.append(groups)
        return iterated(file, size, groups, *more, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert events_in(events_at(content, COUNT, np.array([LOG[0].position, LOG[7].position]))) == [LOG[0], LOG[7]]
    assert unpacked == [[0, 3]]


def test_of_an_archived_segment_the_refused_events_are_unpacked_and_no_others(
    loop: LoopThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = NewEvent(KnowledgeRevised(content="of nothing"), "nothing", "agent:a")
    log = [*LOG, *stored([refused], COUNT + 1)]
    loop.run(archived(tmp_path, log, len(log)))
    right = loop.run(folded(log, None))

    def unpacked(_events: SegmentEvents) -> None:
        raise AssertionError("a whole segment was unpacked for one event")

    monkeypatch.setattr(SegmentEvents, "rows", property(unpacked))
    assert loop.run(folded(log, Archive.of_node(tmp_path))) == right

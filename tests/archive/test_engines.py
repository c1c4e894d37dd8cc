"""Any engine reads the archive, and leaves unread what is of other organisations and other times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ledger.archive import event_file
from ledger.archive.archived import Archived
from ledger.archive.event_file import read_leaves, read_segment
from ledger.backup.checking import check_backup
from ledger.backup.writing import back_up
from ledger.event import StoredEvent
from ledger.integrity.chain import leaf_hashes
from projections.archive.reading import Archive
from tests.archive.archives import archived, folded
from tests.backup.kept import kept_in
from tests.integrity.logs import ListedLedger
from tests.projections.histories import saved, stored

ORGANISATIONS = ("acme", "globex", "initech", "umbrella")
YEAR_NS = 365 * 86_400 * 10**9
SEGMENT = 400
LOG = [
    event._replace(
        subject=event.subject.replace(".default.", f".{ORGANISATIONS[at * 7 % 4]}."),
        stored_ns=event.stored_ns + at * YEAR_NS // SEGMENT,
    )
    for at, event in enumerate(stored([saved(f"k{at}", content=f"what {at} says") for at in range(3 * SEGMENT)]))
]
FIRST_NS, LAST_NS = LOG[SEGMENT].stored_ns, LOG[2 * SEGMENT - 1].stored_ns
"""The second year, which is the second segment."""
WANTED = [event for event in LOG[SEGMENT : 2 * SEGMENT] if event.subject.startswith("ledger.globex.")]

Query = Callable[[Path], list[str]]


@pytest.fixture
async def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node's data directory with an archive of three years of four organisations."""
    monkeypatch.setattr(event_file, "FEWEST_IN_GROUP", 50)
    await archived(tmp_path, LOG, SEGMENT)
    return tmp_path


def by_duckdb(archive: Path) -> list[str]:
    files = str(archive / "events" / "*" / "events.parquet")
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT body FROM read_parquet(?) WHERE subject LIKE 'ledger.globex.%' AND stored_ns BETWEEN ? AND ? "
            "ORDER BY position",
            [files, FIRST_NS, LAST_NS],
        )
        return [body for (body,) in found.fetchall()]


def by_polars(archive: Path) -> list[str]:
    subject, stored_ns = pl.col("subject"), pl.col("stored_ns")
    rows = (
        pl.scan_parquet(archive / "events" / "*" / "events.parquet")
        .filter(subject >= "ledger.globex.", subject < "ledger.globex/", stored_ns.is_between(FIRST_NS, LAST_NS))
        .sort("position")
        .select("body")
        .collect()
    )
    return rows["body"].to_list()


def in_the_year() -> ds.Expression:
    subject, stored_ns = ds.field("subject"), ds.field("stored_ns")
    of_globex = (subject >= "ledger.globex.") & (subject < "ledger.globex/")
    return of_globex & (stored_ns >= FIRST_NS) & (stored_ns <= LAST_NS)


def dataset(archive: Path) -> ds.Dataset:
    return ds.dataset([str(path) for path in sorted((archive / "events").glob("*/events.parquet"))])


def by_arrow(archive: Path) -> list[str]:
    bodies: list[str] = dataset(archive).to_table(["body"], filter=in_the_year())["body"].to_pylist()
    return bodies


def spoil_all_but(archive: Path, path: Path, groups: set[int]) -> int:
    """Overwrite the rows of every other row group of a file; returns how many groups that are."""
    metadata, content = pq.read_metadata(path), bytearray(path.read_bytes())
    others = set(range(metadata.num_row_groups)) - groups
    for group in others:
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            content[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(content)
    return len(others)


@pytest.mark.parametrize("query", [by_duckdb, by_polars, by_arrow])
async def test_a_year_of_one_organisation_is_read_and_everything_else_is_not(data: Path, query: Query) -> None:
    archive, kept, spoiled = data / "archive", 0, 0
    assert query(archive) == [event.body.decode() for event in WANTED]
    for fragment in dataset(archive).get_fragments():
        needed = {group.id for part in fragment.split_by_row_group(in_the_year()) for group in part.row_groups}
        kept += len(needed)
        spoiled += spoil_all_but(archive, Path(fragment.path), needed)
    assert (kept, spoiled) == (1, 11), "a row group for each organisation and year"
    assert query(archive) == [event.body.decode() for event in WANTED], "it reads what it has no need of"
    with pytest.raises(OSError, match="page header"):
        pq.read_table(next((archive / "events").glob("*/events.parquet")))


async def test_the_events_come_in_the_order_of_the_log(data: Path) -> None:
    for at, path in enumerate(sorted((data / "archive" / "events").glob("*/events.parquet"))):
        part = LOG[at * SEGMENT : (at + 1) * SEGMENT]
        assert [kept.event for kepts in read_segment(path, len(part)) for kept in kepts] == part
        assert read_leaves(path, len(part)) == leaf_hashes(part)
        assert pq.read_table(path)["position"].to_pylist() != [event.position for event in part]
    archive = Archive.of_node(data)
    assert await folded(LOG, archive) == await folded(LOG, None)
    assert (archive.events, archive.damaged) == (len(LOG), [])


async def test_a_backup_of_the_segments_is_the_log_too(data: Path, tmp_path: Path) -> None:
    await back_up(ListedLedger(LOG), tmp_path / "b", archived=Archived.of_node(data))
    assert len(list((tmp_path / "b" / "events").iterdir())) == 3
    assert (check_backup(tmp_path / "b").problems, kept_in(tmp_path / "b")) == ([], LOG)


@pytest.mark.parametrize("subject", ["ledger", "", "ledger..x", "other.acme.x"])
async def test_subjects_that_are_none_of_ours_are_archived_too(tmp_path: Path, subject: str) -> None:
    log: list[StoredEvent] = [*LOG[:5], LOG[5]._replace(subject=subject), *LOG[6:10]]
    await archived(tmp_path, log, 10)
    (path,) = (tmp_path / "archive" / "events").glob("*/events.parquet")
    assert [kept.event for kepts in read_segment(path, len(log)) for kept in kepts] == log

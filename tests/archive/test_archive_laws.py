"""A view is the same whether its events come from the archive or from the log: every kind of them, sealed or parked."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, Held, Tombstone, new_secret
from ledger.store.parked import Decision, fingerprint_of
from projections.archive.reading import Archive
from projections.engine.seals_without_mac import Examination
from tests.archive.archives import archived, files_of, folded
from tests.conftest import LoopThread
from tests.examples import tries
from tests.projections.histories import histories, saved, stored
from tests.projections.test_seals_after_forgetting import ADA, BOB, MODES, held_of, treated

SECRET = b"ada-was-here-7f3a"
law = settings(max_examples=tries(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
stops = st.lists(st.integers(1, 14), max_size=3)
sizes = st.integers(1, 5)


@law
@given(log=histories(), size=sizes, stops=stops)
def test_any_history_folds_alike_from_the_archive_and_from_the_log(
    loop: LoopThread, log: list[StoredEvent], size: int, stops: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        loop.run(archived(Path(directory), log, size))
        archive = Archive(Path(directory))
        assert loop.run(folded(log, archive, stops)) == loop.run(folded(log, None))
        assert archive.events == len(log) // size * size
        assert archive.damaged == []


@law
@given(log=histories(), size=sizes, drawn=st.data())
def test_sealed_events_open_from_the_archive_as_from_the_log_also_when_their_person_is_forgotten(
    loop: LoopThread, log: list[StoredEvent], size: int, drawn: st.DataObject
) -> None:
    keys = {name: DataKey(name, new_secret()) for name in (ADA, BOB)}
    log = [treated(event, drawn.draw(st.sampled_from(MODES)), [keys[ADA]]) for event in log]
    held: dict[str, Held] = dict(keys)
    with tempfile.TemporaryDirectory() as directory:
        loop.run(archived(Path(directory), log, size))
        for _ in range(2):
            keyring = Keyring(held_of(held))
            ours = loop.run(folded(log, Archive(Path(directory)), keyring=keyring))
            assert ours == loop.run(folded(log, None, keyring=keyring))
            examination = Examination(ADA, held.get)
            examination.read(log)
            held[ADA] = Tombstone(ADA, "user:local", "", "r", keys[ADA].witness, examination.found)


@law
@given(log=histories(), size=sizes, drawn=st.data())
def test_a_parked_event_is_refused_from_the_archive_as_from_the_log(
    loop: LoopThread, log: list[StoredEvent], size: int, drawn: st.DataObject
) -> None:
    held = drawn.draw(st.sampled_from(log))
    decision = Decision(held.position, fingerprint_of(held), "parked", "it cannot be folded", 3, "2026-03-05T00:00:00Z")
    with tempfile.TemporaryDirectory() as directory:
        loop.run(archived(Path(directory), log, size))
        parked = {held.position: decision}
        ours = loop.run(folded(log, Archive(Path(directory)), parked=parked))
        assert ours == loop.run(folded(log, None, parked=parked))


async def test_what_is_sealed_in_the_log_stands_nowhere_in_clear_in_the_archive(tmp_path: Path) -> None:
    key = DataKey(ADA, new_secret())
    log = stored([saved(f"k{at}", owner=ADA, task=SECRET.decode(), content=SECRET.decode()) for at in range(6)])
    await archived(tmp_path / "clear", log, 3)
    await archived(tmp_path / "sealed", [treated(event, "sworn", [key]) for event in log], 3)
    assert any(_says(path) for path in files_of(tmp_path / "clear")), "else this test would see nothing"
    assert [path for path in files_of(tmp_path / "sealed") if _says(path)] == []


def _says(path: Path) -> bool:
    """Whether a file has the words, in any column of it where it is a table."""
    if path.suffix != ".parquet":
        return SECRET in path.read_bytes()
    import pyarrow.parquet as pq

    return SECRET.decode() in str(pq.read_table(path).to_pylist())

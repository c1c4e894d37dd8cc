"""A view is the same whether its events come from the archive or from the log: every kind of them, sealed or parked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, Held, Tombstone, new_secret
from ledger.store.parked import Decision, fingerprint_of
from ledger.wire.seal_mac import ATTRIBUTE
from projections.archive.reading import Archive
from projections.engine.seals_without_mac import Examination
from tests.archive.archives import archived, folded
from tests.conftest import LoopThread
from tests.examples import tries
from tests.projections.histories import histories
from tests.projections.test_seals_after_forgetting import ADA, BOB, MODES, held_of, treated

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
        archive = Archive.of_node(Path(directory))
        assert loop.run(folded(log, archive, stops)) == loop.run(folded(log, None))
        assert archive.events == len(log) // size * size
        assert archive.damaged == []


@law
@given(log=histories(), size=sizes, drawn=st.data())
def test_sealed_events_open_from_the_archive_as_from_the_log_also_when_their_persons_are_forgotten(
    loop: LoopThread, log: list[StoredEvent], size: int, drawn: st.DataObject
) -> None:
    keys = {name: DataKey(name, new_secret()) for name in (ADA, BOB)}
    for at, event in enumerate(log):
        names = drawn.draw(st.sampled_from([[ADA], [BOB], [ADA, BOB], [BOB, ADA]]))
        log[at] = treated(event, drawn.draw(st.sampled_from(MODES)), [keys[name] for name in names])
        if drawn.draw(st.booleans()):
            log[at] = written(log[at])
    held: dict[str, Held] = dict(keys)
    known = drawn.draw(st.sampled_from([[], [ADA], [ADA, BOB]]))
    with tempfile.TemporaryDirectory() as directory:
        opens = Keyring(held_of({name: keys[name] for name in known}))
        loop.run(archived(Path(directory), log, size, opens))
        for gone in (None, *drawn.draw(st.permutations([ADA, BOB]))):
            if gone is not None:
                examination = Examination(gone, held.get)
                examination.read(log)
                held[gone] = Tombstone(gone, "user:local", "", "r", keys[gone].witness, examination.found)
            keyring = Keyring(held_of(held))
            archive = Archive.of_node(Path(directory))
            ours = loop.run(folded(log, archive, keyring=keyring))
            assert ours == loop.run(folded(log, None, keyring=keyring))
            assert archive.damaged == []


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
        ours = loop.run(folded(log, Archive.of_node(Path(directory)), parked=parked))
        assert ours == loop.run(folded(log, None, parked=parked))


def written(event: StoredEvent) -> StoredEvent:
    """The event with its MAC where our writers put it."""
    if ATTRIBUTE.encode() not in event.body:
        return event
    document = orjson.loads(event.body)
    data = document.pop("data")
    return event._replace(body=orjson.dumps({**document, "data": data}))

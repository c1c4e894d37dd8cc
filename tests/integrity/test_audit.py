"""Whatever is done to a log, an audit says so, and says what it cannot see."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import LogGap, NotCertified
from ledger.event import StoredEvent
from ledger.integrity.audit import Report, audit
from ledger.integrity.audit_evidence import gather
from ledger.integrity.chain import Chain, leaf_hash
from ledger.integrity.chain_start import begin, note_signed
from ledger.integrity.checkpoints import append_checkpoints, last_checkpoint, read_checkpoints, sign
from ledger.integrity.notary_start import NotaryFiles, resume
from ledger.integrity.signing_keys import SigningKeys, public_keys
from ledger.store.gap_tolerant_read import Missing, read_what_is_there
from tests.conftest import LoopThread
from tests.integrity.logs import EPOCH, ListedLedger, event, signed_log

COUNT, EVERY = 23, 5
Log = list[StoredEvent | None]


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[StoredEvent], NotaryFiles]:
    return signed_log(tmp_path_factory.mktemp("signed") / "data", COUNT, EVERY)


@contextmanager
def copy_of(files: NotaryFiles) -> Iterator[NotaryFiles]:
    """The files of a notary, to be damaged."""
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        shutil.copytree(files.directory.parent, data)
        yield NotaryFiles.of(data)


async def found_in(log: Log, files: NotaryFiles, *outside: Path) -> Report:
    return await audit(ListedLedger(log), gather(files, outside))


def told(report: Report) -> list[tuple[object, ...]]:
    """The findings without their words."""
    return [(one.kind, one.first, one.last, *([one.moved_to] if one.moved_to else [])) for one in report.findings]


async def test_a_log_as_it_was_signed_is_intact(original: tuple[list[StoredEvent], NotaryFiles]) -> None:
    events, files = original
    report = await found_in([*events], files)
    assert report.intact
    assert (report.intact_up_to, report.certified, report.head) == (COUNT, COUNT, COUNT)
    later = await found_in([*events, event(24), event(25)], files)
    assert later.intact
    assert later.intact_up_to == COUNT
    assert later.unseen[0].startswith("positions 24 to 25")


async def test_older_checkpoints_may_be_kept_elsewhere(
    original: tuple[list[StoredEvent], NotaryFiles], tmp_path: Path
) -> None:
    events, whole = original
    with copy_of(whole) as files:
        lines = files.checkpoints.read_bytes().splitlines(keepends=True)
        moved = tmp_path / "moved.jsonl"
        moved.write_bytes(b"".join(lines))
        files.checkpoints.write_bytes(lines[-1])
        assert last_checkpoint(files.checkpoints) == read_checkpoints(moved)[-1]
        for report in (await found_in([*events], files), await found_in([*events], files, moved)):
            assert (report.findings, report.intact_up_to, report.certified) == ([], COUNT, COUNT)
        changed = [*events[:6], events[6]._replace(body=b"other"), *events[7:]]
        report = await found_in([*changed], files)  # the leaves name it
        assert told(report) == [("changed", 7, 7)]
        chain, certified = await resume(ListedLedger(events), files, ThreadPoolExecutor(1))
        assert certified is not None
        assert certified.fits(chain)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda log: log.__setitem__(6, event(7, b"other")), [("changed", 7, 7)]),
        (lambda log: log.__setitem__(slice(6, 8), [None, None]), [("missing", 7, 8)]),
        (lambda log: log.__setitem__(slice(0, 2), [log[1], log[0]]), [("moved", 1, 1, 2), ("moved", 2, 2, 1)]),
        (lambda log: log.__delitem__(slice(20, 23)), [("cut_off", 21, 23)]),
        (lambda log: log.__delitem__(9), [("moved", 11, 23, 10), ("missing", 10, 10)]),
        (lambda log: log.insert(9, event(99)), [("moved", 11, 23, 12), ("changed", 10, 10)]),
        (lambda log: log.append(log.pop(3)), [("moved", 4, 4, 23), ("moved", 5, 23, 4)]),
        (lambda log: log.__setitem__(3, log[12]), [("changed", 4, 4)]),
        (lambda log: log.clear(), [("cut_off", 1, 23)]),
    ],
    ids=["changed", "removed", "swapped", "cut", "closed up", "inserted", "to the end", "copied over", "emptied"],
)
async def test_an_audit_says_what_was_done(
    damage: Callable[[Log], object], expected: list[tuple[object, ...]], original: tuple[list[StoredEvent], NotaryFiles]
) -> None:
    events, files = original
    log: Log = [*events]
    damage(log)
    report = await found_in(log, files)
    seen = told(report)
    if ("changed", 10, 10) in expected:  # what stands there is new, what stood there is one further on
        expected = [("moved", 10, 23, 11)]
    assert seen == expected
    assert not report.intact
    assert report.intact_up_to == min(int(str(one[1])) for one in expected) - 1


DAMAGES = st.sampled_from(["byte", "time", "subject", "remove", "hole", "swap", "cut"])


@given(DAMAGES, st.data(), st.booleans())
def test_any_damage_is_found_with_leaves_or_without(
    loop: LoopThread, original: tuple[list[StoredEvent], NotaryFiles], kind: str, data: st.DataObject, leaves: bool
) -> None:
    events, files = original
    at = data.draw(st.integers(0, COUNT - 1), "at")
    log = damaged(events, kind, at, data)
    with copy_of(files) as kept:
        if not leaves:
            kept.leaves.path.unlink()
        report = loop.run(found_in(log, kept))
    assert not report.intact
    assert report.intact_up_to <= at
    if not leaves:
        assert report.intact_up_to >= min(at, *(p for p, _ in report.damaged())) - 1 - EVERY
    elif kind in ("byte", "time", "subject"):
        assert told(report) == [("changed", at + 1, at + 1)]


def damaged(events: list[StoredEvent], kind: str, at: int, data: st.DataObject) -> Log:
    """The log with one damage of this kind."""
    log: Log = [*events]
    one = events[at]
    if kind == "byte":
        where, bit = data.draw(st.integers(0, len(one.body) - 1)), 1 << data.draw(st.integers(0, 7))
        log[at] = one._replace(body=one.body[:where] + bytes([one.body[where] ^ bit]) + one.body[where + 1 :])
    elif kind == "time":
        log[at] = one._replace(stored_ns=one.stored_ns ^ (1 << data.draw(st.integers(0, 40))))
    elif kind == "subject":
        log[at] = one._replace(subject=one.subject.replace("ada", "eve"))
    elif kind == "remove":
        del log[at]
    elif kind == "hole":
        log[at] = None
    elif kind == "swap":
        other = data.draw(st.integers(0, COUNT - 1).filter(lambda n: n != at))
        log[at], log[other] = log[other], log[at]
    else:
        del log[at:]
    return log


async def test_without_leaves_only_the_stretch_between_two_checkpoints_is_named(
    original: tuple[list[StoredEvent], NotaryFiles],
) -> None:
    events, files = original
    log: Log = [*events]
    log[11] = event(12, b"other")
    with copy_of(files) as kept:
        kept.leaves.path.unlink()
        report = await found_in(log, kept)
    assert told(report) == [("range", 11, 15)]
    assert report.intact_up_to == 10
    assert any("leaves are lost" in one for one in report.unseen)


async def test_a_damaged_leaf_file_is_a_finding_and_accuses_no_event(
    original: tuple[list[StoredEvent], NotaryFiles],
) -> None:
    events, files = original
    with copy_of(files) as kept:
        content = bytearray(kept.leaves.path.read_bytes())
        content[7 * 32] ^= 1
        kept.leaves.path.write_bytes(content)
        report = await found_in([*events], kept)
        log: Log = [*events]
        log[1], log[7] = event(2, b"other"), event(8, b"other")
        both = await found_in(log, kept)
    assert [kind for kind, *_ in told(report)] == ["leaves"]
    assert told(both)[1:] == [("changed", 2, 2), ("range", 6, 10)]


async def test_the_tail_behind_an_outside_checkpoint_is_missed_although_all_local_files_were_cut(
    original: tuple[list[StoredEvent], NotaryFiles], tmp_path: Path
) -> None:
    events, files = original
    outside = tmp_path / "elsewhere.jsonl"
    shutil.copyfile(files.checkpoints, outside)
    with copy_of(files) as kept:
        lines = kept.checkpoints.read_bytes().splitlines(keepends=True)
        kept.checkpoints.write_bytes(b"".join(lines[:2]))
        kept.leaves.cut_to(10)
        hidden = await found_in([*events[:10]], kept)
        seen = await found_in([*events[:10]], kept, outside)
    assert hidden.intact
    assert any("--checkpoints" in one for one in hidden.unseen)
    assert [kind for kind, *_ in told(seen)] == ["leaves", "cut_off", "cut_off", "cut_off"]
    assert seen.intact_up_to == 10


async def test_leaves_that_nobody_signed_yet_still_betray_a_cut(
    original: tuple[list[StoredEvent], NotaryFiles],
) -> None:
    events, files = original
    with copy_of(files) as kept:
        kept.leaves.append([leaf_hash(event(24))], COUNT)
        report = await found_in([*events], kept)
    assert told(report) == [("cut_off", 24, 24)]


@pytest.mark.parametrize("field", ["position", "root", "head", "time", "key", "signature"])
async def test_a_forged_checkpoint_is_found_and_counts_for_nothing(
    field: str, original: tuple[list[StoredEvent], NotaryFiles]
) -> None:
    events, files = original
    with copy_of(files) as kept:
        lines = [orjson.loads(line) for line in kept.checkpoints.read_bytes().splitlines()]
        lines[-1][field] = {
            "position": 22,
            "root": "11" * 32,
            "head": "11" * 32,
            "time": "2027-01-01T00:00:00+00:00",
            "key": "00" * 16,
            "signature": "A" * 86 + "==",
        }[field]
        kept.checkpoints.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        report = await found_in([*events], kept)
    assert [kind for kind, *_ in told(report)] == ["key" if field == "key" else "checkpoint"]
    assert report.certified == 20


async def test_a_checkpoint_by_a_key_of_ones_own_is_found(
    original: tuple[list[StoredEvent], NotaryFiles], tmp_path: Path
) -> None:
    events, files = original
    forger = SigningKeys.open(tmp_path / "forger")
    forged = [*events]
    forged[4] = event(5, b"other")
    chain = Chain.empty().extended(leaf_hash(one) for one in forged)
    with copy_of(files) as kept:
        append_checkpoints(kept.checkpoints, [sign(chain, forger, EPOCH)])
        report = await found_in([*forged], kept)
    assert [kind for kind, *_ in told(report)] == ["key", "changed"]


async def test_a_line_that_is_no_checkpoint_is_found(original: tuple[list[StoredEvent], NotaryFiles]) -> None:
    events, files = original
    with copy_of(files) as kept:
        kept.checkpoints.write_bytes(b'{"position": true}\n\xff\n[]\n' + kept.checkpoints.read_bytes())
        report = await found_in([*events], kept)
        kept.checkpoints.write_bytes(kept.checkpoints.read_bytes()[:-60])
        cut = await found_in([*events], kept)
    assert [kind for kind, *_ in told(report)] == ["checkpoint"] * 3
    assert {one.message.partition(": ")[2] for one in cut.findings} == {"not a signed checkpoint"}
    assert len(cut.findings) == 4
    assert report.intact_up_to == COUNT


async def test_two_checkpoints_of_one_position_over_different_logs_are_found(
    original: tuple[list[StoredEvent], NotaryFiles],
) -> None:
    events, files = original
    with copy_of(files) as kept:
        other = Chain.empty().extended(leaf_hash(event(100 + at)) for at in range(COUNT))
        append_checkpoints(kept.checkpoints, [sign(other, SigningKeys.open(kept.keys), EPOCH)])
        report = await found_in([*events], kept)
    assert "different logs" in report.findings[0].message


async def test_the_auditors_own_key_admits_later_keys_and_no_others(
    original: tuple[list[StoredEvent], NotaryFiles], tmp_path: Path
) -> None:
    events, files = original
    with copy_of(files) as kept:
        keys = SigningKeys.open(kept.keys)
        before, after = keys.rotate()
        longer = [*events, event(24)]
        chain = Chain.empty().extended(leaf_hash(one) for one in longer)
        append_checkpoints(kept.checkpoints, [sign(chain, keys, EPOCH)])
        kept.leaves.append([leaf_hash(longer[-1])], COUNT)
        for anchor in (before, after):
            assert (await audit(ListedLedger(longer), gather(kept, anchor=anchor))).intact
        stranger = SigningKeys.open(tmp_path / "stranger").current()
        report = await audit(ListedLedger(longer), gather(kept, anchor=stranger))
        assert {one.kind for one in report.findings} == {"key"}
        named = {one.message.rpartition(" is signed by an unknown key, ")[2] for one in report.findings}
        assert named == {before.id, after.id}
        assert report.certified == 0
        assert [one.key_id for one in read_checkpoints(kept.checkpoints)][-2:] == [before.id, after.id]
        assert set(public_keys(kept.keys)) == {before.id, after.id}


async def test_where_nothing_was_signed_an_audit_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(NotCertified, match="nothing of this log is signed"):
        gather(NotaryFiles.of(tmp_path))


@pytest.mark.parametrize("how", ["the file is gone", "the file is empty"])
def test_where_the_checkpoints_of_a_signed_log_are_gone_an_audit_says_that_they_were_removed(
    how: str, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    begin(files, 0, 0)
    note_signed(files)
    if how == "the file is empty":
        files.checkpoints.write_bytes(b"")
    with pytest.raises(NotCertified, match=r"this log was signed, .* somebody removed them"):
        gather(files)


def test_checkpoints_that_are_there_and_cannot_be_read_are_not_called_removed(tmp_path: Path) -> None:
    files = NotaryFiles.of(tmp_path)
    files.checkpoints.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        gather(files)


class CutMeanwhile(ListedLedger):
    """A log whose end is cut off once a list of it was read."""

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        async for events in super().read(start, follow=follow, batch=batch):
            yield events
            del self.events[3:]
            raise LogGap("the log is cut", first=4, last=events[-1].position)


async def test_of_a_log_that_is_cut_while_it_is_read_the_rest_is_missing() -> None:
    pieces: list[object] = []
    async for piece in read_what_is_there(CutMeanwhile([event(at) for at in range(1, 21)]), batch=5):
        pieces.append(piece if isinstance(piece, Missing) else [one.position for one in piece])
        assert len(pieces) < 5, f"it comes to no end: {pieces}"
    assert pieces == [[1, 2, 3, 4, 5], Missing(6, 20)]

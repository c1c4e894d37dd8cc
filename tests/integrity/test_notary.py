"""A notary signs what the log has, takes up where it was, and never signs against itself."""

from __future__ import annotations

import asyncio
import resource
import shlex
import shutil
import string
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import ChainContradicted, InvalidPayload, LogGap, NotCertified, UnsafeKeyFile
from ledger.archive.archived import Archived
from ledger.integrity.audit import audit
from ledger.integrity.audit_evidence import gather
from ledger.integrity.chain import Chain, leaf_hash
from ledger.integrity.checkpoint_hook import CheckpointHook
from ledger.integrity.checkpoints import append_checkpoints, last_checkpoint, read_checkpoints
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey, public_keys, trusted_with
from ledger.store.in_memory import MemoryLedger
from ledger.store.jetstream import JetStreamLedger
from tests.conftest import saved
from tests.integrity.logs import ListedLedger, event, signed_log
from tests.patience import PATIENCE, comes_true


@asynccontextmanager
async def at_work(notary: Notary) -> AsyncIterator[Notary]:
    """A notary whose loop runs; it is closed in the end as a node does."""
    task = asyncio.create_task(notary.run())
    try:
        yield notary
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await notary.close()


async def chain_of(ledger: JetStreamLedger | MemoryLedger) -> Chain:
    return Chain.empty().extended([leaf_hash(one) async for part in ledger.read() for one in part])


async def test_every_so_many_events_and_at_the_end_a_checkpoint_is_signed(
    jetstream_ledger: JetStreamLedger, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    await jetstream_ledger.append_many([saved(f"item-{at}") for at in range(2_500)])
    async with at_work(
        Notary(jetstream_ledger, files, every_events=1_000, every_seconds=60, look_seconds=0.02)
    ) as notary:
        await comes_true(lambda: notary.certified and notary.certified.position >= 2_000)
        await jetstream_ledger.append(saved("late"))
    signed = read_checkpoints(files.checkpoints)
    # The first round also signs what it comes to, unless it takes so long that it ends before; the last is at the stop.
    assert [one.position for one in signed] in ([1_000, 2_000, 2_500, 2_501], [1_000, 2_000, 2_501])
    assert all(one.signed_by(public_keys(files.keys)) for one in signed)
    assert signed[-1].fits(await chain_of(jetstream_ledger))
    assert files.leaves.count == 2_501
    assert files.leaves.path.stat().st_mode & 0o777 == files.checkpoints.stat().st_mode & 0o777


async def test_what_is_new_is_signed_after_a_time_and_nothing_is_signed_twice(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    await memory_ledger.append(saved("a"))
    async with at_work(Notary(memory_ledger, files, every_seconds=0.05, look_seconds=0.01)) as notary:
        await comes_true(lambda: notary.certified)
        await memory_ledger.append(saved("b"))
        await comes_true(lambda: notary.certified and notary.certified.position == 2)
        await asyncio.sleep(0.15)
    assert [one.position for one in read_checkpoints(files.checkpoints)] == [1, 2]


async def test_whoever_asks_for_a_signature_does_not_wait_for_the_time(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    await memory_ledger.append(saved("a"))
    async with at_work(
        Notary(memory_ledger, NotaryFiles.of(tmp_path), every_seconds=3_600, look_seconds=3_600)
    ) as notary:
        await comes_true(lambda: notary._chain is not None)
        assert (await notary.certify(1, timeout=PATIENCE)).position == 1
        assert (await notary.chain_at(1)) == await chain_of(memory_ledger)
        with pytest.raises(NotCertified, match="position 9"):
            await notary.certify(9, timeout=0.05)


@pytest.mark.parametrize("left", ["all", "no leaves", "half a leaf", "a wrong leaf", "unsigned leaves", "half a line"])
async def test_after_a_kill_the_chain_goes_on_from_what_was_signed(
    left: str, memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    await memory_ledger.append_many([saved(f"i{at}") for at in range(40)])
    async with at_work(Notary(memory_ledger, files, every_events=10, look_seconds=0.01)) as notary:
        await comes_true(lambda: notary.certified and notary.certified.position == 40)
    content = files.leaves.path.read_bytes()
    if left == "no leaves":
        files.leaves.path.unlink()
    elif left == "half a leaf":
        files.leaves.path.write_bytes(content[: 17 * 32 + 5])
    elif left == "a wrong leaf":
        files.leaves.path.write_bytes(content[:320] + bytes(32) + content[352:])
    elif left == "unsigned leaves":
        files.leaves.path.write_bytes(content + bytes(77))
    elif left == "half a line":
        with files.checkpoints.open("ab") as file:
            file.write(b'{"position": 41, "ro')
    await memory_ledger.append_many([saved(f"j{at}") for at in range(5)])
    async with at_work(Notary(memory_ledger, files, every_events=10, look_seconds=0.01)) as notary:
        assert (await notary.certify(45)).fits(await chain_of(memory_ledger))
        assert notary.trouble is None
    assert files.leaves.count == 45
    assert [one.position for one in read_checkpoints(files.checkpoints)][-2:] == [40, 45]


def damage_leaves(files: NotaryFiles, how: str) -> None:
    path = files.leaves.path
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: 17 * 32 + 5])
        return
    if how == "zeroed":
        path.write_bytes(bytes(len(content)))
        return
    path.unlink()
    if how == "unreadable":
        path.mkdir()


@pytest.mark.parametrize("when", ["while it works", "while it is stopped"])
@pytest.mark.parametrize("how", ["removed", "cut", "zeroed", "unreadable"])
async def test_leaves_that_are_lost_are_made_anew_by_the_notary_itself(
    how: str, when: str, memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    quick = partial(Notary, memory_ledger, files, every_events=10, every_seconds=0.01, look_seconds=0.01)
    await memory_ledger.append_many([saved(f"i{at}") for at in range(40)])
    async with at_work(quick()) as notary:
        await notary.certify(40)
        if when == "while it works":
            damage_leaves(files, how)
            await _heals(notary, memory_ledger)
    if when == "while it is stopped":
        damage_leaves(files, how)
        async with at_work(quick()) as notary:
            await _heals(notary, memory_ledger)
    report = await audit(memory_ledger, gather(files))
    assert (report.intact, report.findings) == (True, [])
    assert bool(list(files.directory.glob("leaves.bin.set-aside-*"))) == (how == "unreadable")


async def _heals(notary: Notary, ledger: MemoryLedger) -> None:
    """What is asked for is there in the end, nothing is in trouble, and more is signed."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotCertified):
                assert await notary.chain_at(40) == await chain_of(ledger)
                break
            await asyncio.sleep(0)  # the notary's turn
    await ledger.append(saved("later"))
    assert (await notary.certify(41)).fits(await chain_of(ledger))
    assert notary.trouble is None


async def _signed_once(ledger: MemoryLedger, directory: Path) -> NotaryFiles:
    """The files of a notary that has signed one event and is at work no more."""
    files = NotaryFiles.of(directory)
    await ledger.append(saved("a"))
    async with at_work(Notary(ledger, files)) as notary:
        await notary.certify(1)
    return files


async def test_whoever_asks_before_a_notary_has_taken_up_its_chain_is_answered_once_it_has(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = await _signed_once(memory_ledger, tmp_path)
    later = Notary(memory_ledger, files)
    asked = asyncio.create_task(later.certify(1, timeout=10 * PATIENCE))
    await asyncio.sleep(0)  # it waits
    async with at_work(later), asyncio.timeout(PATIENCE):
        assert (await asked).position == 1


async def test_an_audit_reads_the_log_where_the_leaves_cannot_be_read(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = await _signed_once(memory_ledger, tmp_path)
    damage_leaves(files, "unreadable")
    assert (await audit(memory_ledger, gather(files))).intact
    stored = [one async for part in memory_ledger.read() for one in part]
    assert not Archived(tmp_path, files.leaves).is_of(stored[0])  # so a rebuild reads the log


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("cut", "events were cut off"),
        ("last", "position 30"),
        ("early, leaves lost", "position 30"),
        ("key lost", "bring the keys back"),
        ("line broken", "is no checkpoint"),
        ("line changed", "its key did not sign what it says"),
    ],
)
async def test_nothing_is_signed_against_an_earlier_checkpoint(
    change: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.integrity.notary_start.HEAD_COMES_BACK_WITHIN", 0.3)
    events, files = signed_log(tmp_path, 30, 10)
    before = files.checkpoints.read_bytes()
    log = [*events, event(31)]
    if change == "cut":
        log = [*events[:20]]
    elif change == "last":
        log[29] = event(30, b"other")
    elif change == "early, leaves lost":
        log[3] = event(4, b"other")
        files.leaves.path.unlink()
    elif change == "key lost":
        shutil.rmtree(files.keys)
    elif change == "line changed":
        last = read_checkpoints(files.checkpoints)[-1]
        before = before.replace(last.head.hex().encode(), bytes(32).hex().encode())
        files.checkpoints.write_bytes(before)
    else:
        before += b"[]\n"
        files.checkpoints.write_bytes(before)
    notary = Notary(ListedLedger(log), files, look_seconds=0.01, every_seconds=0.01)
    async with asyncio.timeout(PATIENCE):
        await notary.run()  # it ends by itself
    assert isinstance(notary.trouble, ChainContradicted)
    assert told in notary.trouble.message
    assert notary.status()["trouble"] == notary.trouble.message
    with pytest.raises(NotCertified, match="31"):
        await notary.certify(31, timeout=PATIENCE)
    await notary.close()
    assert files.checkpoints.read_bytes() == before


async def test_a_log_that_is_changed_while_the_notary_runs_is_not_signed_on(tmp_path: Path) -> None:
    ledger = ListedLedger([event(at) for at in range(1, 6)])
    files = NotaryFiles.of(tmp_path)
    notary = Notary(ledger, files, look_seconds=0.01, every_seconds=0.01)
    running = asyncio.create_task(notary.run())
    await comes_true(lambda: notary.certified and notary.certified.position == 5)
    ledger.events = [event(100 + at) for at in range(8)]  # another log, which has grown further
    async with asyncio.timeout(PATIENCE):
        await running
    assert isinstance(notary.trouble, ChainContradicted)
    assert "position 5" in notary.trouble.message
    await notary.close()
    assert [one.position for one in read_checkpoints(files.checkpoints)] == [5]


async def test_the_latest_events_are_signed_in_the_end_but_where_the_log_is_gone_for_good(tmp_path: Path) -> None:
    for name, gone, signed in (("there", False, 2), ("gone", True, None)):
        notary = Notary(ListedLedger([event(1), event(2)]), NotaryFiles.of(tmp_path / name))
        await notary.close(lambda gone=gone: gone)  # type: ignore[misc]  # a lambda of the loop's own value
        assert (notary.certified.position if notary.certified else None) == signed


async def test_a_hole_in_the_log_ends_the_signing_before_it(tmp_path: Path) -> None:
    files = NotaryFiles.of(tmp_path)
    notary = Notary(ListedLedger([event(1), event(2), None, event(4)]), files, look_seconds=0.01, every_events=1)
    async with asyncio.timeout(PATIENCE):
        await notary.run()
    assert isinstance(notary.trouble, LogGap)
    await notary.close()
    assert [one.position for one in read_checkpoints(files.checkpoints)] == [2]


async def test_a_command_gets_every_checkpoint_and_one_that_fails_gets_them_later(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files, there, received = NotaryFiles.of(tmp_path / "data"), tmp_path / "there", tmp_path / "received"
    script = tmp_path / "send it.py"
    script.write_text(
        "import os, sys\n"
        f"os.path.exists({str(there)!r}) or sys.exit('nobody there')\n"
        f"open({str(received)!r}, 'ab').write(sys.stdin.buffer.read())\n"
    )
    hook = CheckpointHook(f"{shlex.join([sys.executable, str(script)])} ; rm -rf /nothing")
    await memory_ledger.append(saved("a"))
    working = at_work(Notary(memory_ledger, files, hook=hook, every_seconds=0.02, look_seconds=0.01))
    with capture_logs() as logged:
        async with working as notary:
            for number in range(3):  # each is one more run that fails
                await memory_ledger.append(saved(f"a-{number}"))
                hook.trouble = None
                await comes_true(lambda: hook.trouble)
            assert "nobody there" in str(notary.status()["hook"])
            there.touch()
            await memory_ledger.append(saved("b"))
            await comes_true(lambda: notary.certified and notary.certified.position == 5)
            await comes_true(lambda: received.exists() and hook.trouble is None)
    told = [line["event"] for line in logged if "sent" in line["event"]]
    assert told == ["checkpoints are not sent", "checkpoints are sent again"]
    assert received.read_bytes() == files.checkpoints.read_bytes()


async def test_a_hook_that_hangs_or_is_not_there_stops_nobody(memory_ledger: MemoryLedger, tmp_path: Path) -> None:
    hanging = CheckpointHook("sleep 60", timeout=0.2)
    absent = CheckpointHook("/no/such/program")
    await memory_ledger.append(saved("a"))
    for number, (hook, why) in enumerate([(hanging, "did not end"), (absent, "cannot be started")]):
        files = NotaryFiles.of(tmp_path / str(number))
        async with at_work(Notary(memory_ledger, files, hook=hook, every_seconds=0.02, look_seconds=0.01)) as notary:
            await comes_true(partial(getattr, hook, "trouble"))
            assert notary.trouble is None
            assert why in str(hook.trouble)
    for command in ("", "an 'open quote"):
        with pytest.raises(InvalidPayload):
            CheckpointHook(command)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    keys = SigningKeys.open(tmp_path / "keys")
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "keys" / "signing.pem").stat().st_mode & 0o777 == 0o600
    (tmp_path / "keys" / "signing.pem").chmod(0o640)
    with pytest.raises(UnsafeKeyFile, match="chmod 600"):
        SigningKeys.open(tmp_path / "keys")
    (tmp_path / "keys" / "signing.pem").chmod(0o600)
    (tmp_path / "keys" / "signing.pem").write_text("not a key")
    with pytest.raises(UnsafeKeyFile, match="not a private key"):
        SigningKeys.open(tmp_path / "keys")
    (tmp_path / "keys" / "signing.pem").unlink()
    with pytest.raises(UnsafeKeyFile, match="cannot be read"):
        keys.current()


async def test_a_replaced_key_signs_from_then_on_and_the_old_one_still_verifies(
    memory_ledger: MemoryLedger, tmp_path: Path
) -> None:
    files = NotaryFiles.of(tmp_path)
    await memory_ledger.append(saved("a"))
    async with at_work(Notary(memory_ledger, files, every_seconds=0.02, look_seconds=0.01)) as notary:
        await notary.certify(1)
        old, new = SigningKeys(files.keys).rotate()  # as another process does it
        await memory_ledger.append(saved("b"))
        await notary.certify(2)
    assert [one.key_id for one in read_checkpoints(files.checkpoints)] == [old.id, new.id]
    assert all(one.signed_by(public_keys(files.keys)) for one in read_checkpoints(files.checkpoints))
    _, third = SigningKeys(files.keys).rotate()
    assert set(trusted_with(old, files.keys)) == {old.id, new.id, third.id} == set(trusted_with(third, files.keys))
    lines = (files.keys / "succession.jsonl").read_bytes().splitlines(keepends=True)
    other = lines[0].translate(bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_uppercase[::-1].encode()))
    (files.keys / "succession.jsonl").write_bytes(other + b"nonsense\n[]\n" + lines[1])
    assert set(trusted_with(third, files.keys)) == {new.id, third.id}
    for text in (old.text(), old.pem()):
        assert VerifyingKey.from_text(text).id == old.id
    for text in ("", "AAAA", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"):
        with pytest.raises(InvalidPayload, match="public key"):
            VerifyingKey.from_text(text)


@contextmanager
def no_file_longer_than(length: int) -> Iterator[None]:
    """Who writes on gets an error behind the last byte that has room, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_checkpoint_without_room_leaves_no_part_of_it_before_the_next_one(tmp_path: Path) -> None:
    _, files = signed_log(tmp_path, 3, every=1)
    first, *others = read_checkpoints(files.checkpoints)
    files.checkpoints.unlink()
    append_checkpoints(files.checkpoints, [first])
    before = files.checkpoints.read_bytes()
    with no_file_longer_than(len(before) + 100), pytest.raises(OSError, match="too large"):
        append_checkpoints(files.checkpoints, others)
    assert files.checkpoints.read_bytes() == before
    append_checkpoints(files.checkpoints, others)
    assert last_checkpoint(files.checkpoints) == others[-1]
    assert read_checkpoints(files.checkpoints, invalid=lambda *line: pytest.fail(str(line))) == [first, *others]


@pytest.mark.parametrize("length", [10, 200])
def test_a_replacement_of_the_key_without_room_is_none_and_the_next_one_is_known(tmp_path: Path, length: int) -> None:
    keys = SigningKeys.open(tmp_path)
    old = keys.current()
    with no_file_longer_than(length), pytest.raises(OSError, match="too large"):
        keys.rotate()
    assert keys.current() == old
    assert all(path.stat().st_size for path in (tmp_path / "public").iterdir())
    _, new = keys.rotate()
    assert set(trusted_with(old, tmp_path)) == {old.id, new.id}


@pytest.mark.parametrize("left", [None, b"", b"-----BEGIN PUBLIC KEY-----\nMCo"])
def test_the_public_key_of_the_one_in_use_is_written_again_where_its_file_is_lost(
    tmp_path: Path, left: bytes | None
) -> None:
    key = SigningKeys.open(tmp_path).current()
    file = tmp_path / "public" / f"{key.id}.pem"
    file.unlink()
    if left is not None:
        file.write_bytes(left)
    assert SigningKeys.open(tmp_path).current() == key
    assert public_keys(tmp_path) == {key.id: key}


def test_a_signing_key_that_is_gone_is_told_before_another_takes_its_place(tmp_path: Path) -> None:
    with capture_logs() as first:
        before = SigningKeys.open(tmp_path).current()
        SigningKeys.open(tmp_path)
    assert first == []
    (tmp_path / "signing.pem").unlink()
    with capture_logs() as logged:
        after = SigningKeys.open(tmp_path).current()
    assert after.id != before.id
    (line,) = logged
    assert (line["log_level"], line["file"], line["earlier"]) == ("warning", str(tmp_path / "signing.pem"), [before.id])
    assert set(public_keys(tmp_path)) == {before.id, after.id}


def test_keys_that_are_replaced_by_many_at_once_are_replaced_one_after_the_other(tmp_path: Path) -> None:
    first = SigningKeys.open(tmp_path).current()
    with ThreadPoolExecutor(8) as threads:
        rotations = [threads.submit(SigningKeys(tmp_path).rotate) for _ in range(40)]
        replaced = {old.id: new.id for old, new in (rotation.result() for rotation in rotations)}
    at = first.id
    for _ in range(40):
        at = replaced.pop(at)
    assert replaced == {}
    assert SigningKeys(tmp_path).current().id == at
    assert len(trusted_with(first, tmp_path)) == len(public_keys(tmp_path)) == 41


def test_a_line_of_a_replacement_that_a_kill_has_cut_takes_no_other_with_it(tmp_path: Path) -> None:
    keys = SigningKeys.open(tmp_path)
    old, new = keys.rotate()
    with (tmp_path / "succession.jsonl").open("ab") as file:
        file.write(b'{"old":"')
    _, third = keys.rotate()
    assert set(trusted_with(old, tmp_path)) == {old.id, new.id, third.id}


@pytest.mark.parametrize("torn", [b"\0" * 5_000, b"\0" * 100_000, b'{"position"'])
def test_what_stands_behind_the_last_checkpoint_and_is_no_line_is_removed_however_long(
    tmp_path: Path, torn: bytes
) -> None:
    _, files = signed_log(tmp_path, 2, every=1)
    before = files.checkpoints.read_bytes()
    files.checkpoints.write_bytes(before + torn)
    last = last_checkpoint(files.checkpoints)
    assert last is not None
    assert last.position == 2
    assert files.checkpoints.read_bytes() == before


def test_the_last_checkpoint_of_no_file_or_an_empty_one_is_none(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "none") is None
    (tmp_path / "empty").touch()
    assert last_checkpoint(tmp_path / "empty") is None
    (tmp_path / "torn").write_bytes(b'{"position"')
    assert last_checkpoint(tmp_path / "torn") is None
    assert (tmp_path / "torn").stat().st_size == 0

"""The stream's own files, damaged in a copy while no server has them open: an audit finds it, and what is left.

`KLEDGER_DAMAGES=200` runs more cases than the suite does, `KLEDGER_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.integrity.audit import Report, audit
from ledger.integrity.audit_evidence import gather
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.store.jetstream import JetStreamLedger
from tests.conftest import LoopThread, saved

COUNT = 200
CASES = int(os.environ.get("KLEDGER_DAMAGES", "8"))
SEED = int(os.environ.get("KLEDGER_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
KINDS = ("byte", "byte", "removed", "swapped", "cut")


async def _signed(data: Path) -> None:
    """A stopped data directory: a stream, what a notary signed of it, no process."""
    server = EmbeddedServer(data / "broker")
    access = await server.start()
    await ensure_stream(access)
    ledger = await JetStreamLedger.connect(access)
    await ledger.append_many([saved(f"item-{at}", content="备件 " + "x" * (at % 170)) for at in range(COUNT)])
    notary = Notary(ledger, NotaryFiles.of(data), every_events=30)
    await notary.close()  # signs what is there
    await ledger.close()
    await server.stop()


async def audited(data: Path) -> Report:
    """What an audit says with a server on this directory."""
    server = EmbeddedServer(data / "broker")
    ledger = await JetStreamLedger.connect(await server.start())
    try:
        return await audit(ledger, gather(NotaryFiles.of(data)))
    finally:
        await ledger.close()
        await server.stop()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("original") / "data"
    loop = LoopThread()
    loop.run(_signed(data))
    loop.close()
    return data


def records(block: bytes) -> list[tuple[int, int]]:
    """Where each record of a message block begins and ends: it opens with its length, the highest bit is a flag."""
    found, at = [], 0
    while at < len(block):
        length = int.from_bytes(block[at : at + 4], "little") & 0x7FFF_FFFF
        found.append((at, at + length))
        at += length
    return found


def damage(block: bytes, kind: str, rng: random.Random) -> tuple[bytes, str]:
    """A block that is not as it was, and what was done."""
    parts = records(block)
    assert len(parts) == COUNT
    pieces = [block[start:end] for start, end in parts]
    one, other = sorted(rng.sample(range(COUNT), 2))
    if kind == "byte":
        at = rng.randrange(len(block))
        return block[:at] + bytes([block[at] ^ rng.randrange(1, 256)]) + block[at + 1 :], f"byte {at}"
    if kind == "removed":
        return b"".join(pieces[:one] + pieces[one + 1 :]), f"record {one + 1}"
    if kind == "swapped":
        pieces[one], pieces[other] = pieces[other], pieces[one]
        return b"".join(pieces), f"records {one + 1} and {other + 1}"
    at = rng.randrange(len(block))
    return block[:at], f"from byte {at}"


async def test_the_copy_itself_is_intact(signed: Path, tmp_path: Path) -> None:
    shutil.copytree(signed, tmp_path / "data")
    report = await audited(tmp_path / "data")
    assert report.intact, report
    assert (report.intact_up_to, report.certified) == (COUNT, COUNT)


@pytest.mark.parametrize("case", range(CASES))
async def test_any_damage_to_the_files_of_the_stream_is_found(case: int, signed: Path, tmp_path: Path) -> None:
    rng = random.Random(SEED + case)
    data = tmp_path / "data"
    shutil.copytree(signed, data)
    (block,) = data.rglob("LEDGER/msgs/*.blk")
    kind = KINDS[case % len(KINDS)]
    content, done = damage(block.read_bytes(), kind, rng)
    block.write_bytes(content)
    # With its index the server believes that all is there; without, it reads the blocks and drops what it cannot.
    index = rng.random() < 0.5
    if not index:
        (block.parent / "index.db").unlink()
    told = f"KLEDGER_SEED={SEED}, case {case}: {kind}, {done}, {'with' if index else 'without'} index"
    report = await audited(data)
    assert not report.intact, told
    assert report.intact_up_to < COUNT, told
    assert {one.kind for one in report.findings} <= {"changed", "missing", "moved", "cut_off"}, told

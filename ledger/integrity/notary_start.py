"""Where does a notary go on after a restart? At its last checkpoint, if leaves or log still come out as signed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import structlog

from kledger.contract.errors import ChainContradicted
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.checkpoints import SignedCheckpoint, last_checkpoint
from ledger.integrity.leaves import LeafFile
from ledger.integrity.signing_keys import public_keys
from ledger.stream import Ledger

log = structlog.get_logger(__name__)

READ = 1_000
# In a cluster a new leader may still be reading in what its members have.
HEAD_COMES_BACK_WITHIN = 6.0


@dataclass(frozen=True, slots=True)
class NotaryFiles:
    """Where a node keeps what it vouches with: never inside the broker's directory."""

    directory: Path
    keys: Path
    checkpoints: Path

    @classmethod
    def of(cls, data: Path) -> NotaryFiles:
        """The files of a node's data directory."""
        return cls(data / "chain", data / "keys", data / "chain" / "checkpoints.jsonl")

    @property
    def leaves(self) -> LeafFile:
        return LeafFile(self.directory / "leaves.bin")


async def take_up(ledger: Ledger, files: NotaryFiles, worker: Executor) -> tuple[Chain, SignedCheckpoint | None]:
    """The chain as it was signed last, with that checkpoint; the leaf file then ends there too.

    What is not signed yet is read again: a crash may have left any part of it. Raises ChainContradicted, LogGap,
    BrokerUnavailable.
    """
    loop = asyncio.get_running_loop()
    certified = await loop.run_in_executor(worker, _last_signed, files)
    if certified is None:
        files.leaves.cut_to(0)
        return Chain.empty(), None
    chain = await chain_of(files.leaves, certified.position, worker)
    if not certified.fits(chain):
        log.warning("the leaves are made anew from the log", kept=files.leaves.count, signed=certified.position)
        chain = await _from_log(ledger, files, certified, worker)
    files.leaves.cut_to(certified.position)
    return chain, certified


async def chain_of(leaves: LeafFile, position: int, worker: Executor, chain: Chain | None = None) -> Chain:
    """The chain of the leaves up to `position`, as far as there are so many, in pieces that let others run."""
    chain = chain or Chain.empty()
    for piece in leaves.chunks(chain.position + 1, position):
        chain = await asyncio.get_running_loop().run_in_executor(worker, chain.extended, piece)
    return chain


async def head_not_before(ledger: Ledger, position: int) -> int:
    """The last position of the log. Raises ChainContradicted when that stays before `position`."""
    until = time.monotonic() + HEAD_COMES_BACK_WITHIN
    while True:
        head = (await ledger.head()).position
        if head >= position:
            return head
        if time.monotonic() > until:
            raise ChainContradicted(
                f"the log ends at position {head}, and position {position} was part of it: events were cut off; "
                "run kledger audit, and bring the log back from a backup",
                head=head,
                position=position,
            )
        await asyncio.sleep(0.25)


def _last_signed(files: NotaryFiles) -> SignedCheckpoint | None:
    """The last checkpoint of the file. Raises ChainContradicted when that is none of ours."""
    try:
        certified = last_checkpoint(files.checkpoints)
    except ValueError as error:
        raise ChainContradicted(
            f"the last line of {files.checkpoints} is no checkpoint: run kledger audit; nothing is signed until that "
            "line is put right or the file is brought back from a copy"
        ) from error
    if certified is not None and not certified.signed_by(public_keys(files.keys)):
        raise ChainContradicted(
            f"the last checkpoint in {files.checkpoints}, of position {certified.position}, is signed by none of the "
            f"keys in {files.keys}: bring the keys back, or find out who wrote it; until then nothing is signed"
        )
    return certified


async def _from_log(ledger: Ledger, files: NotaryFiles, certified: SignedCheckpoint, worker: Executor) -> Chain:
    """The chain up to a checkpoint, read from the log again; its leaves replace those in the file.

    Raises ChainContradicted when it does not come out as it was signed, LogGap, BrokerUnavailable.
    """
    await head_not_before(ledger, certified.position)
    loop = asyncio.get_running_loop()
    made = LeafFile(files.leaves.path.with_suffix(".new"))
    made.cut_to(0)
    chain = Chain.empty()
    async with contextlib.aclosing(ledger.read(1, batch=READ)) as lists:
        async for events in lists:
            wanted = events[: certified.position - chain.position]
            leaves = await loop.run_in_executor(worker, leaf_hashes, wanted)
            await loop.run_in_executor(worker, made.append, leaves, chain.position)
            chain = await loop.run_in_executor(worker, chain.extended, leaves)
            if chain.position == certified.position:
                break
    if not certified.fits(chain):
        made.path.unlink(missing_ok=True)
        raise ChainContradicted(
            f"the log up to position {certified.position} is not the one that was signed at {certified.time:%F %T} "
            "UTC: run kledger audit to see what was changed",
            position=certified.position,
        )
    if made.path.exists():
        made.path.replace(files.leaves.path)
    return chain

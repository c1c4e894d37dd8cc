"""Notary restart: resumes the chain at the last checkpoint, if the leaves or the log still match it."""

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
# In a cluster a new leader may still be catching up with its members.
HEAD_COMES_BACK_WITHIN = 6.0


@dataclass(frozen=True, slots=True)
class NotaryFiles:
    """The paths of a node's chain, keys and checkpoints: never inside the broker's directory."""

    directory: Path
    keys: Path
    checkpoints: Path

    @classmethod
    def of(cls, data: Path) -> NotaryFiles:
        """The paths in a node's data directory."""
        return cls(data / "chain", data / "keys", data / "chain" / "checkpoints.jsonl")

    @property
    def leaves(self) -> LeafFile:
        return LeafFile(self.directory / "leaves.bin")


async def resume(ledger: Ledger, files: NotaryFiles, worker: Executor) -> tuple[Chain, SignedCheckpoint | None]:
    """The chain at the last checkpoint, and that checkpoint; the leaf file is truncated to it, or set aside and made
    anew where it cannot be read.

    Events after it are read again, since a crash may have left any part of their leaves. Raises ChainContradicted,
    LogGap, BrokerUnavailable.
    """
    loop = asyncio.get_running_loop()
    certified = await loop.run_in_executor(worker, _last_signed, files)
    if not files.leaves.holds(0):
        files.leaves.set_aside()
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
    """The chain of the leaves up to `position`, as far as there are any, in chunks so that other tasks can run."""
    chain = chain or Chain.empty()
    for chunk in leaves.chunks(chain.position + 1, position):
        chain = await asyncio.get_running_loop().run_in_executor(worker, chain.extended, chunk)
    return chain


async def head_not_before(ledger: Ledger, position: int) -> int:
    """The last position of the log. Raises ChainContradicted when it stays before `position`."""
    until = time.monotonic() + HEAD_COMES_BACK_WITHIN
    while True:
        head = (await ledger.head()).position
        if head >= position:
            return head
        if time.monotonic() > until:
            raise ChainContradicted(
                f"the log ends at position {head}, and position {position} was part of it: events were cut off; "
                "run kledger audit, and bring them back from a backup (kledger repair)",
                head=head,
                position=position,
            )
        await asyncio.sleep(0.25)


def _last_signed(files: NotaryFiles) -> SignedCheckpoint | None:
    """The last checkpoint of the file. Raises ChainContradicted when no key of this node signed what it says."""
    try:
        certified = last_checkpoint(files.checkpoints)
    except ValueError as error:
        raise ChainContradicted(
            f"the last line of {files.checkpoints} is no checkpoint: run kledger audit; nothing is signed until that "
            "line is put right or the file is brought back from a copy"
        ) from error
    if certified is None:
        return None
    keys = public_keys(files.keys)
    if certified.key_id not in keys:
        raise ChainContradicted(
            f"the last checkpoint in {files.checkpoints}, of position {certified.position}, is signed by none of the "
            f"keys in {files.keys}: bring the keys back, or find out who wrote it; until then nothing is signed"
        )
    if not certified.signed_by(keys):
        raise ChainContradicted(
            f"the last checkpoint in {files.checkpoints}, of position {certified.position}, was changed: its key did "
            "not sign what it says. Run kledger audit; nothing is signed until the file is brought back from a copy"
        )
    return certified


async def _from_log(ledger: Ledger, files: NotaryFiles, certified: SignedCheckpoint, worker: Executor) -> Chain:
    """The chain up to a checkpoint, read from the log again; its leaves replace those in the file.

    Raises ChainContradicted when it does not match the checkpoint, LogGap, BrokerUnavailable.
    """
    await head_not_before(ledger, certified.position)
    loop = asyncio.get_running_loop()
    rebuilt = LeafFile(files.leaves.path.with_suffix(".new"))
    rebuilt.cut_to(0)
    chain = Chain.empty()
    async with contextlib.aclosing(ledger.read(1, batch=READ)) as lists:
        async for events in lists:
            wanted = events[: certified.position - chain.position]
            leaves = await loop.run_in_executor(worker, leaf_hashes, wanted)
            await loop.run_in_executor(worker, rebuilt.append, leaves, chain.position)
            chain = await loop.run_in_executor(worker, chain.extended, leaves)
            if chain.position == certified.position:
                break
    if not certified.fits(chain):
        rebuilt.path.unlink(missing_ok=True)
        raise ChainContradicted(
            f"the log up to position {certified.position} is not the one that was signed at {certified.time:%F %T} "
            "UTC: run kledger audit to see what was changed",
            position=certified.position,
        )
    if rebuilt.path.exists():
        rebuilt.path.replace(files.leaves.path)
    return chain

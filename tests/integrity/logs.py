"""Small logs to sign, to damage and to audit, without a broker."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kledger.contract.errors import LogGap
from ledger.event import Head, StoredEvent
from ledger.integrity.chain import Chain, leaf_hash
from ledger.integrity.checkpoints import append_checkpoints, sign
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.store.in_memory import MemoryLedger

EPOCH = datetime(2026, 3, 5, tzinfo=UTC)


def event(position: int, body: bytes | None = None) -> StoredEvent:
    """An event that is unlike every other."""
    told = f'{{"n":{position},"说":"记"}}'.encode() if body is None else body
    return StoredEvent(
        position, 1_000 + position, f"ledger.default.knowledge.i{position}.saved.user.ada", told, f"e{position}"
    )


class ListedLedger(MemoryLedger):
    """A log that is a list: what stands at a position is what the test put there; None is a hole."""

    def __init__(self, events: Sequence[StoredEvent | None]) -> None:
        super().__init__()
        self.events = list(events)

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        assert not follow
        at, end = start, len(self.events)
        if start > end + 1:
            raise LogGap("the log is cut", first=end + 1, last=start - 1)
        while at <= end:
            part: list[StoredEvent] = []
            while at <= end and len(part) < batch and (one := self.events[at - 1]) is not None:
                part.append(one._replace(position=at))
                at += 1
            if part:
                yield part
            else:
                last = next(later for later in range(at, end + 1) if later == end or self.events[later] is not None)
                raise LogGap("a hole", first=at, last=last)

    async def head(self) -> Head:
        return Head(len(self.events), 0)


def signed_log(
    directory: Path, count: int, every: int, made: Callable[[StoredEvent], StoredEvent] = lambda one: one
) -> tuple[list[StoredEvent], NotaryFiles]:
    """`count` events, signed at every `every` of them and at the end, with what a notary keeps of them."""
    events, files = [made(event(at)) for at in range(1, count + 1)], NotaryFiles.of(directory)
    files.directory.mkdir(parents=True)
    keys, chain = SigningKeys.open(files.keys), Chain.empty()
    for at, one in enumerate(events, 1):
        chain = chain.extended([leaf_hash(one)])
        if at % every == 0 or at == count:
            append_checkpoints(files.checkpoints, [sign(chain, keys, EPOCH)])
    files.leaves.append([leaf_hash(one) for one in events], 0)
    return events, files

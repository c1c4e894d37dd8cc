"""Many payloads are sent in chunks, and in halves when one payload in a chunk spoils the whole request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from kledger.contract.errors import BadJson, InvalidPayload, LedgerError, PayloadTooLarge

if TYPE_CHECKING:  # httpx, which the client brings, takes a good part of the time of `kledger --help`
    from kledger import LedgerClient
    from kledger.answers.knowledge import SavedMany

    Outcome = tuple["Chunk", SavedMany | LedgerError]

ITEMS_A_CHUNK = 200
BYTES_A_CHUNK = 2_000_000  # whichever comes first: an item may be up to 1 MiB

# A whole batch is refused when one payload in it cannot even be read: its halves are tried.
_OF_ONE_PAYLOAD = (BadJson, InvalidPayload, PayloadTooLarge)


@dataclass
class Chunk:
    """Payloads that travel in one request, with the number (a line, say) that each goes by.

    `end` is how far its source was read with the last of them.
    """

    payloads: list[Mapping[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    size: int = 0
    end: int = 0

    def add(self, number: int, payload: Mapping[str, Any], size: int) -> None:
        """Take one more, of `size` bytes."""
        self.payloads.append(payload)
        self.lines.append(number)
        self.size += size

    @property
    def full(self) -> bool:
        """Whether it is to be sent before more is added."""
        return len(self.payloads) == ITEMS_A_CHUNK or self.size >= BYTES_A_CHUNK

    def halves(self) -> tuple[Chunk, Chunk]:
        """The two halves of it."""
        middle = len(self.payloads) // 2
        first = Chunk(self.payloads[:middle], self.lines[:middle], end=self.end)
        return first, Chunk(self.payloads[middle:], self.lines[middle:], end=self.end)


def chunks_of(payloads: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Chunk]:
    """Numbered payloads in chunks."""
    chunk = Chunk()
    for number, payload in payloads:
        chunk.add(number, payload, len(orjson.dumps(payload)))
        if chunk.full:
            yield chunk
            chunk = Chunk()
    if chunk.payloads:
        yield chunk


def send(ledger: LedgerClient, chunk: Chunk) -> list[Outcome]:
    """Send one chunk, in halves when one payload in it spoils the whole request."""
    try:
        return [(chunk, ledger.save_many(chunk.payloads))]
    except _OF_ONE_PAYLOAD as error:
        if len(chunk.payloads) == 1:
            return [(chunk, error)]
        return [outcome for half in chunk.halves() for outcome in send(ledger, half)]

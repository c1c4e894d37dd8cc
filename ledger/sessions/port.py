"""Port of the stream of words: records by subject, of which each holds one; stored in atomic batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

MOST_READ = 32 * 1024 * 1024
"""Bytes of one reading, unless it asks for fewer."""


class Record(NamedTuple):
    """The record of a subject, and its position in the stream."""

    position: int
    subject: str
    body: bytes


class NewRecord(NamedTuple):
    """A record to store. With `expects` the subject's record has to be at that position; 0: it has none."""

    subject: str
    body: bytes
    expects: int | None = None


class SessionStream(Protocol):
    """A stream with one record a subject: a later one replaces it. A filter is a subject, with `*` in place
    of tokens, or ends in `.>`."""

    async def last(self, subject: str) -> Record | None:
        """The record of a subject, as the stream's leader knows it. Raises BrokerUnavailable."""
        ...

    async def put(self, records: Sequence[NewRecord]) -> int | None:
        """Store up to 1,000 records, all or none; the position of the last. None: one has another position by now.

        Raises PayloadTooLarge, BrokerUnavailable (it may be stored).
        """
        ...

    async def after(self, subjects: str, position: int, limit: int, most: int = MOST_READ) -> list[Record]:
        """Up to `limit` records of these subjects after a position, in order; fewer where they have about `most` bytes.

        At least one, where there is any. Raises BrokerUnavailable.
        """
        ...

    async def before(self, subjects: str, position: int, limit: int) -> list[Record]:
        """The last `limit` records of these subjects at or before a position, in order; fewer where they have more than
        about MOST_READ bytes, at least one where there is any. Raises BrokerUnavailable.
        """
        ...

    async def purge(self, subjects: str) -> int:
        """Remove the records of these subjects; returns how many there were. Raises BrokerUnavailable."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...

"""Stream of words in memory: for tests and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.sessions.port import MOST_READ, NewRecord, Record


class MemorySessionStream:
    """See `port.SessionStream`."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._position = 0

    async def last(self, subject: str) -> Record | None:
        """See SessionStream.last."""
        return self._records.get(subject)

    async def put(self, records: Sequence[NewRecord]) -> int | None:
        """See SessionStream.put."""
        for record in records:
            before = self._records.get(record.subject)
            if record.expects is not None and record.expects != (before.position if before else 0):
                return None
        for record in records:
            self._position += 1
            self._records.pop(record.subject, None)
            self._records[record.subject] = Record(self._position, record.subject, record.body)
        return self._position

    async def after(self, subjects: str, position: int, limit: int, most: int = MOST_READ) -> list[Record]:
        """See SessionStream.after."""
        found: list[Record] = []
        for record in self._of(subjects):
            if record.position > position and len(found) < limit and sum(len(each.body) for each in found) < most:
                found.append(record)
        return found

    async def before(self, subjects: str, position: int, limit: int) -> list[Record]:
        """See SessionStream.before."""
        found: list[Record] = []
        for record in reversed([each for each in self._of(subjects) if each.position <= position]):
            if len(found) < limit and sum(len(each.body) for each in found) < MOST_READ:
                found.insert(0, record)
        return found

    async def purge(self, subjects: str) -> int:
        """See SessionStream.purge."""
        gone = list(self._of(subjects))
        for record in gone:
            del self._records[record.subject]
        return len(gone)

    async def close(self) -> None:
        """Nothing to close."""

    def _of(self, subjects: str) -> Iterator[Record]:
        if "*" in subjects:
            wanted = subjects.split(".")
            return (record for subject, record in self._records.items() if _fits(subject.split("."), wanted))
        if not subjects.endswith(">"):
            return (record for subject, record in self._records.items() if subject == subjects)
        prefix = subjects.removesuffix(">")
        return (record for subject, record in self._records.items() if subject.startswith(prefix))


def _fits(tokens: list[str], wanted: list[str]) -> bool:
    return len(tokens) == len(wanted) and all(one in ("*", token) for token, one in zip(tokens, wanted, strict=True))

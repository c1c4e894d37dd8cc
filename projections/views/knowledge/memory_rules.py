"""Rules of short memories: when one is over, which recalls count for it, and whether it may be promoted.

The recalls of before a batch are looked up when its first event needs a life. Every time is one that the log kept, so
that a replay decides the same whatever its clock says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import duckdb

from kledger.contract.errors import IllegalState
from kledger.contract.memory import PROMOTING_RECALLS
from kledger.contract.scopes import PERSONAL, PUBLIC, type_of
from projections.fold_kit.decisions import Candidate, Ruling
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, Value, among

Key = tuple[str, str]
_SECOND = 1_000_000
_RECALLS = """
SELECT org, item_id, max(epoch_us(time)), list(DISTINCT counted_as) FROM memory_recalls
WHERE item_id IN ({ids}) GROUP BY org, item_id
"""


@dataclass(slots=True)
class Life:
    """The life of one short memory; times are microseconds since 1970 UTC."""

    lifetime: int
    changed: int
    recalled: int = 0
    recalled_as: set[str] = field(default_factory=set)

    @property
    def ends(self) -> int:
        """When it is over, unless it is recalled or changed before."""
        return max(self.changed, self.recalled) + self.lifetime * _SECOND


class Lives:
    """The short memories of a batch; `before` are those that it found, without the recalls that count for them."""

    def __init__(self, con: duckdb.DuckDBPyConnection, before: Mapping[Key, Life]) -> None:
        self._con = con
        self._lives: dict[Key, Life | None] = {**before}
        self._before = {item_id for _, item_id in before}
        self._rows: list[tuple[Value, ...]] = []

    def begins(self, key: Key, event: Candidate) -> None:
        """A short memory is saved."""
        assert event.lifetime is not None
        self._lives[key] = Life(event.lifetime, event.stored_us)

    def changed(self, key: Key, event: Candidate) -> None:
        """An event makes a version of an item: a memory begins anew to live, or was promoted."""
        if event.type == "knowledge.promoted":
            self._lives[key] = None
        elif (life := self._lives.get(key)) is not None:
            life.changed = event.stored_us

    def of(self, key: Key) -> Life | None:
        """The life of an item; None where it is no short memory."""
        if self._before:
            self._load()
        return self._lives.get(key)

    def recalled(self, key: Key, event: Candidate) -> None:
        """A recall served the memory to a reader: it counts, unless the memory was over by then."""
        life = self.of(key)
        if life is None or event.stored_us >= life.ends:
            return
        counted_as = _counted_as(event)
        life.recalled = max(life.recalled, event.stored_us)
        life.recalled_as.add(counted_as)
        self._rows.append((event.position, *key, Moment(event.stored_us), counted_as))

    def refusal(self, key: Key, event: Candidate) -> Ruling | None:
        """The refusal of a promotion or of an expiry that comes too early or twice, or None."""
        life, item_id = self.of(key), key[1]
        if life is None:
            return Ruling(IllegalState.code, f"{item_id} is no short memory, or is none any more")
        if event.type == "knowledge.expired":
            if event.stored_us < life.ends:
                left = (life.ends - event.stored_us) // _SECOND
                return Ruling(IllegalState.code, f"{item_id} is not over yet: it lives for {left} s more")
            if event.lifetime != life.lifetime:
                return Ruling(IllegalState.code, f"{item_id} lives {life.lifetime} s, not {event.lifetime}")
        elif event.cause == "recalled" and (count := len(life.recalled_as)) < PROMOTING_RECALLS:
            return Ruling(
                IllegalState.code, f"{item_id} has {count} recalls that count, {PROMOTING_RECALLS} promote it"
            )
        return None

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Append the recalls that count."""
        insert(con, "memory_recalls", self._rows)

    def _load(self) -> None:
        """Look up the recalls that count for the memories of before the batch."""
        query = _RECALLS.format(ids=among(self._before))
        self._before.clear()
        for org, item_id, recalled, recalled_as in self._con.execute(query).fetchall():
            if (life := self._lives.get((org, item_id))) is not None:
                life.recalled, life.recalled_as = recalled, set(recalled_as)


def may_recall(event: Candidate, readers: Collection[str]) -> bool:
    """Whether who recalled an item reads it: as its reader, or through a group among the scopes that they see."""
    if event.actor in readers or PUBLIC in readers:
        return True
    shared = {reader for reader in readers if type_of(reader) not in PERSONAL}
    return not shared.isdisjoint(event.visible or ())


def short_memories_among(con: duckdb.DuckDBPyConnection, ids: str) -> list[str]:
    """Those of these ids (SQL inside IN (…)) that are short memories."""
    query = f"SELECT DISTINCT id FROM knowledge_state WHERE lifetime IS NOT NULL AND id IN ({ids})"
    return [item_id for (item_id,) in con.execute(query).fetchall()]


def _counted_as(event: Candidate) -> str:
    if event.trace_id:
        return f"trace:{event.trace_id}"
    return f"session:{event.correlation_id}" if event.correlation_id else f"recall:{event.entity_id}"

"""Canary: compares a few vectors with the view every few seconds, and reports damage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import duckdb
import structlog

from kledger.contract.errors import LedgerError
from projections.engine.view import View
from projections.fold_kit.sql_text import among
from projections.fold_kit.visibility import readers
from projections.vectors.client import VectorClient
from projections.vectors.errors import VectorsDamaged
from projections.vectors.wire import Store

log = structlog.get_logger(__name__)

CANARIES = 4
EVERY_SECONDS = 5.0
SHOWN = 5
"""Differences that a finding names."""


class Examinable(Protocol):
    """The vectors of a view, as a feed has them. While `turn` is held, nothing is written to them."""

    turn: asyncio.Lock
    applied: int
    org: str

    @property
    def client(self) -> VectorClient: ...


class Canary:
    """Examines a few versions every few seconds; `damage` is the last finding, until the vectors are rebuilt."""

    def __init__(self, feed: Examinable, view: View) -> None:
        self._feed = feed
        self._view = view
        self.damage: VectorsDamaged | None = None

    async def run(self) -> None:
        """Examine until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.look()
            except (LedgerError, RuntimeError, duckdb.Error) as error:
                log.warning("the vectors could not be examined", error=str(error))

    async def look(self) -> None:
        """Examine a random sample of versions. Raises VectorProcessGone."""
        async with self._feed.turn:
            # Together: a process that replaces one which was killed meanwhile has not been fed this far.
            client, applied = self._feed.client, self._feed.applied
            some = await self._view.ask(_some, self._feed.org, applied, CANARIES)
            wrong = await client.examine(some, searched=len(some))
            if wrong:  # while the lock is held, so that a renewal after it clears the finding
                self.report(wrong)

    def report(self, wrong: Sequence[str]) -> None:
        """Record damage."""
        if self.damage is None:
            log.error("the vectors are damaged", found=list(wrong[:SHOWN]))
        self.damage = VectorsDamaged(
            f"{'; '.join(wrong[:SHOWN])}: searches may miss items; make the vectors anew with kledger rebuild"
        )


def _some(cursor: duckdb.DuckDBPyConnection, org: str, applied: int, most: int) -> list[Store]:
    drawn = cursor.execute(
        f"""SELECT valid_from FROM (SELECT valid_from FROM knowledge_versions WHERE org = $1 AND valid_from <= $2)
        USING SAMPLE {int(most)} ROWS""",  # only positions: texts are read of the sample alone
        [org, applied],
    )
    return versions(cursor, org, applied, [row[0] for row in drawn.fetchall()])


def versions(cursor: duckdb.DuckDBPyConnection, org: str, applied: int, positions: Sequence[int]) -> list[Store]:
    """Versions that began at these positions, as they are to be stored once `applied` is reached."""
    rows = cursor.execute(
        f"""SELECT id, version, valid_from, task, content, {readers()}, types, owner, valid_to,
        status <> 'active', visibility FROM knowledge_versions
        WHERE org = $1 AND valid_from IN ({among(positions)}) AND NOT erased""",
        [org],
    ).fetchall()
    return list(_stores(rows, applied))


def _stores(rows: Sequence[Any], applied: int) -> Iterator[Store]:
    for item_id, version, at, task, content, read_by, types, owner, valid_to, retired, label in rows:
        ended = valid_to if valid_to is not None and valid_to <= applied else None
        yield Store(item_id, version, at, task, content, read_by, types, owner, at, ended, retired, label)

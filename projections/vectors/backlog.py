"""Embedding backlog: gives versions that are indexed by keywords only their dense vectors, as the endpoint allows.

Versions are searchable before they are embedded. This loop asks the vector process for those without a vector, reads
their texts from the view, and has them embedded in batches, each distinct text once. After a failure it retries with
one text, after a growing pause or when the endpoint allows it (Retry-After); a text that the endpoint refuses is
skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb
import structlog

from kledger.contract.errors import LedgerError
from projections.engine.view import View
from projections.fold_kit.sql_text import among
from projections.vectors.client import VectorClient
from projections.vectors.errors import EmbeddingFailed

log = structlog.get_logger(__name__)

BATCH = 128
_LOOK_SECONDS = 1.0
_LONGEST_PAUSE = 30.0
_LONGEST_RETRY_AFTER = 300.0

Text = tuple[str, int, str, str]
"""A version that waits: item, version, task, content."""


@dataclass(slots=True)
class Embeddings:
    """State of the embeddings of a node with a model."""

    awaiting: int = 0
    trouble: str | None = None
    calls: int = 0
    missed: int = 0
    refused: int = 0
    """Texts that the endpoint refused; they are found by keywords only."""


class Backlog:
    """Embeds versions without a vector; `state` is its progress. `client` gives none until the process has started."""

    def __init__(
        self, view: View, org: str, client: Callable[[], VectorClient | None], may_write: Callable[[], bool]
    ) -> None:
        self._view = view
        self._org = org
        self._client = client
        self._may_write = may_write
        self._batch = BATCH
        self._pause = 0.0
        self._failed: str | None = None
        self.turn = asyncio.Lock()
        """Held from when texts are read until they are embedded: who erases some waits for those read before."""
        self.more = asyncio.Event()
        """Set when there may be new versions to embed."""
        self.state = Embeddings()
        self.embedded = 0
        """Batches that were embedded."""

    def came(self, versions: int) -> None:
        """So many versions were indexed: they await at once, so that no status says that all is done."""
        self.state.awaiting += versions
        self.more.set()

    async def run(self) -> None:
        """Embed until cancelled."""
        counted = False
        while True:
            self.more.clear()
            try:
                client = self._client()
                if client is not None and not counted:  # what an earlier life left; a call may hang for minutes
                    await self._look()
                    counted = True
                async with self.turn:
                    worked = client is not None and self._may_write() and await self.step(client)
                self._failed, self._pause = None, 0.0
            except (LedgerError, RuntimeError, duckdb.Error) as error:
                worked = False
                self._failed = error.message if isinstance(error, LedgerError) else str(error)
                retry_after = getattr(error, "retry_after", None)
                longest = _LONGEST_RETRY_AFTER if getattr(error, "useless", False) else _LONGEST_PAUSE
                self._pause = min(max(1.0, self._pause * 2), longest)
                self._batch = 1  # a failed call may be billed: retry with one text
                if retry_after is not None:
                    self._pause = min(max(retry_after, self._pause), _LONGEST_RETRY_AFTER)
                log.warning("embedding pauses", error=self._failed, pause=self._pause)
            await self._look()
            if not worked:
                await self._rest()

    async def step(self, client: VectorClient) -> bool:
        """Embed the next batch; whether there was one. Raises EmbeddingFailed and what the process raises."""
        waiting = await client.awaiting(self._batch)
        if not waiting:
            return False
        texts = await self._view.ask(_texts, self._org, [each.valid_from for each in waiting])
        known = {(item_id, version) for item_id, version, _, _ in texts}
        # Versions that the view no longer has are about to be removed: nothing to embed.
        gone = [(each.item_id, each.version, "", "") for each in waiting if (each.item_id, each.version) not in known]
        try:
            await client.embed([*texts, *gone])
        except EmbeddingFailed as error:
            if not error.refused:
                raise
            if len(texts) > 1:
                self._batch = max(1, len(texts) // 2)  # one of the texts is refused: bisect
                return True
            self.state.refused += 1
            log.error("a text is refused by the embedding endpoint: it is found by its words", item=texts[0][0])
            await client.embed([(texts[0][0], texts[0][1], "", "")])
        self._batch = min(BATCH, self._batch * 2)
        self.embedded += 1
        return True

    async def _look(self) -> None:
        client = self._client()
        if client is None:
            return
        with contextlib.suppress(LedgerError, RuntimeError):
            status = await client.embeddings()
            state = self.state
            state.awaiting, state.calls, state.missed = status["awaiting"], status["calls"], status["missed"]
            state.trouble = status["trouble"] or self._failed

    async def _rest(self) -> None:
        """Wait for new versions or the next retry, and refresh the state meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._pause
        while True:
            left = until - loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK_SECONDS, left) if left > 0 else _LOOK_SECONDS):
                    await (asyncio.Event() if left > 0 else self.more).wait()
            if loop.time() >= until:
                return
            await self._look()


def _texts(cursor: duckdb.DuckDBPyConnection, org: str, positions: Sequence[int]) -> list[Text]:
    rows = cursor.execute(
        f"""SELECT id, version, task, content FROM knowledge_versions
        WHERE org = $1 AND valid_from IN ({among(positions)})""",
        [org],
    )
    return rows.fetchall()

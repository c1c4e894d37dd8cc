"""A desk over a memory ledger and the real folds, for tests of what the doors bind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb

from kledger.contract.errors import IllegalQuery, UnknownKnowledge, UnknownReference
from kledger.contract.scopes import Caller
from kledger.contract.words import JobKind
from ledger.degraded import Degraded
from ledger.event import JsonObject
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import MemoryVault
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.store import SessionStore
from ledger.store.in_memory import MemoryLedger
from producers.operations.desk import Desk
from producers.operations.ports import Health, Job
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.live.projector import Projector
from projections.search.ask import Readable
from projections.views.knowledge import listing


class ContainingSearcher:
    """Finds items that contain the query, through the scopes of the caller, newest first."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.behind = 0
        """So many positions behind the view it says that it is."""

    @property
    def position(self) -> int:
        return self.view.position - self.behind

    async def wait_for(self, position: int, timeout: float) -> None:
        await self.view.wait_for(position, timeout)

    async def search(
        self,
        *,
        org: str,
        query: str,
        visible: Sequence[str],
        top_k: int = 5,
        min_score: int = 3,
        types: Sequence[str] | None = None,
        as_of: int | datetime | None = None,
        paths: str = "fused",  # noqa: ARG002  # one path is all it has
        readable: Readable | None = None,  # noqa: ARG002  # what was closed since is not its part
        lacking: Callable[[Degraded], None] | None = None,  # noqa: ARG002  # it lacks nothing
        only: Mapping[str, Sequence[str]] | None = None,
    ) -> list[JsonObject]:
        assert not isinstance(as_of, datetime)
        named = only or {}
        narrowed: dict[str, Any] = {
            "owner": next(iter(named.get("owner", ())), None),
            "visibility": named.get("visibility", ()),
        }

        def question(cursor: duckdb.DuckDBPyConnection) -> list[JsonObject]:
            found = listing.items(
                cursor, org, Caller.seeing(visible), limit=1000, types=types or (), as_of=as_of, **narrowed
            ).results
            return [
                {**{name: value for name, value in item.items() if name != "status"}, "relevance": 1.0}
                for item in found
                if query in item["task"] + item["content"] and item["eval"]["score"] >= min_score
            ][:top_k]

        return await self.view.ask(question)


class Operated:
    """What an operator asked a node for."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.reasons: list[str] = []

    def _start(self, kind: JobKind, *asked: Any) -> Job:
        self.asked.append((kind, *asked))
        job = Job(f"{kind}-{len(self.asked)}", kind)
        self.jobs[job.id] = job
        return job

    async def status(self) -> JsonObject:
        return {"head": 0}

    async def start_rebuild(self) -> Job:
        return self._start("rebuild")

    async def start_verify(self) -> Job:
        return self._start("verify")

    async def start_replay(self, to: int | datetime | None, into: str) -> Job:
        return self._start("replay", to, into)

    async def start_snapshot(self) -> Job:
        return self._start("snapshot")

    async def start_backup(self, into: str) -> Job:
        return self._start("backup", into)

    async def start_audit(self) -> Job:
        return self._start("audit")

    async def start_forget(self, subject: str, by: str) -> Job:
        return self._start("forget", subject, by)

    async def prove(self, item_id: str) -> JsonObject:
        raise UnknownKnowledge(f"there is no item {item_id} here to prove")

    async def job(self, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise UnknownReference(f"there is no job {job_id}: a start answers with its id")
        return self.jobs[job_id]

    async def sql(self, query: str) -> JsonObject:
        if not query.lower().startswith("select"):
            raise IllegalQuery(f"{query} is not one SELECT")
        return {"columns": ["n"], "types": ["INTEGER"], "rows": [[1]], "truncated": False}

    async def attach(self) -> JsonObject:
        return {"statement": "ATTACH …"}

    async def health(self) -> Health:
        return Health(not self.reasons, self.reasons)


@dataclass
class LiveDesk(Desk):
    """A desk whose parts the tests may reach into."""

    ledger: MemoryLedger
    view: View
    searcher: ContainingSearcher
    admin: Operated
    projector: Projector = field(kw_only=True)


@asynccontextmanager
async def live_desk() -> AsyncIterator[LiveDesk]:
    """A desk that folds what is appended until the block ends."""
    ledger = MemoryLedger()
    vault = MemoryVault()
    view = View(Instance(open_view(None), keyring=Keyring(vault.held)))
    projector = Projector(ledger, view)
    folding = asyncio.create_task(projector.run())
    try:
        sessions = SessionStore(MemorySessionStream(), vault)
        yield LiveDesk(
            ledger, view, ContainingSearcher(view), Operated(), vault=vault, sessions=sessions, projector=projector
        )
    finally:
        folding.cancel()
        await asyncio.gather(folding, return_exceptions=True)
        projector.close()
        await ledger.close()
        view.close()

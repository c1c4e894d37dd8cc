"""A desk over a memory ledger and the real folds, for tests of what the doors bind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb

from kledger.contract.errors import IllegalQuery, UnknownKnowledge, UnknownReference
from kledger.contract.scopes import Caller
from kledger.contract.words import StartableJob
from ledger.event import JsonObject
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import MemoryVault
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.store import SessionStore
from ledger.store.in_memory import MemoryLedger
from producers.operations.desk import Desk
from producers.operations.ports import Health, Job
from projections.engine.view import Instance, View
from projections.fold_kit.page import Window
from projections.live.projector import Projector
from projections.search.asked import Asked
from projections.search.explained import explained
from projections.search.lately import Lately
from projections.views.knowledge import listing
from tests.projections.empty_views import empty_view

NOTHING = explained(
    [],
    [],
    why_not=lambda _: None,
    match_of=lambda _: 0.0,
    shown=lambda _: {},
    priority={},
    vector_weight=0.0,
    policy="",
)


class ContainingSearcher:
    """Finds items that contain the query, through the scopes of the caller, newest first."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lately = Lately(view)
        self.behind = 0
        """So many positions behind the view it says that it is."""

    @property
    def position(self) -> int:
        return self.view.position - self.behind

    @property
    def policy(self) -> str:
        return "containing"

    async def wait_for(self, position: int, timeout: float) -> None:
        await self.view.wait_for(position, timeout)

    def state(self) -> None:
        return None

    async def floor(self, _org: str, _visible: Sequence[str]) -> float:
        return 0.0

    async def search(self, asked: Asked) -> list[JsonObject]:
        named = asked.only or {}
        owner = next(iter(named.get("owner", ())), None)
        wanted = listing.Wanted(asked.types or (), owner=owner, visibility=named.get("visibility", ()))

        def question(cursor: duckdb.DuckDBPyConnection) -> list[JsonObject]:
            found, before = list[JsonObject](), None
            while True:
                window = Window(1000, before=before)
                page = listing.items(cursor, asked.org, Caller.seeing(asked.visible), wanted, window, asked.as_of)
                found += page.results
                if (before := page.next) is None:
                    break
            return [
                {**{name: value for name, value in item.items() if name != "status"}, "relevance": 1.0, "match": 1.0}
                for item in found
                if asked.query in item["task"] + item["content"] and item["eval"]["score"] >= asked.min_score
            ][: asked.top_k]

        if asked.explain is not None:  # it ranks nothing
            asked.explain({**NOTHING, "policy": self.policy})
        return await self.view.ask(question)


class Operated:
    """What an operator asked a node for."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.reasons: list[str] = []

    async def status(self) -> JsonObject:
        return {"head": 0}

    async def start(
        self,
        kind: StartableJob,
        *,
        to: int | datetime | None = None,
        into: str = "",
        subject: str = "",
        by: str = "",
        from_log: bool = False,
        columns: bool | None = None,
    ) -> Job:
        of_backup = {True: "with columns", False: "without columns", None: ""}[columns]
        stated = (to, into, subject, by if subject else "", "from the log" if from_log else "", of_backup)
        self.asked.append((kind, *filter(None, stated)))
        job = Job(f"{kind}-{len(self.asked)}", kind)
        self.jobs[job.id] = job
        return job

    async def prove(self, item_id: str) -> JsonObject:
        raise UnknownKnowledge(f"there is no item {item_id} here to prove")

    async def job(self, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise UnknownReference(f"there is no job {job_id}: a start answers with its id")
        return self.jobs[job_id]

    async def all_jobs(self) -> list[Job]:
        return list(reversed(self.jobs.values()))

    async def certificates(self, most: int) -> JsonObject:
        self.asked.append(("certificates", most))
        return {"checkpoints": [], "certificates": []}

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
    keys: MemoryVault = field(kw_only=True)
    projector: Projector = field(kw_only=True)

    def past(self) -> Past:
        """The log and the keys as they are, of which other desks may begin."""
        return Past(*_copies(self.ledger, self.keys))


@dataclass(frozen=True)
class Past:
    """What a desk has of a life before."""

    ledger: MemoryLedger
    keys: MemoryVault


def _copies(ledger: MemoryLedger, keys: MemoryVault) -> tuple[MemoryLedger, MemoryVault]:
    another, others = MemoryLedger(), MemoryVault()
    another._events, another._positions, another._last = [*ledger._events], {**ledger._positions}, {**ledger._last}
    others._held = {**keys._held}
    return another, others


@asynccontextmanager
async def live_desk(past: Past | None = None) -> AsyncIterator[LiveDesk]:
    """A desk that folds what is appended until the block ends."""
    ledger, vault = _copies(past.ledger, past.keys) if past else (MemoryLedger(), MemoryVault())
    with empty_view() as con:
        view = View(Instance(con, keyring=Keyring(vault.held)))
        projector = Projector(ledger, view)
        folding = asyncio.create_task(projector.run())
        try:
            sessions = SessionStore(MemorySessionStream(), vault)
            yield LiveDesk(
                ledger,
                view,
                ContainingSearcher(view),
                Operated(),
                vault=vault,
                sessions=sessions,
                keys=vault,
                projector=projector,
            )
        finally:
            folding.cancel()
            await asyncio.gather(folding, return_exceptions=True)
            projector.close()
            await ledger.close()
            view.close()

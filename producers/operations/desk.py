"""Desk: what every operation works with: the log, the live view, the searcher and the node's own jobs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client.registry import Collector

from kledger.answers.parts import Degraded
from kledger.contract.errors import InvalidPayload, ViewBehind
from kledger.contract.language import ENGLISH, Language
from kledger.contract.memory import LIFETIMES
from kledger.contract.scopes import Caller
from kledger.contract.words import ServingPart
from ledger.event import DEFAULT_ORG, utc_now
from ledger.privacy.vault import Vault
from ledger.sessions.store import SessionStore
from ledger.stream import Ledger
from producers.documents.places import Places
from producers.operations.available_models import (
    Intents,
    Models,
    NoModels,
    NoTiers,
    Reflected,
    Reranker,
    Rewriter,
    Router,
    Tiers,
)
from producers.operations.gathered_recalls import GatheringLedger
from producers.operations.kept_recalls import RecallCache
from producers.operations.own_writes import NOTHING, Written
from producers.operations.ports import LiveView, NodeAdmin, ParkingAdmin, Searcher, Sizes
from producers.operations.publish import Tally
from producers.operations.recording import Recorded
from projections.views.lineage import ask as lineage

DEFAULT_WAIT = 10.0
"""Default number of seconds that a read waits for the view."""
MAX_WAIT = 60.0
_SHOWN_WITHIN_SECONDS = 1.0
RECALLS_WAIT = 1.0
"""Seconds that a read of recalls waits for those served so far, where the broker or the view takes its time."""


@dataclass(slots=True)
class Desk:
    """Everything that an operation may use. `org` is the tenant whose log this node serves."""

    ledger: Ledger
    view: LiveView
    searcher: Searcher
    admin: NodeAdmin
    org: str = DEFAULT_ORG
    tally: Tally = field(default_factory=Tally)
    parking: ParkingAdmin | None = None
    models: Models = field(default_factory=NoModels)
    router: Router | None = None
    routing: bool = False
    """Whether a model routes a search by default."""
    intents: Intents | None = None
    """Tells what a message is after, where a model is set for it; the rules answer where it does not."""
    rewriter: Rewriter | None = None
    """Asks a question differently, where a model is set for it."""
    reranker: Reranker | None = None
    """Scores results against the query, where one is set."""
    recalled: RecallCache = field(default_factory=RecallCache)
    """Results of recalls that may be given again."""
    tiers: Tiers = field(default_factory=NoTiers)
    collected: Sequence[Collector] = ()
    """Metrics of the node's other parts, exported with those of the HTTP interface."""
    recorded: Recorded = "all"
    """The callers whose searches and startups are recorded as served recalls."""
    recalls: GatheringLedger | None = None
    """Appends recalls after their answers; without one, an answer waits for its own."""
    sizes: Sizes | None = None
    vault: Vault | None = None
    """Holds the keys of secrets; without one, no secret can be stored or read."""
    held_at_start: Written = NOTHING
    """Head of the log when the node started: a read reflects it, or reports in `degraded` that it does not."""
    lifetimes: Mapping[str, int] = field(default_factory=lambda: LIFETIMES)
    """Seconds that short memories live, by kind."""
    reflected: frozenset[Reflected] = frozenset()
    """After what extraction is asked by itself."""
    sessions: SessionStore | None = None
    """Holds the words of sessions; without one, there are no sessions."""
    places: Places = field(default_factory=Places)
    """Where files are read."""
    language: Language = ENGLISH
    """Default language of texts, for callers that name none."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """Consistency that a read requires, and what its answer lacks.

    Every part that answers must reach `min_position` within `wait` seconds, or the read fails with ViewBehind.
    The caller's own writes (`own`) are waited for as long; after that the read answers with what the part has, and
    notes this in `degraded`, which is None where nobody collects it.
    """

    min_position: int = 0
    wait: float = DEFAULT_WAIT
    own: Written = NOTHING
    degraded: list[Degraded] | None = None
    _began: float = field(default_factory=time.monotonic)

    async def reach(self, view: LiveView) -> None:
        """Wait until the view has what is asked for, and what anybody was shown before its fold. Raises ViewBehind."""
        if view.position < self.position:
            await self._reach("view", view.wait_for, self.own.view)
        if view.position < (shown := view.shown):
            try:
                await view.wait_for(shown, min(_SHOWN_WITHIN_SECONDS, self.wait))
            except ViewBehind:
                if self.wait >= _SHOWN_WITHIN_SECONDS and view.shown == shown:
                    view.shown = 0  # the fold is held up: nobody else waits for it

    async def reach_vectors(self, searcher: Searcher) -> None:
        """Wait until searches are new enough. Raises ViewBehind."""
        if self.min_position or self.own.vectors:
            await self._reach("vectors", searcher.wait_for, self.own.vectors)

    async def _reach(self, part: ServingPart, wait_for: Callable[[int, float], Awaitable[None]], own: int) -> None:
        if self.min_position:
            await wait_for(self.min_position, self.wait)
        if own > self.min_position:
            try:
                await wait_for(own, max(0.0, self.wait - (time.monotonic() - self._began)))
            except ViewBehind as behind:
                known = behind.details.get("position")
                reason = (
                    f"what the log holds up to position {own} (written by you, or there before the node started) "
                    "is not in this answer yet: ask again, or wait longer (kledger status tells the lag)"
                )
                self.note(Degraded(part=part, reason=reason, position=known if isinstance(known, int) else None))

    @property
    def position(self) -> int:
        """The position that the answer has to reflect, as far as the view is concerned."""
        return max(self.min_position, self.own.view)

    def note(self, lack: Degraded) -> None:
        """Add to `degraded` what the answer lacks; each part is noted once."""
        if self.degraded is not None and all(each["part"] != lack["part"] for each in self.degraded):
            self.degraded.append(lack)


ANY = Freshness()


async def reach(desk: Desk, freshness: Freshness) -> None:
    """Wait until the view has reached the requested position. Raises ViewBehind."""
    await freshness.reach(desk.view)


async def reach_recalls(desk: Desk, freshness: Freshness) -> None:
    """Wait as `reach` does, and for the recalls that this node has served, for as long as gathering delays them.

    Raises ViewBehind.
    """
    await reach(desk, freshness)
    if desk.recalls is not None:
        most = min(RECALLS_WAIT, freshness.wait)
        with contextlib.suppress(TimeoutError, ViewBehind):
            async with asyncio.timeout(most):
                await desk.recalls.flushed()
            await desk.view.wait_for(desk.recalls.position, most)


async def reach_head(desk: Desk) -> int:
    """Wait until the view has reached the current head of the log; returns that position. Raises ViewBehind."""
    head = await desk.ledger.head()
    if desk.view.position < head.position:
        await desk.view.wait_for(head.position)
    return head.position


async def folded(desk: Desk, entity: str, entity_id: str) -> int:
    """The last position of an entity's history, once the view has all of it; 0 without any. Raises ViewBehind."""
    last = await desk.ledger.last_position_of(desk.org, entity, entity_id)
    if desk.view.position < last:
        await desk.view.wait_for(last)
    return last


async def position_as_of(desk: Desk, as_of: int | datetime | None, freshness: Freshness) -> int | None:
    """The log position of a moment, once the view has reached it; 0 is before the first event, None is now.

    Raises InvalidPayload for a position beyond the head or a time in the future, ViewBehind.
    """
    if isinstance(as_of, datetime):
        return await _position_at(desk, as_of, freshness)
    if as_of is not None and as_of > desk.view.position:
        await require_come(desk, as_of, "as_of")
        await desk.view.wait_for(as_of, freshness.wait)
    return as_of


async def require_come(desk: Desk, then: int | datetime, field: str) -> None:
    """Raise InvalidPayload for a position beyond the head of the log, or a time in the future, of nodes and log."""
    head = await desk.ledger.head()
    if isinstance(then, datetime):
        if then > utc_now() and then.timestamp() * 1e9 > head.stored_ns:  # a clock may have gone backwards
            raise InvalidPayload(
                f"{field} {then.isoformat()} is yet to come; the head of the log is {head.position}: "
                f"leave {field} out to ask for the present",
                errors=[{"field": field, "reason": "is in the future"}],
            )
    elif then > head.position:
        raise InvalidPayload(
            f"{field} {then} is beyond the head of the log, which is {head.position}: ask for an earlier one",
            errors=[{"field": field, "reason": f"the head is {head.position}"}],
        )


async def _position_at(desk: Desk, moment: datetime, freshness: Freshness) -> int:
    if moment > utc_now():
        await require_come(desk, moment, "as_of")
    position, behind = await desk.view.ask(lineage.position_at, moment)
    if behind:  # no folded event is later than the moment: events before it may not be folded yet
        head = await desk.ledger.head()
        if desk.view.position < head.position:
            await desk.view.wait_for(head.position, freshness.wait)
            position, _ = await desk.view.ask(lineage.position_at, moment)
    return position


async def moment_of(desk: Desk, as_of: int | datetime | None, then: int | None) -> datetime:
    """The moment that a read is of: now, the moment that was asked for, or the time of the position `then`."""
    if isinstance(as_of, datetime):
        return as_of
    found = None if then is None else await desk.view.ask(lineage.time_of, then)
    return utc_now() if found is None else found


def first_entity(caller: Caller) -> str:
    """The acting entity where any may act: the caller's most specific identity; `user:local` for the operator."""
    return caller.reading_as()[0]

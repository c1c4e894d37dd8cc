"""What does an operation work with? The desk: the log, the live view, the searcher, the node's own jobs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from prometheus_client.registry import Collector

from kledger.contract.errors import InvalidPayload, ViewBehind
from kledger.contract.language import ENGLISH, Language
from kledger.contract.scopes import Caller
from ledger.degraded import Degraded, Part
from ledger.event import DEFAULT_ORG, JsonObject
from ledger.privacy.vault import Vault
from ledger.stream import Ledger
from producers.operations.admin.jobs import NodeAdmin
from producers.operations.models.available import Models, NoModels, Router
from producers.operations.own_writes import NOTHING, Written
from producers.operations.publish import Tally
from producers.operations.recall.recording import Recorded
from projections.views.lineage import ask as lineage

if TYPE_CHECKING:
    from producers.operations.admin.refused import ParkingAdmin

T = TypeVar("T")

DEFAULT_WAIT = 10.0
"""Seconds that a read waits for the view unless told otherwise."""
MAX_WAIT = 60.0


class LiveView(Protocol):
    """What the operations need of projections/live/view.py: how far it is, and a question asked of it."""

    @property
    def position(self) -> int: ...

    async def wait_for(self, position: int, timeout: float = ...) -> None: ...

    async def ask(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T: ...


class Searcher(Protocol):
    """What the operations need of projections/search: ranked items that the caller may see."""

    @property
    def position(self) -> int: ...

    async def wait_for(self, position: int, timeout: float) -> None: ...

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
        paths: str = "fused",
        readable: Callable[[list[str]], Awaitable[set[str]]] | None = None,
        lacking: Callable[[Degraded], None] | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
    ) -> list[JsonObject]: ...


class Sizes(Protocol):
    """How many bytes there are of what."""

    async def now(self) -> JsonObject: ...


@dataclass(slots=True)
class Desk:
    """Everything an operation may use. `org` is the tenant whose log this node serves."""

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
    """Whether a search is routed by a model unless it says otherwise."""
    collected: Sequence[Collector] = ()
    """Metrics of the node's other parts, told with the door's own."""
    recorded: Recorded = "all"
    """Whose searches and starts are recorded as served."""
    sizes: Sizes | None = None
    vault: Vault | None = None
    """Where the keys of secrets are; without one, no secret is kept or read."""
    held_at_start: Written = NOTHING
    """What the log held when the node started: a read shows it, or says in `degraded` that it does not."""
    language: Language = ENGLISH
    """Of texts for whoever does not say in which language they want them."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """How new a read has to be, and what it lacks in the end.

    Every part that answers has `min_position`, waited for at most `wait` seconds, or the read fails with ViewBehind.
    What the caller itself wrote (`own`) is waited for as long; then the read answers with what there is, and says so
    in `degraded`, which is None where nobody asks.
    """

    min_position: int = 0
    wait: float = DEFAULT_WAIT
    own: Written = NOTHING
    degraded: list[Degraded] | None = None
    _began: float = field(default_factory=time.monotonic)

    async def reach(self, view: LiveView) -> None:
        """Wait until the view is new enough. Raises ViewBehind."""
        if view.position < max(self.min_position, self.own.view):
            await self._reach("view", view.wait_for, self.own.view)

    async def reach_vectors(self, searcher: Searcher) -> None:
        """Wait until searches are new enough. Raises ViewBehind."""
        if self.min_position or self.own.vectors:
            await self._reach("vectors", searcher.wait_for, self.own.vectors)

    async def _reach(self, part: Part, wait_for: Callable[[int, float], Awaitable[None]], own: int) -> None:
        if self.min_position:
            await wait_for(self.min_position, self.wait)
        if own > self.min_position:
            try:
                await wait_for(own, max(0.0, self.wait - (time.monotonic() - self._began)))
            except ViewBehind as behind:
                known = behind.details.get("position")
                self.note(
                    Degraded(
                        part,
                        f"what the log holds up to position {own} (written by you, or there before the node started) "
                        "is not in this answer yet: ask again, or wait longer (kledger status tells the lag)",
                        known if isinstance(known, int) else None,
                    )
                )

    def note(self, lack: Degraded) -> None:
        """Have the answer state that it lacks something; each part is stated once."""
        if self.degraded is not None and all(each.part != lack.part for each in self.degraded):
            self.degraded.append(lack)


ANY = Freshness()


async def reach(desk: Desk, freshness: Freshness) -> None:
    """Wait until the view has the position asked for. Raises ViewBehind."""
    await freshness.reach(desk.view)


async def reach_head(desk: Desk) -> int:
    """Wait until the view has all that the log holds now; its position. Raises ViewBehind."""
    head = await desk.ledger.head()
    if desk.view.position < head.position:
        await desk.view.wait_for(head.position)
    return head.position


async def position_as_of(desk: Desk, as_of: int | datetime, freshness: Freshness) -> int:
    """The log position that a moment means, once the view has it: 0 is before the first event.

    Raises InvalidPayload for a position beyond the head or a time to come, ViewBehind.
    """
    if isinstance(as_of, datetime):
        return await _position_at(desk, as_of, freshness)
    if as_of > desk.view.position:
        head = await desk.ledger.head()
        if as_of > head.position:
            raise InvalidPayload(
                f"as_of {as_of} is beyond the head of the log, which is {head.position}: ask for an earlier one",
                errors=[{"field": "as_of", "reason": f"the head is {head.position}"}],
            )
        await desk.view.wait_for(as_of, freshness.wait)
    return as_of


async def _position_at(desk: Desk, moment: datetime, freshness: Freshness) -> int:
    if moment > datetime.now(UTC):
        head = await desk.ledger.head()
        raise InvalidPayload(
            f"as_of {moment.isoformat()} is yet to come; the head of the log is {head.position}: "
            "leave as_of out to ask for the present",
            errors=[{"field": "as_of", "reason": "is in the future"}],
        )
    position, behind = await desk.view.ask(lineage.position_at, moment)
    if behind:  # nothing folded yet is later than the moment: events before it may still be on their way
        head = await desk.ledger.head()
        if desk.view.position < head.position:
            await desk.view.wait_for(head.position, freshness.wait)
            position, _ = await desk.view.ask(lineage.position_at, moment)
    return position


def first_entity(caller: Caller) -> str:
    """Who acts when anybody may: the caller's most specific identity; the operator is `user:local`."""
    return caller.reading_as()[0]

"""Ports: protocols of what the operations need of a node; the composition root passes the implementations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from kledger.contract.words import JobKind, StartableJob
from ledger.event import JsonObject
from projections.engine.ahead.between import Untouched
from projections.engine.ahead.new_in_list import NewItems
from projections.search.asked import Asked
from projections.search.lately import Lately

T = TypeVar("T")


@dataclass(slots=True)
class Job:
    """Work that runs beside the live view. `done` and `total` are log positions, `rate` is in events per second."""

    id: str
    kind: JobKind
    state: Literal["running", "done", "failed"] = "running"
    done: int = 0
    total: int = 0
    rate: float = 0.0
    result: JsonObject | None = None
    error: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the node is healthy, and each reason when it is not.

    `waits_for` is why the node is not ready yet; `lag_seconds` is by view.
    """

    healthy: bool
    reasons: list[str]
    waits_for: list[str] = field(default_factory=list)
    lag_seconds: dict[str, float] = field(default_factory=dict)


class NodeAdmin(Protocol):
    """Functions of a node for its operator; the composition root implements them."""

    async def status(self) -> JsonObject:
        """Stream head, positions of the views, lag in events and seconds, refused events, versions."""

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
        """Start a job beside the live view. Raises InvalidPayload where `into` cannot be made.

        `to` and `into` (a new file) are a replay's, `into` (a directory) a backup's, `subject` and `by` a forgetting's.
        `from_log` is a verification's: it reads nothing of the archive. `columns` is a backup's: whether it keeps the
        decoded columns of the archive as well, or does as before.
        """

    async def prove(self, item_id: str) -> JsonObject:
        """A proof for every event behind an item. Raises UnknownKnowledge, NotCertified, ChainContradicted."""

    async def job(self, job_id: str) -> Job:
        """The progress of a job. Raises UnknownReference."""

    async def all_jobs(self) -> list[Job]:
        """The jobs since the node started, newest first."""

    async def certificates(self, most: int) -> JsonObject:
        """`checkpoints` and `certificates`: the last of each that the node keeps, newest first."""

    async def sql(self, query: str) -> JsonObject:
        """`columns`, `types`, `rows`, `truncated` of one SELECT. Raises IllegalQuery."""

    async def attach(self) -> JsonObject:
        """The `statement` that attaches the live view from any DuckDB, with what it needs."""

    async def health(self) -> Health:
        """Whether the node is healthy and ready."""


class ParkingAdmin(Protocol):
    """Decisions of a node about parked events; the composition root implements it."""

    async def states(self) -> dict[int, JsonObject]:
        """`state`, `tries` and `time` of the last decision about each event, by position."""

    async def dismiss(self, position: int) -> JsonObject:
        """Dismiss a parked event permanently. Raises UnknownReference, IllegalState."""

    async def start_retry(self, position: int) -> Job:
        """Rebuild the view with this event included, and swap. Raises UnknownReference."""


class LiveView(Protocol):
    """The part of projections/engine/view.py that operations use: its position, and queries against it."""

    @property
    def position(self) -> int: ...

    @property
    def items_position(self) -> int: ...

    shown: int

    async def wait_for(self, position: int, timeout: float = ...) -> None: ...

    async def item_ahead(
        self, org: str, item_id: str, position: int, within: float
    ) -> JsonObject | Untouched | None: ...

    async def items_ahead(self, org: str, position: int, within: float) -> NewItems | None: ...

    async def ask(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T: ...


class Searcher(Protocol):
    """The part of projections/search that operations use: ranked items visible to the caller."""

    @property
    def position(self) -> int: ...

    @property
    def policy(self) -> str: ...

    @property
    def lately(self) -> Lately: ...

    async def wait_for(self, position: int, timeout: float) -> None: ...

    def state(self) -> Hashable | None: ...

    async def floor(self, org: str, visible: Sequence[str]) -> float: ...

    async def search(self, asked: Asked) -> list[JsonObject]: ...


class Sizes(Protocol):
    """Sizes in bytes of the node's data, by kind."""

    async def now(self) -> JsonObject: ...

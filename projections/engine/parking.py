"""Parking: a dead letter for an event that no fold can take, so that the events after it are folded.

A fold that fails because of its data is retried on halves of the batch, until one event is left that fails alone each
time. The live projector parks that event (ledger/store/parked.py): from then on it is in `refused_events` with the code
`unfoldable`, on every node and in every rebuild. A rebuild parks nothing: it names the event and stops. An error of the
machine (disk, memory, file, broker) parks nothing either: folding pauses until that is repaired.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import duckdb
import pyarrow as pa
import structlog

from kledger.contract.errors import LedgerError, UnfoldableEvent
from ledger.event import StoredEvent
from ledger.store.parked import NONE_PARKED, Decision, Parked, ParkedEvents, fingerprint_of
from ledger.stream import Ledger, event_at
from projections.engine.batch import Folded, fold_batch
from projections.engine.duckdb import checkpoint_of, transaction
from projections.engine.view import View
from projections.fold_kit.workbench import Workbench

log = structlog.get_logger(__name__)

TRIES = 3
PAUSE_SECONDS = 0.05
# With this many parked events the code is at fault, not a few events; parking more would empty the views.
MOST_WAITING = 100
_LONGEST_REASON = 500
_QUOTED = re.compile(r"'[^']*'?|\"[^\"]*\"?|\d{7,}")

# Errors that the data can cause. All others are caused by the machine or the file.
ABOUT_THE_EVENT: tuple[type[Exception], ...] = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.NotSupportedError,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.BinderException,
    duckdb.InvalidInputException,
    duckdb.InvalidTypeException,
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)

Fold = Callable[[Workbench, list[StoredEvent], Parked], Folded]


def fold_strictly(
    bench: Workbench, events: list[StoredEvent], parked: Parked = NONE_PARKED, *, fold: Fold = fold_batch
) -> Folded:
    """fold_batch with a bisection: an event that cannot be folded is found and named.

    Raises UnfoldableEvent when one event fails alone TRIES times; everything before it is folded then. Raises what
    fold_batch raises about the machine, the file and the log; then the batch under way is not folded.
    """
    try:
        return fold(bench, events, parked)
    except ABOUT_THE_EVENT as error:
        _assert_usable(bench)
        if len(events) == 1:
            return _retry(bench, events[0], parked, fold, error)
    log.warning("a batch cannot be folded as a whole", first=events[0].position, events=len(events))
    half = len(events) // 2
    first = fold_strictly(bench, events[:half], parked, fold=fold)
    second = fold_strictly(bench, events[half:], parked, fold=fold)
    return Folded(second.position, first.accepted + second.accepted, first.refused + second.refused)


def _retry(bench: Workbench, event: StoredEvent, parked: Parked, fold: Fold, error: Exception) -> Folded:
    for _ in range(TRIES - 1):
        time.sleep(PAUSE_SECONDS)
        try:
            return fold(bench, [event], parked)
        except ABOUT_THE_EVENT as again:
            error = again
    reason = _reason(error)
    raise UnfoldableEvent(
        f"the event at position {event.position} ({event.subject}) cannot be folded, tried {TRIES} times: {reason}",
        position=event.position,
        fingerprint=fingerprint_of(event),
        reason=reason,
        tries=TRIES,
    ) from error


def _reason(error: Exception) -> str:
    """The error's first line without quoted values: the reason is stored for good, the event's data may be erased."""
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {_QUOTED.sub('…', first_line)}"[:_LONGEST_REASON]


def _assert_usable(bench: Workbench) -> None:
    """Raise duckdb.Error when the file takes no transaction any more: then the event is not the cause."""
    with transaction(bench.con):
        bench.con.execute("UPDATE checkpoints SET position = position WHERE name = 'views'")


async def park(parked: ParkedEvents, poison: UnfoldableEvent) -> LedgerError | None:
    """Park the event. Returns None once the decision is stored, else why folding stops. Raises BrokerUnavailable."""
    await parked.refresh()
    if len(parked.waiting) >= MOST_WAITING:
        return UnfoldableEvent(
            f"{len(parked.waiting)} events are parked and wait for an operator, so no more are, and folding stops: "
            f"see kledger refused list. {poison.message}",
            **poison.details,
        )
    position = int(str(poison.details["position"]))
    decision = await parked.decide(
        position,
        "parked",
        fingerprint=str(poison.details["fingerprint"]),
        reason=str(poison.details["reason"]),
        tries=int(str(poison.details["tries"])),
    )
    log.error("an event is parked: it cannot be folded", position=position, reason=decision.reason)
    return None


def held_apart(cursor: duckdb.DuckDBPyConnection) -> tuple[set[int], int]:
    """The positions that a view file has as unfoldable, and its checkpoint."""
    rows = cursor.execute("SELECT position FROM refused_events WHERE code = 'unfoldable'").fetchall()
    folded, _ = checkpoint_of(cursor)
    return {position for (position,) in rows}, folded


async def disagreement(ledger: Ledger, held: set[int], folded: int, parked: Parked) -> list[int]:
    """The positions at which a view (see held_apart) was folded with other parking decisions than `parked`.

    Raises BrokerUnavailable, LogGap.
    """
    missing = [position for position in parked if position <= folded and position not in held]
    return sorted({*(held - parked.keys()), *[at for at in missing if await _is_about(ledger, parked[at])]})


async def _is_about(ledger: Ledger, decision: Decision) -> bool:
    """Whether the decision is about the event that the log has at its position, not about another one."""
    event = await event_at(ledger, decision.position)
    return event is not None and fingerprint_of(event) == decision.fingerprint


async def attention(ledger: Ledger, view: View, parked: ParkedEvents) -> tuple[list[str], list[str]]:
    """Reasons for which the node is unhealthy, and warnings, for an operator. Raises BrokerUnavailable."""
    await parked.refresh()
    differing = await disagreement(ledger, *await view.ask(held_apart), parked.parked)
    waiting = parked.waiting
    return (
        [f"the view was folded before it was decided about the events at {_few(differing)}: kledger rebuild"]
        if differing
        else [],
        [f"{len(waiting)} parked events wait for you (at {_few(waiting)}): kledger refused list"] if waiting else [],
    )


def _few(positions: list[int]) -> str:
    return ", ".join(map(str, positions[:5])) + (", …" if len(positions) > 5 else "")

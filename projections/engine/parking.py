"""What becomes of an event that a fold cannot take? It is found, tried again, parked with its reason; the rest goes on.

A fold that fails for a reason that lies in the data is tried again on halves of its events until one is left that
fails alone, each time. Live, that one is parked (ledger/store/parked.py): from then on it stands in `refused_events`
with the code `unfoldable`, on every node and in every rebuild. A rebuild parks nothing: it names the event and stops.
What lies with the machine (disk, memory, file, broker) parks nothing either: folding waits until it is mended.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable

import duckdb
import pyarrow as pa
import structlog

from kledger.contract.errors import LedgerError, UnfoldableEvent
from ledger.event import StoredEvent
from ledger.store.parked import NONE_PARKED, Decision, Parked, ParkedEvents, fingerprint_of
from ledger.stream import Ledger
from projections.engine.batch import Folded, fold_batch
from projections.fold_kit.workbench import Workbench
from projections.live.duckdb import transaction
from projections.live.view import View

log = structlog.get_logger(__name__)

TRIES = 3
PAUSE_SECONDS = 0.05
# So many events that wait for an operator are no longer a few bad events: the code is at fault, and parking would
# empty the views.
MOST_WAITING = 100
_LONGEST_REASON = 500
_QUOTED = re.compile(r"'[^']*'?|\"[^\"]*\"?|\d{7,}")

# What DuckDB and Python say of values that do not fit. Everything else is about the machine or the file.
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
    """fold_batch, which names the event that it cannot fold.

    Raises UnfoldableEvent when one event fails alone TRIES times; everything before it is folded then. Raises what
    fold_batch raises about the machine, the file and the log; then the batch under way is not folded.
    """
    try:
        return fold(bench, events, parked)
    except ABOUT_THE_EVENT as error:
        _assert_usable(bench)
        if len(events) == 1:
            return _once_more(bench, events[0], parked, fold, error)
    log.warning("a batch cannot be folded as a whole", first=events[0].position, events=len(events))
    half = len(events) // 2
    first = fold_strictly(bench, events[:half], parked, fold=fold)
    second = fold_strictly(bench, events[half:], parked, fold=fold)
    return Folded(second.position, first.accepted + second.accepted, first.refused + second.refused)


def _once_more(bench: Workbench, event: StoredEvent, parked: Parked, fold: Fold, error: Exception) -> Folded:
    for _ in range(TRIES - 1):
        time.sleep(PAUSE_SECONDS)
        try:
            return fold(bench, [event], parked)
        except ABOUT_THE_EVENT as again:
            error = again
    reason = _told(error)
    raise UnfoldableEvent(
        f"the event at position {event.position} ({event.subject}) cannot be folded, tried {TRIES} times: {reason}",
        position=event.position,
        fingerprint=fingerprint_of(event),
        reason=reason,
        tries=TRIES,
    ) from error


def _told(error: Exception) -> str:
    """What the error says, without what it quotes of the event: a reason is kept for good, data may be forgotten."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {_QUOTED.sub('…', first)}"[:_LONGEST_REASON]


def _assert_usable(bench: Workbench) -> None:
    """Raise duckdb.Error when the file takes no transaction any more: then it was not the event's error."""
    with transaction(bench.con):
        bench.con.execute("UPDATE checkpoints SET position = position WHERE name = 'views'")


async def park(parked: ParkedEvents, poison: UnfoldableEvent) -> LedgerError | None:
    """Park the event; None when that is kept, else what folding waits for. Raises BrokerUnavailable."""
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
    """The positions that a view file holds as unfoldable, and how far it is folded."""
    rows = cursor.execute("SELECT position FROM refused_events WHERE code = 'unfoldable'").fetchall()
    (folded,) = cursor.execute("SELECT position FROM checkpoints WHERE name = 'views'").fetchone() or (0,)
    return {position for (position,) in rows}, int(folded)


async def disagreement(ledger: Ledger, held: set[int], folded: int, parked: Parked) -> list[int]:
    """The positions that a view (see held_apart) was folded with other decisions about.

    Raises BrokerUnavailable, LogGap.
    """
    missing = [position for position in parked if position <= folded and position not in held]
    return sorted({*(held - parked.keys()), *[at for at in missing if await _is_about(ledger, parked[at])]})


async def _is_about(ledger: Ledger, decision: Decision) -> bool:
    """Whether the log holds the event that was decided about, and not another one at its position."""
    async with contextlib.aclosing(ledger.read(decision.position, batch=1)) as batches:
        async for events in batches:
            return fingerprint_of(events[0]) == decision.fingerprint
    return False


async def attention(ledger: Ledger, view: View, parked: ParkedEvents) -> tuple[list[str], list[str]]:
    """What an operator should know: reasons for not being healthy, and what merely waits. Raises BrokerUnavailable."""
    await parked.refresh()
    apart = await disagreement(ledger, *await view.ask(held_apart), parked.parked)
    waiting = parked.waiting
    return (
        [f"the view was folded before it was decided about the events at {_few(apart)}: kledger rebuild"]
        if apart
        else [],
        [f"{len(waiting)} parked events wait for you (at {_few(waiting)}): kledger refused list"] if waiting else [],
    )


def _few(positions: list[int]) -> str:
    return ", ".join(map(str, positions[:5])) + (", …" if len(positions) > 5 else "")

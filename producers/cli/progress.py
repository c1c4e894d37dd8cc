"""How far is it? A bar with a rate, on stderr, so that stdout holds the answer alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kledger.contract.errors import LedgerError
from producers.cli.screen import stderr

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from kledger import LedgerClient

Wait = Annotated[
    float,
    typer.Option(min=0, max=3600, help="Seconds to wait, in the end, for every search to find it; 0: not at all."),
]
SEARCHABLE_WITHIN = 120.0


class Bar:
    """One bar: moved by what was read or done, with the number of things and their rate beside it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def read(self, amount: int) -> None:
        """Move the bar to `amount` of its total; never back (requests may overtake each other)."""
        seen = self._progress.tasks[0].completed
        self._progress.update(self._task, completed=max(seen, amount))

    def at(self, count: int, *, total: int | None = None, rate: float | None = None) -> None:
        """Say how many things are done, and their rate a second (measured here when not given)."""
        elapsed = self._progress.tasks[0].elapsed or 0.0
        measured = rate if rate is not None else (count / elapsed if elapsed > 0 else 0.0)
        of = "" if total is None else f" of {total:,}"
        self._progress.update(self._task, told=f"{count:,}{of}  {measured:,.0f}/s")

    def step(self, what: str) -> None:
        """Begin anew with another thing to do."""
        self._progress.reset(self._task, description=what, total=None, told="")

    def span(self, total: int) -> None:
        """The total that is known by now, 0 while it is not."""
        if total:
            self._progress.update(self._task, total=total)


def until_searchable(ledger: LedgerClient, seconds: float, shown: Bar) -> dict[str, Any]:
    """Wait for what was written to be found by every search; what a command answers of that."""
    goal, seen = ledger.written, 0

    def told(position: int) -> None:
        nonlocal seen
        if not seen:
            shown.step("index")
            shown.span(goal)
        seen = position
        shown.read(position)
        shown.at(position, total=goal)

    try:
        done = ledger.wait_searchable(timeout=seconds, told=told)
    except LedgerError:  # it is kept whatever hinders searches
        done = False
    return {"searchable": done, "searchable_to": goal if done else seen}


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Bar]:
    """A bar on stderr; without a total it only moves."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, TimeElapsedColumn(), console=stderr()) as progress:
        yield Bar(progress, progress.add_task(what, total=total, told=""))

"""A progress bar with a rate, on stderr, so that stdout holds the answer alone."""

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
_MEASURED_SECONDS = 0.5
"""Before this a rate says nothing: what was done before one looked may be all of it."""


class Bar:
    """One progress bar, with a count and a rate beside it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._first: tuple[float, int] | None = None
        """When a count of this step was shown first, and that count."""
        self.shows_something = False
        """Whether anything was done since it began."""

    def read(self, amount: int) -> None:
        """Move the bar to `amount` of its total; never back (requests may overtake each other)."""
        self.shows_something |= amount > 0
        before = self._progress.tasks[0].completed
        self._progress.update(self._task, completed=max(before, amount))

    def at(self, count: int, *, total: int | None = None, rate: float | None = None) -> None:
        """Show how many things are done, and their rate a second (measured here when not given)."""
        self.shows_something |= count > 0
        if rate is None:
            rate = self._measured(count)
        of = "" if total is None else f" of {total:,}"
        self._progress.update(self._task, text=f"{count:,}{of}" + ("" if rate is None else f"  {rate:,.0f}/s"))

    def _measured(self, count: int) -> float | None:
        """The rate since a count was shown first; None while that is too short ago."""
        elapsed = self._progress.tasks[0].elapsed or 0.0
        began, first = self._first = self._first or (elapsed, count)
        return (count - first) / (elapsed - began) if elapsed - began >= _MEASURED_SECONDS else None

    def moved(self, done: int, total: int, rate: float | None = None) -> None:
        """Move the bar to `done` of `total` (0 while it is unknown), and show both."""
        self.span(total)
        self.read(done)
        self.at(done, total=total or None, rate=rate)

    def step(self, what: str) -> None:
        """Restart the bar for the next step."""
        self._progress.reset(self._task, description=what, total=None, text="")
        self._first = None

    def span(self, total: int) -> None:
        """Set the total; 0 while it is unknown."""
        if total:
            self._progress.update(self._task, total=total)


def until_searchable(ledger: LedgerClient, seconds: float, shown: Bar) -> dict[str, Any]:
    """Wait until every search finds what was written; the fields of the answer about that."""
    goal, reached = ledger.written, 0

    def progressed(position: int) -> None:
        nonlocal reached
        if not reached:
            shown.step("index")
            shown.span(goal)
        reached = position
        shown.read(position)
        shown.at(position, total=goal)

    try:
        done = ledger.wait_searchable(timeout=seconds, progress=progressed)
    except LedgerError:  # the write is durable whatever hinders searches
        done = False
    return {"searchable": done, "searchable_to": goal if done else reached}


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Bar]:
    """A bar on stderr; indeterminate without a total. An error before anything was done leaves none."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, TimeElapsedColumn(), console=stderr()) as progress:
        shown = Bar(progress, progress.add_task(what, total=total, text=""))
        try:
            yield shown
        except BaseException:
            if not shown.shows_something:
                progress.live.transient = True
                progress.console.quiet = not progress.console.is_interactive  # else an empty line is left
            raise

"""Terminal output with rich: tables and text fitted to the width, with control characters as escapes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from producers.cli.encoding import plain as plain

WIDTH_WITHOUT_SCREEN = 120
NARROW = 100
"""Columns. A table of texts on a narrower screen would fill it with one row."""
_READ = 16
"""Columns: the least width at which wrapped text is readable."""
_FOLDED = 12
"""Columns: the least width of a column of a table whose longest word is longer."""
_DIGITS = 6
"""Of a fraction: one with more was calculated, and is no number that anybody wrote."""
_BETWEEN = 3  # columns that the frame of a table takes beside each of its columns
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")


class _Console(Console):
    """A console on which nothing but its own styles steers the terminal, whatever way a text came to it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


def stdout() -> Console:
    """The console for answers."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console for progress."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else WIDTH_WITHOUT_SCREEN
    return _Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def words(value: object, style: str = "") -> Text:
    """A value as text in a style."""
    return Text(plain(value), style=style)


def equality(equal: bool) -> Text:
    """Whether two things that have to be equal are."""
    return words("equal", "green") if equal else words("DIFFERENT", "bold red")


def exact(value: object, style: str = "") -> Text:
    """Text to copy: never wrapped, so that the terminal breaks it without inserting a newline."""
    return Text(plain(value), style=style, no_wrap=True, overflow="ignore")


def verbatim(value: object) -> Text:
    """A text that somebody wrote, or a prompt: broken between words on a terminal, as it is in a pipe or a file."""
    return words(value) if sys.stdout.isatty() else exact(value)


def snippet(value: object, length: int = 120) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(plain(value).split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 item, 2 items."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def short_time(value: object) -> str:
    """`2026-03-05T12:00:00.123456Z` without the fraction."""
    text = plain(value)
    return f"{text[:19]}Z" if len(text) > 19 and text[10:11] == "T" else text


class _Table(Table):
    """A table that never wraps a timestamp; other columns shrink, and where one cannot be read each row is a list."""

    def add_row(self, *cells: Any, **how: Any) -> None:
        for column, cell in zip(self.columns, cells, strict=False):
            column.no_wrap = column.no_wrap or bool(_MOMENT.fullmatch(str(cell)))
        super().add_row(*cells, **how)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.rows or sum(map(_least, self.columns)) + _BETWEEN * len(self.columns) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        names = [str(column.header) for column in self.columns]
        yield Text("")
        for row in zip(*(column.cells for column in self.columns), strict=True):
            yield facts(*((name, cell) for name, cell in zip(names, row, strict=True) if str(cell)))
            yield Text("")


def _least(column: Column) -> int:
    """The width that a column of a table needs."""
    cells = [str(column.header), *map(str, column.cells)]
    if column.no_wrap:
        return max(cell_len(line) for cell in cells for line in (cell.splitlines() or [""]))
    return min(max(cell_len(word) for cell in cells for word in (cell.split() or [""])), _FOLDED)


def is_of_ids(heading: str) -> bool:
    """Whether a column holds ids, which are to be copied."""
    return heading.lower() == "id" or heading.lower().endswith(("_id", " id"))


def cell(value: object) -> str:
    """A value of a query in a table for people: a long fraction with three digits, which a file has whole."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "true", False: "false"}[value]
    return _rounded(value) if isinstance(value, float) else plain(value)


def _rounded(value: float) -> str:
    text = str(value)
    if len(text.partition(".")[2]) <= _DIGITS:
        return text
    return f"{value:.3g}" if "e" in text or abs(value) < 1 / 1000 else f"{value:.3f}"


def table(*headings: str, right: Iterable[str] = (), whole: Iterable[str] = ()) -> Table:
    """An empty table; columns in `right` are aligned right, those of ids and those in `whole` are never cut."""
    new = _Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for heading in headings:
        new.add_column(
            heading,
            justify="right" if heading in set(right) else "left",
            overflow="fold",
            no_wrap=heading in set(whole) or is_of_ids(heading),
        )
    return new


class Rows:
    """A table on a wide screen; on a narrow one a few lines a row, each truncated to the width."""

    def __init__(self, wide: Table, narrow: Iterable[Sequence[Text]]) -> None:
        self._wide = wide
        self._narrow = list(narrow)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= NARROW:
            yield self._wide
            return
        for number, lines in enumerate(self._narrow):
            if number and len(lines) > 1:
                yield Text("")
            for line in lines:
                shown = line.copy()
                shown.truncate(options.max_width, overflow="ellipsis")
                shown.no_wrap = True
                yield shown


class Result:
    """Rows of any columns: a table if each column gets its least width, else each row as names and values."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[str] = ()) -> None:
        self._columns = columns
        self._rows = rows
        self._right = set(right)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if sum(map(self._least, range(len(self._columns)))) <= options.max_width:
            rows = table(*self._columns, right=self._right)
            for row in self._rows:
                rows.add_row(*row)
            yield rows
            return
        for number, row in enumerate(self._rows, 1):
            yield words(f"row {number}", "dim")
            yield facts(*zip(self._columns, row, strict=True))

    def _least(self, column: int) -> int:
        """The least readable width of a column, padding included."""
        values = [self._columns[column], *(row[column] for row in self._rows)]
        longest = max(cell_len(line) for value in values for line in (value.splitlines() or [""]))
        whole = is_of_ids(self._columns[column]) or any(_MOMENT.fullmatch(value) for value in values)
        return (longest if whole else min(longest, _READ)) + 2


def facts(*pairs: tuple[str, object]) -> Table:
    """Names and values, one pair a line; a rich renderable is kept as it is."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, _shown(value))
    return grid


def with_paths(pairs: Iterable[tuple[str, object]], paths: Iterable[tuple[str, object]]) -> Group:
    """Names and values, and below them names and paths, which are to be copied: never broken."""
    pairs, paths = list(pairs), list(paths)
    width = max(len(name) for name, _ in (*pairs, *paths))
    lines = [exact(f"{name.ljust(width)}  {plain(value)}") for name, value in paths]
    for line in lines:
        line.stylize("bold", 0, width)
    return Group(facts(*((name.ljust(width), value) for name, value in pairs)), *lines)


def _shown(value: object) -> Any:
    return value if hasattr(value, "__rich_console__") or isinstance(value, Text) else plain(value)


def earlier(before: int | None) -> list[RenderableType]:
    """What is said below a history that has the latest entries alone."""
    return [] if before is None else [words(f"these are the latest: earlier ones with --before {before}", "yellow")]


def waits(answer: Mapping[str, Any]) -> str:
    """What is to be said of something that its project has to approve."""
    return ", and waits for a coordinator (proposed)" if answer.get("status") == "proposed" else ""

"""How is a Markdown table written? Cells in one line each, with what would end a cell escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GENERATED = "<!-- Generated from the code by `make docs`: edit the code, not this page. -->\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, with a newline at its end."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def cell(text: str) -> str:
    """Text that stays in one cell."""
    return " ".join(text.split()).replace("|", "\\|")

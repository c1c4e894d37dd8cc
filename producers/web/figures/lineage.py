"""Lineage as a figure: what something came from on the left, itself in the middle, what it led to on the right.

Places follow from the order alone, so that the same lineage is the same figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from markupsafe import Markup

MOST_A_SIDE = 19
"""Boxes on one side; further ones are counted in one more box, so that there are 41 boxes at most."""
_WIDTH, _HEIGHT, _GAP, _BETWEEN, _EDGE = 250, 40, 10, 85, 4
_MOST_LETTERS = 30


@dataclass(frozen=True, slots=True)
class Box:
    """One thing of a lineage: what it is, how it is called, and the page that shows it."""

    what: str
    name: str
    page: str | None = None
    here: bool = False


@dataclass(frozen=True, slots=True)
class Texts:
    """What the figure says itself, in the language of the reader; `more` has the place `{n}`."""

    title: str
    more: str


def lineage_figure(came_from: Sequence[Box], item: Box, led_to: Sequence[Box], texts: Texts, lists: str) -> Markup:
    """The figure as SVG; what has no room is a link to `lists`, the address at which all of it is listed."""
    left, right = _bounded(came_from, texts, lists), _bounded(led_to, texts, lists)
    rows = max(len(left), len(right), 1)
    height = rows * (_HEIGHT + _GAP) - _GAP + 2 * _EDGE
    middle = _EDGE + (rows * (_HEIGHT + _GAP) - _GAP - _HEIGHT) / 2
    width = 3 * _WIDTH + 2 * _BETWEEN + 2 * _EDGE
    at = [_EDGE, _EDGE + _WIDTH + _BETWEEN, _EDGE + 2 * (_WIDTH + _BETWEEN)]
    drawn = []
    for column, boxes in ((0, left), (2, right)):
        for box, top in zip(boxes, _tops(len(boxes), rows), strict=True):
            if column == 0:
                drawn.append(_line(at[0] + _WIDTH, top, at[1], middle))
            else:
                drawn.append(_line(at[1] + _WIDTH, middle, at[2], top))
            drawn.append(_box(box, at[column], top))
    drawn.append(_box(item, at[1], middle))
    return Markup(
        '<svg class="figure" viewBox="0 0 {} {:.0f}" width="{}" height="{:.0f}" role="group" aria-label="{}">{}</svg>'
    ).format(width, height, width, height, texts.title, Markup("").join(drawn))


def _bounded(boxes: Sequence[Box], texts: Texts, lists: str) -> list[Box]:
    if len(boxes) <= MOST_A_SIDE:
        return list(boxes)
    return [*boxes[:MOST_A_SIDE], Box("", texts.more.format(n=len(boxes) - MOST_A_SIDE), lists)]


def _tops(count: int, rows: int) -> list[float]:
    """Where boxes begin: in the middle of the height that the longer side takes."""
    first = _EDGE + (rows - count) * (_HEIGHT + _GAP) / 2
    return [first + place * (_HEIGHT + _GAP) for place in range(count)]


def _line(x1: float, top1: float, x2: float, top2: float) -> Markup:
    y1, y2, bend = top1 + _HEIGHT / 2, top2 + _HEIGHT / 2, (x1 + x2) / 2
    return Markup('<path class="edge" d="M{:.0f} {:.1f}C{:.0f} {:.1f} {:.0f} {:.1f} {:.0f} {:.1f}"/>').format(
        x1, y1, bend, y1, bend, y2, x2, y2
    )


def _box(box: Box, x: float, y: float) -> Markup:
    one_line = not box.what
    parts = [
        Markup("<title>{}</title>").format(f"{box.what}: {box.name}" if box.what else box.name),
        Markup('<rect class="box{}" x="{}" y="{:.1f}" width="{}" height="{}" rx="6"/>').format(
            " here" if box.here else "", x, y, _WIDTH, _HEIGHT
        ),
    ]
    if not one_line:
        parts.append(Markup('<text class="soft" x="{}" y="{:.1f}">{}</text>').format(x + 10, y + 16, fitting(box.what)))
    parts.append(
        Markup('<text x="{}" y="{:.1f}">{}</text>').format(x + 10, y + (25 if one_line else 32), fitting(box.name))
    )
    inside = Markup("").join(parts)
    if box.page is None:
        return Markup("<g>{}</g>").format(inside)
    return Markup('<a href="{}">{}</a>').format(box.page, inside)


def fitting(text: str) -> str:
    """As much of a text as fits a box: a wide letter takes two places, and what has no shape, such as a mark that turns
    the direction, none."""
    taken: list[str] = []
    room = _MOST_LETTERS
    for letter in text:
        if not letter.isprintable():
            continue
        room -= 2 if east_asian_width(letter) in "WF" else 1
        if room < 0:
            return "".join(taken[:-1]) + "…"
        taken.append(letter)
    return "".join(taken)

"""Bars: a number for each of a few labels, lying, with what is below nothing to the left of it."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

from markupsafe import Markup

_WIDTH, _ROW, _TOP = 640, 26, 6
_LEFT, _RIGHT = 200, 540
"""Where bars begin and end; labels stand before them, numbers after them."""
_LABEL_CELLS = 26


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> Markup:
    """A figure of (label, number, number as it is written) for each row. The table of the same stands beside it."""
    least = min(0.0, *(number for _, number, _ in rows))
    most = max(0.0, *(number for _, number, _ in rows))
    scale = (_RIGHT - _LEFT) / ((most - least) or 1.0)
    zero = _LEFT - least * scale
    height = _TOP * 2 + _ROW * len(rows)
    drawn = [
        Markup('<svg class="figure bars" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _WIDTH, height, title
        ),
        *(_bar(row, _TOP + _ROW * place, zero, scale) for place, row in enumerate(rows)),
        Markup('<line class="edge" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/></svg>').format(zero, height),
    ]
    return Markup("").join(drawn)


def _bar(row: tuple[str, float, str], top: int, zero: float, scale: float) -> Markup:
    label, number, written = row
    x, width = (zero, number * scale) if number >= 0 else (zero + number * scale, -number * scale)
    return Markup(
        '<g><title>{label}: {written}</title>'
        '<text class="soft" x="{before}" y="{base}" text-anchor="end">{short}</text>'
        '<rect class="bar" x="{x:.1f}" y="{top}" width="{width:.1f}" height="{height}" rx="2"/>'
        '<text x="{end}" y="{base}" text-anchor="end">{written}</text></g>'
    ).format(
        label=label, short=_fitting(label), written=written, before=_LEFT - 8, end=_WIDTH - 4,
        base=top + 17, x=x, top=top + 3, width=width, height=_ROW - 6,
    )  # fmt: skip


def _fitting(label: str) -> str:
    """As much of a label as there is room for; a Chinese character takes that of two letters."""
    room = _LABEL_CELLS
    for place, letter in enumerate(label):
        room -= 2 if east_asian_width(letter) in "WF" else 1
        if room < 0:
            return label[: max(0, place - 1)] + "…"
    return label

"""Bars of the last days: what was saved, recalled and judged, each on a scale of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kledger.answers.overview import Day
from producers.web.words import Words

MOST_BARS = 100
"""With more days than this a bar stands for a week."""
Stack = tuple[tuple[int, str], ...]
"""The parts of one bar, from below: how many, and of which class."""
_WIDTH, _STRIP, _TOP, _FOOT = 960, 48, 30, 26
"""Units of the figure. Above each strip and below the last is room for the larger letters of a small window."""


@dataclass(frozen=True, slots=True)
class Span:
    """A day, or a week by its first day, with what happened then."""

    name: str
    saved: int
    recalled: int
    helpful: int
    harmful: int

    @property
    def judged(self) -> int:
        """Verdicts of both kinds."""
        return self.helpful + self.harmful


def spans(days: Sequence[Day]) -> list[Span]:
    """One for each day, or of many days for each week; the last week ends with the last day."""
    size = 1 if len(days) <= MOST_BARS else 7
    first = len(days) % size
    cuts = [slice(0, first)] * bool(first) + [slice(at, at + size) for at in range(first, len(days), size)]
    return [_sum(days[cut]) for cut in cuts]


def _sum(days: Sequence[Day]) -> Span:
    return Span(
        days[0]["day"],
        sum(day["saved"] for day in days),
        sum(day["recalled"] for day in days),
        sum(day["helpful"] for day in days),
        sum(day["harmful"] for day in days),
    )


def bars(shown: Sequence[Span], words: Words) -> Markup:
    """The figure: three strips of bars, the tallest of each as high as its strip."""
    strips: tuple[tuple[str, list[Stack]], ...] = (
        (words("Saved items"), [((each.saved, "saved"),) for each in shown]),
        (words("Recalled"), [((each.recalled, "recalled"),) for each in shown]),
        (words("Judged"), [((each.helpful, "judged"), (each.harmful, "harmful")) for each in shown]),
    )
    height = len(strips) * (_STRIP + _TOP) + _FOOT
    parts = [
        _strip(name, values, [each.name for each in shown], number * (_STRIP + _TOP) + _TOP)
        for number, (name, values) in enumerate(strips)
    ]
    parts += [
        Markup('<text class="soft" x="{}" y="{}" text-anchor="{}">{}</text>').format(
            _place(at, len(shown)), height - 4, _anchor(at, len(shown)), shown[at].name
        )
        for at in sorted({0, len(shown) // 2, len(shown) - 1})
    ]
    said = words(
        "{saved} saved, {recalled} recalled, {helpful} judged helpful and {harmful} harmful, from {first} to today",
        saved=sum(each.saved for each in shown),
        recalled=sum(each.recalled for each in shown),
        helpful=sum(each.helpful for each in shown),
        harmful=sum(each.harmful for each in shown),
        first=shown[0].name,
    )
    return Markup('<svg class="figure" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, height, said, Markup("").join(parts)
    )


def _strip(name: str, values: Sequence[Stack], names: Sequence[str], top: int) -> Markup:
    tallest = max(sum(count for count, _ in stack) for stack in values)
    step = _step(values)
    drawn = [
        Markup(
            '<text x="0" y="{0}">{1}</text><text class="soft" x="{2}" y="{0}" text-anchor="end">≤ {3}</text>'
        ).format(top - 6, name, _WIDTH, f"{tallest:,}"),
        Markup('<path class="line" d="M0 {}H{}"/>').format(top + _STRIP + 0.5, _WIDTH),
    ]
    for at, stack in enumerate(values):
        floor = float(top + _STRIP)
        for count, kind in stack:
            if count:
                tall = max(1.0, count / tallest * _STRIP)
                floor -= tall
                drawn.append(
                    Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>').format(
                        kind,
                        round(at * step + step * 0.1, 2),
                        round(floor, 2),
                        round(step * 0.8, 2),
                        round(tall, 2),
                        names[at],
                        count,
                    )
                )
    return Markup("").join(drawn)


def _step(shown: Sequence[object]) -> float:
    return _WIDTH / len(shown)


def _place(at: int, count: int) -> int:
    """Where the name of a bar stands: the first and the last at the edges, another in the middle of its bar."""
    return 0 if at == 0 else _WIDTH if at == count - 1 else round((at + 0.5) * _WIDTH / count)


def _anchor(at: int, count: int) -> str:
    return "start" if at == 0 else "end" if at == count - 1 else "middle"

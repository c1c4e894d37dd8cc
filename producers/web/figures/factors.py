"""What each factor added to a relevance, as one stacked bar; the same numbers stand in the table beside it."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

FACTORS = ("keyword", "vector", "recency", "lent")
_WIDTH, _HEIGHT = 200, 16


def factors(parts: Mapping[str, float], most: float, names: Mapping[str, str]) -> Markup:
    """The parts of one relevance, where `most` is the whole width; `names` say what each part is. Less than nothing has
    no width."""
    said = ", ".join(f"{names[name]} {parts[name]:.3f}" for name in FACTORS)
    drawn = [
        Markup('<svg class="figure stacked" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>').format(
            _WIDTH, _HEIGHT, said, said
        )
    ]
    x, scale = 0.0, _WIDTH / (most or 1.0)
    for name in FACTORS:
        width = max(0.0, parts[name]) * scale
        drawn.append(
            Markup('<rect class="of-{}" x="{:.1f}" y="2" width="{:.1f}" height="{}"/>').format(
                name, x, width, _HEIGHT - 4
            )
        )
        x += width
    return Markup("").join([*drawn, Markup("</svg>")])


def whole(value: float, most: float, said: str) -> Markup:
    """One number as a bar, where `most` is the whole width."""
    width = max(0.0, value) * _WIDTH / (most or 1.0)
    return Markup(
        '<svg class="figure stacked" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<rect class="of-vector" x="0" y="2" width="{:.1f}" height="{}"/></svg>'
    ).format(_WIDTH, _HEIGHT, said, said, width, _HEIGHT - 4)

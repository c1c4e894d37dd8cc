"""Figures are read in a window of any width: the newest day is in sight, and letters are legible and apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.window import Window

Open = Callable[..., Window]
LEAST_LETTERS = 9
"""Height of a line of letters, in CSS pixels, that a person still reads."""
DRAWN = """() => {
  const figure = document.querySelector("main svg.figure");
  const texts = [...figure.querySelectorAll("text")].map(each => each.getBoundingClientRect());
  const apart = (one, other) => one.right <= other.left || other.right <= one.left
    || one.bottom <= other.top + 2 || other.bottom <= one.top + 2;
  return {
    right: figure.getBoundingClientRect().right,
    window: document.documentElement.clientWidth,
    bars: [...figure.querySelectorAll("rect")].map(each => each.getBoundingClientRect().right),
    lowest: Math.min(...texts.map(each => each.height)),
    over: texts.filter((one, at) => texts.slice(at + 1).some(other => !apart(one, other))).length,
  };
}"""


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("width", [400, 640, 960, 1280])
def test_the_chart_of_the_last_days_is_in_sight_as_a_whole(
    window: Open, operator: Any, width: int, language: str
) -> None:
    drawn = window(width=width, language=language, signed_in=operator).open("/ui").evaluate(DRAWN)
    assert drawn["bars"]
    assert max(drawn["right"], *drawn["bars"]) <= drawn["window"]
    assert drawn["lowest"] >= LEAST_LETTERS
    assert drawn["over"] == 0


@pytest.mark.parametrize("width", [400, 1280])
def test_the_letters_of_a_chart_of_a_query_are_legible(window: Open, operator: Any, width: int) -> None:
    page = window(width=width, signed_in=operator).open("/ui/sql")
    page.fill("#sql-query", "SELECT owner, count(*) AS items FROM knowledge GROUP BY owner ORDER BY owner")
    page.click("button[data-runs]")
    page.wait_for_selector("main svg.bars")
    drawn = page.evaluate(DRAWN)
    assert drawn["lowest"] >= LEAST_LETTERS
    assert drawn["over"] == 0

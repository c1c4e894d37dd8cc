"""The header leaves the screen to the page, at every width and in both languages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.window import Window

Open = Callable[..., Window]


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
@pytest.mark.parametrize(("width", "most"), [(1280, 60), (1000, 60), (768, 95), (400, 115)])
def test_the_header_takes_one_line_or_two_and_three_on_a_telephone(
    window: Open, operator: Any, language: str, width: int, most: int
) -> None:
    own = window(width=width, language=language, signed_in=operator)
    page = own.open("/ui/traces")
    height = page.evaluate("document.querySelector('header.top').getBoundingClientRect().height")
    assert 30 < height <= most
    links = page.locator("header.top nav a")
    assert links.count() == 7
    for place in range(links.count()):
        box = links.nth(place).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width

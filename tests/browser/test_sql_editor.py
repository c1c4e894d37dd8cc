"""The editor of SQL: names that it offers are in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.window import Window


@pytest.mark.parametrize("width", [400, 1280])
def test_a_query_runs_at_the_first_click_while_names_are_offered(
    window: Callable[..., Window], operator: Any, width: int
) -> None:
    page = window(width=width, signed_in=operator).open("/ui/sql")
    page.fill("#sql-query", "SELECT owner FROM knowledge ORDER BY owner")
    page.wait_for_selector("#sql-names li")  # longer names that begin so
    page.click("button[data-runs]")
    page.wait_for_selector("table.rows")

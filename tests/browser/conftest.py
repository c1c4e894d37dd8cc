"""One browser and one furnished node for each file.

Not for a worker: the driver of a browser has a running event loop, beside which no test with a loop of its own runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.furnished import furnished_node
from tests.browser.window import Window, chromium
from tests.journeys.running_node import RunningNode


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def node(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """Started only where there is a browser to look at it."""
    with furnished_node(tmp_path_factory.mktemp("browser") / "data") as node:
        yield node


@pytest.fixture(scope="module")
def operator(browser: Browser, node: RunningNode) -> Any:
    """The cookies of somebody who looks as the operator."""
    own = Window(browser, node.url)
    own.sign_in()
    kept = own.context.storage_state()
    own.close()
    return kept


@pytest.fixture(scope="module")
def opened_before(browser: Browser) -> Iterator[dict[str, Window]]:
    """Windows that stay open from test to test, by what they were asked for with."""
    kept: dict[str, Window] = {}
    yield kept
    for each in kept.values():
        each.close()


@pytest.fixture
def kept_window(
    browser: Browser, node: RunningNode, opened_before: dict[str, Window]
) -> Iterator[Callable[..., Window]]:
    """Windows of this kind that earlier tests have opened, for what a page says at whatever visit."""

    def kept(**how: Any) -> Window:
        named = str(sorted(how.items()))
        if named not in opened_before:
            opened_before[named] = Window(browser, node.url, **how)
        return opened_before[named]

    yield kept
    complaints = [each for one in opened_before.values() for each in one.complaints]
    for each in opened_before.values():
        each.complaints.clear()
    assert not complaints, complaints


@pytest.fixture
def window(browser: Browser, node: RunningNode) -> Iterator[Callable[..., Window]]:
    """Opens windows; in the end none of them may have complained."""
    opened: list[Window] = []

    def open_window(**how: Any) -> Window:
        opened.append(Window(browser, node.url, **how))
        return opened[-1]

    yield open_window
    complaints = [each for one in opened for each in one.complaints]
    for each in opened:
        each.close()
    assert not complaints, complaints

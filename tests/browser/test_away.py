"""A page that stays open notices a node that stops, keeps what is written on it, and goes on when the node does."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.window import Window
from tests.journeys.running_node import RunningNode, caught_up, running
from tests.patience import PATIENCE

expect.set_options(timeout=PATIENCE * 1000)


def saved(node: RunningNode, content: str, item: str = "pier") -> None:
    with node.client() as ledger:
        ledger.acting_as(user="ann").save("Where the pier is", content, ["plan"], id=item, scopes=["public"])
        caught_up(ledger)


# A page waits ten seconds for an answer, and looks every twenty: here it has less patience.
IMPATIENT = """
const abortsAfter = AbortSignal.timeout.bind(AbortSignal), callsAfter = window.setTimeout.bind(window);
AbortSignal.timeout = (ms) => abortsAfter(ms / 10);
window.setTimeout = (call, ms, ...more) => callsAfter(call, ms / 10, ...more);
"""


def impatient(browser: Browser, node: RunningNode, **how: Any) -> Window:
    """A window of somebody who is signed in, whose pages wait a tenth of the time."""
    window = Window(browser, node.url, **how)
    window.context.add_init_script(IMPATIENT)
    window.sign_in()
    return window


@pytest.fixture
def stopping(browser: Browser, tmp_path: Path) -> Iterator[RunningNode]:
    """A node that a test may stop."""
    with running(tmp_path / "data") as node:
        saved(node, "In the north.")
        yield node


@pytest.fixture(scope="module")
def hanging(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that tests have hang for a while."""
    with running(tmp_path_factory.mktemp("hanging") / "data") as node:
        yield node


def look_again(page: Page) -> None:
    """As when the reader comes back to the tab."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_node_that_is_started_again_is_told_as_away_then_signed_out_and_then_the_page_goes_on(
    browser: Browser, stopping: RunningNode
) -> None:
    window = impatient(browser, stopping)
    page = window.open("/ui/items/pier?show=revise")
    page.get_by_label("Content").fill("what I wrote for an hour")
    note = page.locator("#away-note")
    expect(note).to_be_hidden()
    assert stopping.stop() == 0
    expect(note).to_contain_text("The node does not answer")
    page.get_by_role("button", name="Keep this").click()
    expect(page.get_by_label("Content")).to_have_value("what I wrote for an hour")
    with running(stopping.data, http=stopping.url.removeprefix("http://")) as again:
        link = note.get_by_role("link", name=re.compile("signed out"))
        expect(link).to_be_visible()
        expect(note).not_to_contain_text("does not answer")
        with window.context.expect_page() as opened:
            link.click()
        opened.value.click("button[name=as]")
        opened.value.wait_for_url(re.compile("/ui/items/pier"))
        expect(note).to_be_hidden()
        expect(page.get_by_label("Content")).to_have_value("what I wrote for an hour")
        saved(again, "In the south.", item="pier-2")
        expect(page.locator("#live-note")).to_be_visible()
    assert [each for each in window.complaints if "htmx:sse:error" not in each] == []
    window.close()


@pytest.mark.parametrize("path", ["/ui/knowledge", "/ui/new", "/ui/sql"])
def test_a_node_that_hangs_is_told_on_any_page_and_no_more_once_it_goes_on(
    browser: Browser, hanging: RunningNode, path: str
) -> None:
    window = impatient(browser, hanging, language="zh-CN")
    page = window.open(path)
    note = page.locator("#away-note")
    hanging.process.send_signal(signal.SIGSTOP)
    try:
        look_again(page)
        expect(note).to_contain_text("节点没有响应")
    finally:
        hanging.process.send_signal(signal.SIGCONT)
    expect(note).to_be_hidden()
    assert not window.complaints
    window.close()

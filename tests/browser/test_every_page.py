"""What holds of every page: nothing is loaded from elsewhere, everybody can use it, and it works without scripts."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from producers.web.files import files
from tests.browser.addresses import PAGES
from tests.browser.window import Window
from tests.journeys.running_node import RunningNode
from tests.npm import installed

Open = Callable[..., Window]
PACKAGE = Path(__file__).parent / "axe" / "package.json"
SERIOUS = ("serious", "critical")
MOST_SCRIPT = 40 * 1024
MOST_FIRST_LOAD = 120 * 1024


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker of accessibility, as a script."""
    folder = tmp_path_factory.mktemp("axe")
    shutil.copy(PACKAGE, folder)
    return (installed(folder, "axe-core") / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(window: Open, operator: Any, axe: str, name: str, scheme: str) -> None:
    own = window(scheme=scheme, signed_in=operator)
    page = own.open(PAGES[name])
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (each["id"], [(node["target"], node["failureSummary"]) for node in each["nodes"][:3]])
        for each in found["violations"]
        if each["impact"] in SERIOUS
    ]
    assert not serious


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_narrow_screen_and_speaks_chinese(window: Open, operator: Any, name: str) -> None:
    own = window(width=400, language="zh-CN", signed_in=operator)
    page = own.open(PAGES[name])
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_nothing_is_loaded_from_elsewhere_and_the_first_load_is_light(
    window: Open, operator: Any, node: RunningNode
) -> None:
    own = window(signed_in=operator)
    for address in PAGES.values():
        own.open(address)
    hosts = {urlsplit(each).netloc for each in own.requested}
    assert hosts == {urlsplit(node.url).netloc}
    first = window()
    bytes_of = {"script": 0, "all": 0}

    def count(answer: object) -> None:
        sizes = answer.request.sizes()  # type: ignore[attr-defined]  # Playwright types its events as objects
        bytes_of["all"] += sizes["responseBodySize"] + sizes["responseHeadersSize"]
        if answer.request.resource_type == "script":  # type: ignore[attr-defined]
            bytes_of["script"] += sizes["responseBodySize"]

    first.page.on("requestfinished", lambda request: count(request.response()))
    first.sign_in()
    assert 0 < bytes_of["script"] <= MOST_SCRIPT
    assert bytes_of["all"] <= MOST_FIRST_LOAD
    scripts = [each.content for name, each in files().items() if name.endswith(".js")]
    assert sum(len(gzip.compress(each)) for each in scripts) <= MOST_SCRIPT


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_without_scripts_what_it_says_with_them(window: Open, operator: Any, name: str) -> None:
    said = []
    for scripts in (True, False):
        own = window(scripts=scripts, signed_in=operator)
        own.open(PAGES[name])
        said.append(own.page.locator("h1").all_inner_texts())
        assert own.page.locator("main").inner_text().strip()
    assert said[0] == said[1]
    assert said[0]


@pytest.mark.parametrize("name", PAGES)
def test_everything_on_a_page_is_reached_by_the_keyboard(window: Open, operator: Any, name: str) -> None:
    own = window(signed_in=operator)
    page = own.open(PAGES[name])
    assert not page.evaluate(
        "[...document.querySelectorAll('[onclick], [tabindex]')].filter(e => e.tabIndex > 0 || e.onclick).length"
    )
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_pages_are_refused_to_a_program_that_is_not_signed_in(node: RunningNode) -> None:
    for address in PAGES.values():
        answer = httpx.get(node.url + address, follow_redirects=False)
        assert answer.status_code in (303, 404), address

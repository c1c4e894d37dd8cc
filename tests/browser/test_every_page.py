"""What holds of every page: nothing is loaded from elsewhere, everybody can use it, and it works without scripts."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page

from producers.web.files import files
from tests.browser.addresses import PAGES
from tests.browser.window import Scheme, Window
from tests.journeys.running_node import RunningNode
from tests.npm import installed
from tests.patience import PATIENCE
from tests.temporary_files import OF_THE_SESSION

Open = Callable[..., Window]
PACKAGE = Path(__file__).parent / "axe" / "package.json"
SERIOUS = ("serious", "critical")
# Rules for what a style decides: the dark one has the elements, the sizes and the words of the light one.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
LONG = ("reference", "sql-columns")
# Of a long page: leaves the first parts, and others where an element is of no kind that stood there before.
SHORTENED = """() => {
  const kinds = new Set();
  const telling = /^(class|role|style|type|scope|lang|aria-(hidden|current|sort|pressed|expanded))$/;
  const told = ({ name, value }) => telling.test(name) ? `${name}=${value}` : name;
  const own = (e) => `${e.tagName} ${[...e.attributes].map(told)}`;
  const isNew = (e, path) => {
    const kind = `${path} ${own(e)}`, before = kinds.size;
    kinds.add(kind);
    const below = [...e.children].map((child) => isNew(child, kind));
    return kinds.size > before || below.some(Boolean);
  };
  const parts = [];
  for (const child of document.querySelector("main h2, main details").parentElement.children) {
    if (["H2", "DETAILS"].includes(child.tagName) || !parts.length) parts.push([]);
    parts.at(-1).push(child);
  }
  parts.forEach((part, at) => {
    if (!part.map((e) => isNew(e, "")).some(Boolean) && at > 5) part.forEach((e) => e.remove());
  });
}
"""
MOST_SCRIPT = 40 * 1024
MOST_FIRST_LOAD = 120 * 1024


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker of accessibility, as a script."""
    folder = tmp_path_factory.mktemp(f"{OF_THE_SESSION}axe")
    shutil.copy(PACKAGE, folder)
    return (installed(folder, "axe-core") / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@dataclass(frozen=True)
class Looked:
    """What one visit to a page told."""

    titles: list[str]
    text: str
    asked: set[str]
    odd: int
    focused: tuple[str, str]
    violations: dict[Scheme, list[Any]]


@pytest.fixture(scope="module")
def look(browser: Browser, node: RunningNode, operator: Any, axe: str) -> Iterator[Callable[[str], Looked]]:
    """Visits a page once, and keeps what was to be seen there for every test of it."""
    window = Window(browser, node.url, signed_in=operator)

    @cache
    def looked(name: str) -> Looked:
        window.requested.clear()
        page = window.open(PAGES[name])
        titles, text = page.locator("h1").all_inner_texts(), page.locator("main").inner_text().strip()
        odd = page.evaluate(
            "[...document.querySelectorAll('[onclick], [tabindex]')].filter(e => e.tabIndex > 0 || e.onclick).length"
        )
        page.keyboard.press("Tab")
        skip = page.evaluate("document.activeElement.className")
        if skip == "skip":  # else it may lead away
            page.keyboard.press("Enter")
        focused = (skip, page.evaluate("document.activeElement.id"))
        asked = {urlsplit(each).netloc for each in window.requested}
        found = violations(page, axe, name)
        complaints = [*window.complaints]
        window.complaints.clear()
        assert not complaints, complaints
        return Looked(titles, text, asked, odd, focused, found)

    yield looked
    window.close()


def violations(page: Page, axe: str, name: str) -> dict[Scheme, list[Any]]:
    """What the checker of accessibility finds in each scheme."""
    if name in LONG:
        page.evaluate(SHORTENED)
        assert page.locator("main h2, main details").count() > 4
    page.evaluate(axe)
    ran: tuple[tuple[Scheme, dict[str, Any]], ...] = (("light", {}), ("dark", {"runOnly": OF_COLOURS}))
    found = {}
    for scheme, rules in ran:
        page.emulate_media(color_scheme=scheme)
        told = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], ...rules})", rules)
        found[scheme] = told["violations"]
    page.emulate_media(color_scheme="light")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_in_the_light_and_in_the_dark(look: Callable[[str], Looked], name: str) -> None:
    for scheme, found in look(name).violations.items():
        serious = [
            (each["id"], [(node["target"], node["failureSummary"]) for node in each["nodes"][:3]])
            for each in found
            if each["impact"] in SERIOUS
        ]
        assert not serious, scheme


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_narrow_screen_and_speaks_chinese(kept_window: Open, operator: Any, name: str) -> None:
    own = kept_window(width=400, language="zh-CN", signed_in=operator)
    page = own.open(PAGES[name])
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_reference_that_every_page_links_fits_a_narrow_screen(kept_window: Open, operator: Any) -> None:
    page = kept_window(width=400, signed_in=operator).open("/docs")
    assert page.locator("table").count() > 100
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_first_load_is_light(window: Open) -> None:
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
def test_a_page_says_without_scripts_what_it_says_with_them(
    kept_window: Open, operator: Any, look: Callable[[str], Looked], name: str
) -> None:
    page = kept_window(signed_in=operator, scripts=False).open(PAGES[name])
    assert page.locator("main").inner_text().strip()
    assert look(name).text
    assert page.locator("h1").all_inner_texts() == look(name).titles != []


@pytest.mark.parametrize("name", PAGES)
def test_everything_on_a_page_is_of_this_node_and_reached_by_the_keyboard(
    look: Callable[[str], Looked], node: RunningNode, name: str
) -> None:
    looked = look(name)
    assert looked.asked == {urlsplit(node.url).netloc}
    assert not looked.odd
    assert looked.focused == ("skip", "main")


def test_pages_are_refused_to_a_program_that_is_not_signed_in(node: RunningNode) -> None:
    for address in PAGES.values():
        answer = httpx.get(node.url + address, follow_redirects=False, timeout=PATIENCE)
        assert answer.status_code in (303, 404), address

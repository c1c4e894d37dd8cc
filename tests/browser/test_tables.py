"""Tables are read, not spelled: no word is cut in the middle of its letters, whatever the width of the window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.window import Window
from tests.journeys.running_node import RunningNode, caught_up

Open = Callable[..., Window]
TABLES = (
    "/ui/knowledge?view=table",
    "/ui/why?q=deploy",
    "/ui/traces",
    "/ui/audit",
    "/ui/sql/columns",
    "/ui/review?tab=expired",
    "/ui/knowledge/bulk?action=retire&id=night-deploys&id=mail",
)
CUT = r"""() => {
  const cut = [];
  for (const cell of document.querySelectorAll("main .wide th, main .wide td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      if (node.parentElement.closest("code, .mono, .long, .sr, details:not([open]), svg")) continue;
      for (const word of node.data.matchAll(/[A-Za-z]{2,16}/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(each => each.top)).size > 1) cut.push(word[0]);
      }
    }
  }
  return cut;
}"""


@pytest.mark.parametrize("width", [400, 768, 1000, 1280])
def test_no_word_of_a_table_is_cut_in_the_middle_of_its_letters(window: Open, operator: Any, width: int) -> None:
    own = window(width=width, signed_in=operator)
    for address in TABLES:
        page = own.open(address)
        page.evaluate("document.querySelectorAll('main details').forEach(each => each.open = true)")
        assert page.locator("main .wide td").count() or "expired" in address
        assert page.evaluate(CUT) == [], address


def test_no_word_of_the_rows_of_a_query_is_cut(window: Open, operator: Any) -> None:
    own = window(width=1000, signed_in=operator)
    page = own.open("/ui/sql")
    page.fill("#sql-query", "SELECT * FROM knowledge LIMIT 20")
    page.click("button[data-runs]")
    page.wait_for_selector("table.rows")
    assert page.evaluate(CUT) == []


ENDLESS = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3


@pytest.mark.parametrize("width", [400, 1280])
def test_a_word_without_an_end_takes_no_more_room_than_other_words(
    window: Open, operator: Any, node: RunningNode, width: int
) -> None:
    """One such title pushed every other column of the list out of sight."""
    own = window(width=width, signed_in=operator)
    wide = "document.querySelector('main .wide table').getBoundingClientRect().width"
    address = "/ui/knowledge?view=table"
    before = own.open(address).evaluate(wide)
    with node.client() as ledger:
        saved = ledger.acting_as(user="jonas").save(ENDLESS, ENDLESS, ["tool"], tags={ENDLESS[:90]: ENDLESS[:90]})
        caught_up(ledger)
        page = own.open(address)
        assert page.locator("tr", has_text=ENDLESS[:40]).count() == 1
        assert page.evaluate(wide) <= before + 40
        ledger.acting_as(user="jonas").retire(saved["id"])


# Of each cell with a word of ours, how many lines it has.
LINES = """() => [...document.querySelectorAll("main .wide td.term")].map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map(each => each.top)).size;
})"""


def test_a_chinese_word_of_a_table_stands_on_one_line_on_a_telephone(window: Open, operator: Any) -> None:
    own = window(width=390, language="zh-CN", signed_in=operator)
    lines = own.open("/ui/traces").evaluate(LINES)
    assert len(lines) > 2
    assert set(lines) == {1}

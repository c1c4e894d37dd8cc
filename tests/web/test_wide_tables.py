"""Does a table that is wider than its screen say so, and does a page answer whoever asks for its head alone?"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import producers.web
from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor

WEB = Path(producers.web.__file__).parent


def test_each_table_stands_in_what_scrolls_sideways_with_a_shade_where_there_is_more() -> None:
    """On a telephone the table of `/ui/why` ended after a column, as if there were no more."""
    tables = 0
    for file in (WEB / "templates").rglob("*.html"):
        for before in file.read_text("utf-8").split("<table")[:-1]:
            tables += 1
            assert re.search(r'<div class="wide[^>]*>\s*$', before), (file, before[-80:])
    assert tables > 10
    style = (WEB / "static" / "app.css").read_text("utf-8")
    scrolls = re.search(r"\.wide \{ overflow-x: auto;[^}]*}", style)
    assert scrolls is not None
    assert [scrolls[0].count(f"no-repeat {how}") for how in ("scroll", "local")] == [2, 2]
    assert ".wide > table { background: none; }" in style  # it would cover the shade


def test_a_page_answers_head_as_get(shared_node: RunningNode) -> None:
    with visitor(shared_node.url) as person:
        for path in ("/ui", "/ui/knowledge", "/ui/sql", "/ui/why", "/ui/sign-in", "/ui/static/app.css", "/ui/nowhere"):
            got, head = person.http.get(path), person.http.head(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert head.headers["content-type"] == got.headers["content-type"], path


def test_a_query_in_an_address_is_filled_in_after_signing_in_too_and_not_run(shared_node: RunningNode) -> None:
    query = "SELECT error('it ran'), 'a b' -- 100%"
    with visitor(shared_node.url, signed_in=False) as person:
        asked = person.get("/ui/sql", query=query)
        onward = re.search(r'name="next" value="([^"]*)"', asked.text)
        assert onward is not None
        page = person.post("/ui/sign-in", {"as": "operator", "next": unescape(onward[1])})
        assert page.status_code == 200
        filled = re.search(r"<textarea[^>]*>([^<]*)</textarea>", page.text)
        assert filled is not None
        assert unescape(filled[1]) == query
        assert 'id="rows"' not in page.text

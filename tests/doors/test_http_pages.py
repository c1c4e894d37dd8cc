"""What a person finds at the node's address: what is where, and a reference of the API that fetches nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from producers.http.app import create_app
from producers.http.pages import reference_page
from tests.access.test_door import bearer
from tests.doors.http_door import http_door, refusal


class Page(HTMLParser):
    """The tags of a page, its anchors and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.named: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.named += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name == "href" and value]


async def test_every_link_at_the_root_is_answered_by_the_node() -> None:
    async with http_door() as door:
        answer = await door.get("/")
        index = answer.json()
        assert answer.status_code == 200
        assert index["version"] == version("knowledge-ledger")
        for name, path in index["links"].items():
            expected = {"mcp": (405,), "page": (303,)}.get(name, (200, 503))
            assert (await door.get(path)).status_code in expected, path


async def test_the_reference_has_every_endpoint_and_fetches_nothing() -> None:
    async with http_door() as door:
        answer = await door.get("/docs", headers={"Accept": "text/html"})
        document = (await door.get("/openapi.json")).json()
        links = [link for link in Page(answer.text).links if not link.startswith("#")]
        for link in links:
            assert (await door.get(link)).status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = Page(answer.text)
    assert page.tags <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "a", "code", "table", "tr", "th", "td")
    }
    assert not any(name in ("src", "style") or name.startswith("on") for name, _ in page.named)
    assert set(links) == {"/", "/openapi.json"}
    anchors = [link[1:] for link in page.links if link.startswith("#")]
    assert sorted(anchors) == sorted(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    described = [(method, path) for path, item in document["paths"].items() for method in item]
    assert len(described) == len(page.ids) > 40
    for method, path in described:
        assert f"<code>{method.upper()} {path}</code>" in answer.text


def test_each_shape_has_a_name_of_its_own_for_generators_of_clients() -> None:
    # A generator makes a class of each title; of two with one title it leaves one out.
    shapes = create_app(None).openapi()["components"]["schemas"]  # type: ignore[arg-type]  # None describes the app
    assert [name for name in shapes if not name.isalnum()] == []
    titles = [shape["title"] for shape in shapes.values() if "title" in shape]
    assert sorted(titles) == sorted(set(titles))


def test_whatever_a_description_holds_is_text_on_the_page() -> None:
    document = create_app(None).openapi()  # type: ignore[arg-type]  # None describes the app
    hostile = "<script>alert(1)</script>&\"'"
    operation = document["paths"]["/api/knowledge"]["post"]
    operation["description"] = hostile
    document["paths"]["/<script>"] = {"get": {**operation, "parameters": [{"name": hostile, "in": "query"}]}}
    document["info"]["description"] = hostile
    assert "script" not in Page(reference_page(document)).tags


async def test_both_pages_need_a_token_where_the_description_does(tmp_path: Path) -> None:
    _, ada = create_token(tmp_path, {"user": ["ada"]})
    async with http_door(tokens=TokenBook(tokens_file(tmp_path))) as door:
        for path in ("/", "/docs", "/openapi.json"):
            refusal(await door.get(path), 401, "unauthenticated")
            assert (await door.get(path, headers=bearer(ada))).status_code == 200

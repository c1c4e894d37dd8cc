"""An item may have any id: its pages, links and changes work."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import pytest

from kledger import LedgerClient
from producers.web.addresses import local
from producers.web.rendering import item_page, page_of
from tests.journeys.running_node import RunningNode, running
from tests.web.test_item_page import revised, saved
from tests.web.visitor import Visitor, undone, visitor, words

ODD_IDS = (
    "a/b/c",
    "..",
    ".",
    "a..b",
    "../../etc",
    "-",
    "q?as_of=1&x#y",
    "100%",
    "%2e%2e",
    "数据库/迁移",
    "👍🏽",
    "a\\b",
    "<b>\"'",
    "semi;colon:at@plus+eq=",
    "a b",
    "👍" * 200,
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node without items: on the shared one, tests that draw ids by chance may have taken the odd ones."""
    with running(tmp_path_factory.mktemp("odd") / "data") as node:
        yield node


@pytest.fixture
def ledger(node: RunningNode) -> Iterator[LedgerClient]:
    with node.client() as client:
        yield client


@pytest.fixture
def ivo(node: RunningNode) -> Iterator[Visitor]:
    with visitor(node.url, user="ivo") as person:
        yield person


@pytest.mark.parametrize("name", ODD_IDS, ids=range(len(ODD_IDS)))
def test_an_id_may_hold_anything_and_links_and_changes_work(ledger: LedgerClient, ivo: Visitor, name: str) -> None:
    saved(ledger, name)
    page = ivo.get(item_page(name))
    assert page.status_code == 200, words(page.text)
    assert f"the task of {name}"[:100] in words(page.text)
    for show in ("versions", "verdicts", "lineage", "access", "revise"):
        address = item_page(name, show=show)
        assert address in unescape(page.text) or show == "revise"
        assert ivo.get(address).status_code == 200
    answer = ivo.post(item_page(name, "retire"), back=item_page(name))
    assert answer.url.path.startswith("/ui/items/")
    undone(ivo, answer.text)
    assert ledger.get(name)["status"] == "active"
    assert [each["change"] for each in ledger.history(name)["versions"]] == ["saved", "retired", "restored"]


@pytest.mark.parametrize("name", ["..", ".", "a..b", "//evil", "数" * 200, "👍" * 200])
def test_an_address_of_an_id_is_one_that_a_browser_leaves_as_it_is(name: str) -> None:
    for address in (item_page(name), item_page(name, "retire", as_of=7), page_of("traces", name)):
        assert local(address) == address
        path = address.partition("?")[0]
        assert not {part.lower().replace("%2e", ".") for part in path.split("/")} & {".", ".."}


def test_a_revision_keeps_a_scope_and_a_resource_that_hold_a_comma(ledger: LedgerClient, ivo: Visitor) -> None:
    scopes = ["user:ivo", "team:north, south", r"team:back\\slash"]
    saved(ledger, "with-commas", scopes=scopes)
    assert "Revised." in words(revised(ivo, "with-commas", content="Something else."))
    assert ledger.get("with-commas")["scopes"] == scopes
    revised(ivo, "with-commas", scopes=r"user:ivo, team:north\, south")
    assert ledger.get("with-commas")["scopes"] == ["user:ivo", "team:north, south"]

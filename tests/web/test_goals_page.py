"""Goals: listed page by page, each with what was put before its owner, as it is now; its owner's alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from producers.web.rendering import page_of
from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor, words


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with shared_node.client() as client:
        yield client


def test_goals_are_listed_page_by_page_and_each_leads_to_its_knowledge(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    gil = ledger.acting_as(user="gil").within(trace_id="gil-run", message_id="gil-said")
    gil.save("Tile the kiosk roof", "Slate first. <script>alert(1)</script>", ["plan"], id="gils-roof")
    for number in range(60):
        gil.focus(f"gil/{number}", f"Tile kiosk roof {number}.")
    gil.revise("gils-roof", content="Slate last.")
    gil.get("gils-roof")
    with visitor(shared_node.url, user="gil") as page:
        first = page.get("/ui/goals").text
        onward = re.search(r'rel="next" href="([^"]+)"', first)
        assert onward is not None
        shown = first + page.get(onward[1].replace("&amp;", "&")).text
        assert re.findall(r"kiosk roof (\d+)\.", shown) == [str(n) for n in reversed(range(60))]
        one = page.get(page_of("goals", "gil/59", owner="user:gil")).text
        assert all(text in words(one) for text in ("Tile kiosk roof 59.", "gil/59", "Slate last.", "version 2 now"))
        assert 'href="/ui/items/gils-roof"' in one
        assert 'href="/ui/traces/gil-run"' in one
        assert "<script>alert" not in one
        assert "All goals" in words(page.get("/ui/traces").text)
        assert page_of("goals", "gil/0", owner="user:gil") in page.get("/ui/traces/gil-run").text
    with visitor(shared_node.url, user="eve") as page:
        assert page.get(page_of("goals", "gil/59", owner="user:gil")).status_code == 404
        assert "kiosk" not in words(page.get("/ui/goals", owner="user:gil").text)


def test_the_operator_asks_whose_goals_are_meant(ledger: LedgerClient, shared_node: RunningNode) -> None:
    ledger.acting_as(agent="painter").focus("wall", "给墙刷漆")
    with visitor(shared_node.url) as page:
        assert "给墙刷漆" in words(page.get("/ui/goals", owner="agent:painter").text)
        assert "agent:nobody has no goal." in words(page.get("/ui/goals", owner="agent:nobody").text)

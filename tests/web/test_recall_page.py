"""What an agent was shown, word for word, also after it changed, for whom it was shown to alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from producers.web.rendering import item_page, page_of
from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor, words


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with shared_node.client() as client:
        yield client


def test_a_recall_says_what_was_served_then_and_what_changed_since(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    owner = ledger.acting_as(user="rosa").within(trace_id="rosas-trace")
    owner.save("The ferry of rosa", "It leaves at seven.", ["tool"], id="rosas-ferry")
    recalled = owner.search("the ferry of rosa", top_k=1)["recall_id"]
    owner.revise("rosas-ferry", content="It leaves at eight.")
    owner.get("rosas-ferry")
    assert recalled is not None
    with visitor(shared_node.url, user="rosa") as rosa:
        page = rosa.get(page_of("recalls", recalled)).text
        assert "It leaves at seven." in words(page)
        assert "changed since: version 2 now" in words(page)
        assert "at <del>seven</del><ins>eight</ins>" in page
        assert 'href="/ui/traces/rosas-trace"' in page
        listed = rosa.get(item_page("rosas-ferry", show="recalls")).text
        assert f'href="{page_of("recalls", recalled)}"' in listed
        assert "1 / 1" in words(listed)
        assert f'href="{page_of("recalls", recalled)}"' in rosa.get("/ui/recalls").text
    with visitor(shared_node.url, user="eve") as eve:
        answer = eve.get(page_of("recalls", recalled))
        assert answer.status_code == 404
        assert "ferry" not in answer.text
        assert "rosa" not in words(eve.get("/ui/recalls").text)


def test_to_look_at_a_recall_or_an_item_records_nothing(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="rosa")
    owner.save("The pier of rosa", "It is wet.", ["tool"], id="rosas-pier")
    recalled = str(owner.search("the pier of rosa", top_k=1)["recall_id"])
    owner.get("rosas-pier")
    before = ledger.status()["stream"]["head"]
    with visitor(shared_node.url, user="rosa") as rosa:
        for address in (page_of("recalls", recalled), item_page("rosas-pier"), item_page("rosas-pier", show="lineage")):
            assert rosa.get(address).status_code == 200
    assert ledger.status()["stream"]["head"] == before

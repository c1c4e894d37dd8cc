"""A model may choose before the ranking does; no search depends on it, and it is told of nothing that is not seen."""

from __future__ import annotations

from typing import Any

import pytest

from kledger import LedgerClient
from producers.operations.recall import routing
from tests.journeys.running_node import caught_up
from tests.openai_chat import ChatEndpoint


@pytest.fixture
def dragons(ledger: LedgerClient) -> list[str]:
    """Eight items that a search for dragons finds, and one that only ana may see."""
    ana = ledger.acting_as(user="ana")
    long = "Keep a dragon warm in winter, " + "and warmer still at night, " * 9
    ids = [f"dragon-{n}" for n in range(8)]
    for number, item in enumerate(ids):
        ana.save(f"{number}: {long}", "安静地。Quietly.", ["plan"], id=item, scopes=["public"])
    ana.save("Where my own dragon sleeps", "Under the stairs.", ["plan"], id="dragon-own", scopes=["user:ana"])
    caught_up(ledger)
    return ids


def search(ledger: LedgerClient, **about: Any) -> dict[str, Any]:
    return dict(ledger.search("how to keep a dragon warm", top_k=2, record=False, **about))


def test_a_model_chooses_among_what_the_caller_sees_and_the_ranking_orders_it(
    ledger: LedgerClient, chat: ChatEndpoint, dragons: list[str]
) -> None:
    bob, ana = ledger.acting_as(user="bob"), ledger.acting_as(user="ana")
    plain = search(bob)
    assert "routed" not in plain, "it is off unless it is asked for"
    chat.says({"ids": ["dragon-6", "unknown", "dragon-own", "dragon-6", "dragon-3"]}, to="keep a dragon warm")
    routed = search(bob, route=True)
    assert (routed["routed"], routed["reason"]) == (True, None)
    assert {hit["id"] for hit in routed["results"]} == {"dragon-3", "dragon-6"}
    asked = chat.asked[-1]
    assert asked.model == "small"
    assert "dragon-0 | plan | 0: Keep a dragon warm" in asked.text
    assert "No more than 4 ids." in asked.text
    assert "dragon-own" not in asked.text, "what bob may not see never leaves the node"
    assert "Quietly" not in asked.text, "nor does any content"
    assert max(len(line) for line in asked.text.splitlines() if line.startswith("dragon-")) < 125
    assert "dragon-own" in [hit["id"] for hit in search(ana, route=True)["results"]]


def test_a_model_that_picks_none_says_that_nothing_fits(
    ledger: LedgerClient, chat: ChatEndpoint, dragons: list[str]
) -> None:
    assert search(ledger)["results"], "the ranking alone finds some"
    chat.says({"ids": []}, to="keep a dragon warm")
    answer = search(ledger, route=True)
    assert (answer["routed"], answer["results"], answer["count"], answer["reason"]) == (True, [], 0, None)


def test_when_the_model_fails_or_is_slow_the_answer_is_the_default_one_and_says_so(
    ledger: LedgerClient, chat: ChatEndpoint, dragons: list[str]
) -> None:
    plain = search(ledger)["results"]
    chat.says("refuse: dragons", to="keep a dragon warm")
    for script, reason in (
        ("refuse: dragons", "model_refused"),
        ({"ids": ["nothing-of-this-name"]}, "named none of the items"),
    ):
        chat.says(script, to="keep a dragon warm")
        answer = search(ledger, route=True)
        assert (answer["routed"], answer["results"]) == (False, plain)
        assert reason in answer["reason"]
    chat.says({"ids": ["dragon-1"]}, to="keep a dragon warm")
    chat.held.clear()
    try:
        slow = search(ledger, route=True)
    finally:
        chat.held.set()
    assert (slow["routed"], slow["results"]) == (False, plain)
    assert f"within {routing.PATIENCE:g} s" in slow["reason"]
    few = ledger.search("how to keep a dragon warm", top_k=100, route=True, record=False)
    assert "nothing to choose among" in str(few["reason"])

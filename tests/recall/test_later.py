"""What was said later about one thing stands first in a search, a start and a focus, as it does in a recall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode
from tests.recall.people import somebody

SAID = [
    ("The parking deck of the mill opens at 7.", "The parking deck of the mill opens at 9 now, no longer at 7."),
    ("磨坊的停车场七点开门。", "磨坊的停车场改成九点开门了，不再是七点。"),
]
ASKED = ["When does the parking deck of the mill open?", "磨坊的停车场几点开门？"]


@pytest.fixture(params=range(len(SAID)), ids=["en", "zh"])
def told(request: pytest.FixtureRequest, node: RunningNode) -> Iterator[tuple[LedgerClient, str, str, str]]:
    """Somebody who said something and later something else, the ids of both, and a question."""
    earlier, later = SAID[request.param]
    with somebody(node) as ann:
        old = ann.remember(earlier, "semantic", id=f"old-{uuid4().hex[:8]}")["id"]
        ann.rate(old, "helpful", task="opening the deck")  # or the later one stands first by its freshness
        new = ann.remember(later, "semantic", id=f"new-{uuid4().hex[:8]}")["id"]
        yield ann, old, new, ASKED[request.param]


def in_order(results: list[dict[str, Any]], old: str, new: str) -> None:
    both = [item for item in results if item["id"] in (old, new)]
    assert [item["id"] for item in both] == [new, old]
    assert both[1]["later"] == new
    assert "later" not in both[0]


def test_a_search_puts_what_was_said_later_first_and_explains_that_order(told: tuple[Any, str, str, str]) -> None:
    ann, old, new, asked = told
    answer = ann.search(asked, explain=True)
    in_order(answer["results"], old, new)
    ranks = {each["id"]: each["rank"] for each in answer["explained"]["candidates"]}
    assert (ranks[new], ranks[old]) == (1, 2)
    in_order(ann.recall(asked)["results"], old, new)


def test_one_path_alone_is_shown_as_it_ranks(told: tuple[Any, str, str, str]) -> None:
    ann, old, new, asked = told
    by_words = ann.search(asked, path="keyword")["results"]
    assert [item["id"] for item in by_words] == [old, new]
    assert not any("later" in item for item in by_words)


@pytest.mark.parametrize("with_a_question", [True, False])
def test_a_start_puts_what_was_said_later_first_and_its_text_tells(
    told: tuple[Any, str, str, str], with_a_question: bool
) -> None:
    ann, old, new, asked = told
    start = ann.startup(asked if with_a_question else "")
    in_order(start["results"], old, new)
    assert start["prompt"].count("said earlier") == 1


def test_a_focus_puts_what_was_said_later_first(told: tuple[Any, str, str, str]) -> None:
    ann, old, new, asked = told
    goal = ann.focus(f"goal-{uuid4().hex[:8]}", asked)
    in_order(goal["metadata"]["items"], old, new)


def test_what_was_upheld_since_is_no_earlier_statement_and_what_harmed_still_is(
    told: tuple[Any, str, str, str],
) -> None:
    ann, old, new, asked = told
    ann.rate(old, "harmful", reason="it was closed")
    for results in (ann.search(asked)["results"], ann.startup(asked)["results"], ann.recall(asked)["results"]):
        in_order(results, old, new)
    ann.confirm(old)
    for answer in (ann.search(asked), ann.startup(asked), ann.recall(asked)):
        assert not any("later" in item for item in answer["results"])

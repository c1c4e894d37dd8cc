"""A reranker's order changes what is nearly equal, and nothing else: whatever it answers, no row is worse for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from consumers.recall.scores import CONTROLS, MOST_TEXTS, calibrated, echoes, raw_scores, with_controls
from projections.search.model_rerank import REACH, Place, rerank_factor, reranked
from tests.rerank_endpoint import (
    Scorer,
    all_on_the_worst,
    at_random,
    by_place,
    by_shared_words,
    constant,
    reversed_order,
)


def order(
    relevances: Sequence[float],
    scores: Sequence[float] | None,
    floor: float = 0.0,
    *,
    pinned: Collection[int] = (),
    matches: Sequence[float] | None = None,
) -> list[int]:
    places = [
        Place(relevance, 1.0 if matches is None else matches[at], at in pinned)
        for at, relevance in enumerate(relevances)
    ]
    return reranked(places, scores, floor)


def test_of_two_that_are_nearly_equal_the_better_scored_comes_first() -> None:
    assert order([1.0, 0.95, 0.2], [0.1, 0.9, 0.5]) == [1, 0, 2]


def test_without_scores_nothing_moves() -> None:
    assert order([1.0, 0.9, 0.8], None) == [0, 1, 2]
    assert order([1.0, 1.0, 1.0], [0.5, 0.5, 0.5]) == [0, 1, 2]


def test_a_clear_lead_is_never_lost() -> None:
    """Not with all that a score can do: (1 − REACH) of the leader against (1 + REACH) of the other."""
    just_clear = 0.999 * (1 - REACH) / (1 + REACH)
    assert order([1.0, just_clear], [0.0, 1.0]) == [0, 1]
    assert order([1.0, just_clear * 1.01], [0.0, 1.0]) == [1, 0]


def test_a_pinned_result_keeps_its_place_and_none_passes_it() -> None:
    assert order([1.0, 0.99, 0.98, 0.97], [0.0, 0.5, 0.6, 1.0], pinned={1}) == [0, 1, 3, 2]


def test_none_below_the_floor_passes_one_above_it() -> None:
    assert order([1.0, 0.99, 0.98], [0.0, 1.0, 0.5], floor=0.5, matches=[0.6, 0.4, 0.7]) == [0, 1, 2]
    assert order([1.0, 0.99], [0.0, 1.0], floor=0.5, matches=[0.4, 0.6]) == [1, 0]


def test_results_beyond_the_scored_ones_stay_behind_them() -> None:
    assert order([1.0, 0.99, 0.98, 0.97], [0.0, 1.0]) == [1, 0, 2, 3]


@pytest.mark.parametrize("seed", range(50))
def test_whatever_the_scores_no_result_is_lost_and_pinned_ones_stay(seed: int) -> None:
    drawn = random.Random(seed)
    count = drawn.randint(0, 30)
    relevances = sorted((drawn.random() for _ in range(count)), reverse=True)
    places = [Place(each, drawn.random(), drawn.random() < 0.2) for each in relevances]
    after = reranked(places, [drawn.uniform(-5, 5) for _ in range(drawn.randint(0, 30))], floor=0.5)
    assert sorted(after) == list(range(count))
    assert all(after[at] == at for at, place in enumerate(places) if place.pinned)
    for at, index in enumerate(after):
        for later in after[at + 1 :]:
            if later < index:  # it was passed
                assert relevances[index] * (1 + REACH) >= relevances[later] * (1 - REACH)
                assert not places[index].match < 0.5 <= places[later].match


def test_the_factor_is_bounded() -> None:
    assert rerank_factor(None) == rerank_factor(0.5) == 1.0
    assert rerank_factor(7.0) == 1 + REACH
    assert rerank_factor(-7.0) == 1 - REACH


def test_texts_are_scored_between_unrelated_ones_and_the_query_itself() -> None:
    texts = ["roll back a deployment", "deployment", "warm milk"]
    asked = with_controls("roll back deployment", texts)
    scores = calibrated(by_shared_words("roll back deployment", asked), 3)
    assert scores == [pytest.approx(1.0), pytest.approx(1 / 3), 0.0]
    shifted = [1000 * score - 400 for score in by_shared_words("roll back deployment", asked)]
    assert calibrated(shifted, 3) == pytest.approx(scores), "whatever the endpoint's own scale is"


def test_one_request_is_no_larger_than_tei_takes() -> None:
    assert len(with_controls("q", ["t"] * MOST_TEXTS)) == 32


@pytest.mark.parametrize("scorer", [constant, reversed_order, all_on_the_worst, by_place])
@pytest.mark.parametrize("query", ["roll back a deployment", "怎么修那个登录的 bug", "milk"])
@pytest.mark.parametrize("count", [2, 3, 7, 20])
def test_an_order_that_is_none_is_not_heard(scorer: Scorer, query: str, count: int) -> None:
    texts = [f"how to roll back number {n} 登录" for n in range(count)]
    asked = with_controls(query, texts)
    scores = scorer(query, asked)
    assert calibrated(scores, count) is None
    assert calibrated([1 - score for score in by_place(query, asked)], count) is None


def test_of_random_orders_hardly_any_is_heard() -> None:
    heard = sum(
        calibrated(at_random(f"query {n}", with_controls(f"query {n}", ["a", "b", "c"])), 3) is not None
        for n in range(4_000)
    )
    assert heard <= 16  # one of 792 is expected: 5


def test_of_an_answer_what_cannot_be_is_passed_over() -> None:
    good = {"index": 0, "relevance_score": 0.5}
    rows = [
        good,
        {"index": 0, "relevance_score": 0.9},
        {"index": 7, "relevance_score": 0.9},
        {"index": -1, "relevance_score": 0.9},
        {"index": True, "relevance_score": 0.9},
        {"index": 1.0, "relevance_score": 0.9},
        {"index": 1, "relevance_score": float("nan")},
        {"index": 1, "relevance_score": float("inf")},
        {"index": 1, "relevance_score": "0.9"},
        {"index": 1, "relevance_score": True},
        {"index": 1},
        "text",
        None,
    ]
    assert raw_scores({"results": rows}, 2) == [0.5, None]
    assert raw_scores([{"index": 1, "score": 2}], 2) == [None, 2.0]
    documents: list[Any] = [None, 7, "x", {}, {"results": 7}, {"results": {"index": 0}}, []]
    for document in documents:
        assert raw_scores(document, 1) == [None]


@dataclass(frozen=True)
class Row:
    """Results of one query as a first ranking gives them; one of them is relevant."""

    query: str
    texts: list[str]
    relevances: list[float]
    relevant: int


def rows() -> list[Row]:
    """Seeded queries whose relevant result stands first, or among what is nearly equal to the first."""
    drawn = random.Random(16)
    words = [f"word{n}" for n in range(400)]
    made = []
    for _ in range(300):
        wanted = drawn.sample(words, 6)
        relevant = min(int(drawn.expovariate(0.6)), 9)
        texts = [" ".join([*drawn.sample(wanted, 2), *drawn.sample(words, 6)]) for _ in range(10)]
        texts[relevant] = " ".join([*drawn.sample(wanted, 5), *drawn.sample(words, 3)])
        relevances = sorted((drawn.uniform(0.7, 1.0) for _ in range(10)), reverse=True)
        made.append(Row(" ".join(wanted), texts, relevances, relevant))
    return made


def figures(scored: Callable[[Row], list[float] | None]) -> tuple[float, float, float]:
    """R@1, R@5 and MRR@10 of the rows."""
    places = [reranked([Place(each) for each in row.relevances], scored(row)).index(row.relevant) + 1 for row in rows()]
    return (
        sum(place == 1 for place in places) / len(places),
        sum(place <= 5 for place in places) / len(places),
        sum(1 / place for place in places) / len(places),
    )


def heard(scorer: Scorer) -> Callable[[Row], list[float] | None]:
    return lambda row: calibrated(scorer(row.query, with_controls(row.query, row.texts)), len(row.texts))


def unheard(_row: Row) -> None:
    """Without a reranker."""


def test_a_good_reranker_makes_the_rows_better() -> None:
    first, within_five, rank = figures(heard(by_shared_words))
    without = figures(unheard)
    assert first > without[0] + 0.1
    assert within_five >= without[1]
    assert rank > without[2] + 0.1


@pytest.mark.parametrize("scorer", [constant, at_random, reversed_order, all_on_the_worst, by_place])
def test_with_a_useless_or_hostile_one_no_figure_is_worse(scorer: Scorer) -> None:
    without = figures(unheard)
    assert all(after >= before for after, before in zip(figures(heard(scorer)), without, strict=True))


def test_no_echo_is_a_control_text() -> None:
    assert not set(echoes("How are you?")) & set(CONTROLS)
    assert len(set(echoes("x"))) == len(echoes("x"))

"""What the caller gets, and in which order: fusion, quality, scope priority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from projections.search.ranking import (
    Candidate,
    Ranked,
    Standing,
    by_worth,
    freshness,
    fuse,
    quality,
    strongest_scope,
)
from tests.search.ranked import rank

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def standing(item_id: str, score: float = 3, helpful: int = 1, harmful: int = 0, *scopes: str) -> Standing:
    return Standing(item_id, score, helpful, harmful, scopes or ("public",), NOW)


def standings(*rows: Standing) -> dict[str, Standing]:
    return {row.item_id: row for row in rows}


def order(results: list[Ranked]) -> list[str]:
    return [each.item_id for each in results]


def test_the_best_keyword_score_counts_as_one() -> None:
    fused = fuse([Candidate("a", 1, keyword=40.0), Candidate("b", 2, keyword=10.0)])
    assert [(each.candidate.item_id, each.relevance) for each in fused] == [("a", 1.0), ("b", 0.25)]


def test_a_cosine_is_added_by_its_weight() -> None:
    fused = fuse([Candidate("a", 1, keyword=10.0, vector=0.5)], vector_weight=0.3)
    assert fused[0].relevance == pytest.approx(1.15)


def test_without_keywords_the_vectors_decide() -> None:
    fused = fuse([Candidate("a", 1, vector=0.2), Candidate("b", 2, vector=0.6)])
    assert [each.candidate.item_id for each in fused] == ["b", "a"]


def test_what_the_vector_path_did_not_find_counts_as_its_last_one() -> None:
    found = [Candidate("a", 1, keyword=10.0), Candidate("b", 2, keyword=9.9, vector=0.3), Candidate("c", 3, vector=0.8)]
    relevances = {each.candidate.item_id: each.relevance for each in fuse(found, vector_weight=0.3)}
    assert relevances["a"] == pytest.approx(1.09)
    assert relevances["a"] > relevances["b"] > relevances["c"]


def test_a_recent_item_that_no_path_found_stands_behind_one_that_matches() -> None:
    fused = fuse([Candidate("new", 9, recency=1.0), Candidate("match", 1, keyword=1.0)])
    assert [each.candidate.item_id for each in fused] == ["match", "new"]


def test_of_two_equal_matches_the_fresher_comes_first() -> None:
    pair = [Candidate("old", 1, keyword=5.0, recency=0.1), Candidate("new", 9, keyword=5.0, recency=0.9)]
    assert [each.candidate.item_id for each in fuse(pair)] == ["new", "old"]


def test_equal_recency_never_changes_an_order() -> None:
    plain = [Candidate(str(n), n, keyword=10.0 - n, vector=n / 20) for n in range(10)]
    recent = [Candidate(c.item_id, c.version_position, c.keyword, c.vector, 0.7) for c in plain]
    assert [e.candidate.item_id for e in fuse(plain)] == [e.candidate.item_id for e in fuse(recent)]


def test_rank_fusion_is_there_when_asked_for() -> None:
    fused = fuse(
        [Candidate("a", 1, keyword=9.0), Candidate("b", 2, keyword=8.0, vector=0.1), Candidate("c", 3, vector=0.9)],
        fusion="rrf",
    )
    assert [each.candidate.item_id for each in fused] == ["b", "a", "c"]
    assert fused[0].relevance == pytest.approx(2 / 62)


def test_nothing_found_fuses_to_nothing() -> None:
    assert fuse([]) == []
    assert rank([], {}, ["public"], top_k=5) == []


@pytest.mark.parametrize(
    ("score", "helpful", "harmful", "worth"), [(3, 1, 0, 4), (3, 1, 2, 0), (5, 10, 1, 13), (1, 0, 1, -1)]
)
def test_quality_is_score_plus_helpful_minus_twice_harmful(
    score: float, helpful: int, harmful: int, worth: float
) -> None:
    assert quality(score, helpful, harmful) == worth


def test_what_turned_harmful_is_left_out_and_what_stands_at_zero_stays() -> None:
    rows = standings(standing("bad", 3, 0, 2), standing("even", 3, 1, 2))
    found = rank([Candidate("bad", 1, keyword=9.0), Candidate("even", 2, keyword=1.0)], rows, ["public"], top_k=5)
    assert order(found) == ["even"]


def test_a_score_below_the_minimum_is_left_out_and_one_at_it_stays() -> None:
    rows = standings(standing("two", 2, 50), standing("three", 3, 0))
    both = [Candidate("two", 1, keyword=9.0), Candidate("three", 2, keyword=1.0)]
    assert order(rank(both, rows, ["public"], top_k=5, min_score=3)) == ["three"]


def test_an_item_that_the_view_does_not_know_is_left_out() -> None:
    assert rank([Candidate("gone", 1, keyword=9.0)], {}, ["public"], top_k=5) == []


def test_an_item_without_a_scope_that_the_caller_sees_is_left_out() -> None:
    rows = standings(standing("hers", 3, 1, 0, "user:ann"))
    assert rank([Candidate("hers", 1, keyword=9.0)], rows, ["user:bob", "public"], top_k=5) == []


def test_an_owner_gets_what_no_scope_of_theirs_reads() -> None:
    kept = {"mine": Standing("mine", 3, 0, 0, ("org:elsewhere",), NOW, "agent:me")}
    found = [Candidate("mine", 1, keyword=5.0)]
    assert order(rank(found, kept, ["public", "agent:me"], top_k=5)) == ["mine"]
    assert rank(found, kept, ["public", "agent:other"], top_k=5) == []


def test_results_come_in_the_order_of_scope_priority() -> None:
    kinds = ["public", "org:o", "team:t", "agent:a", "project:p", "user:u"]
    rows = standings(*(standing(kind, 3, 1, 0, kind) for kind in kinds))
    found = rank([Candidate(kind, 1, keyword=9.0 - n) for n, kind in enumerate(kinds)], rows, kinds, top_k=6)
    assert order(found) == ["user:u", "project:p", "agent:a", "team:t", "org:o", "public"]


def test_the_strongest_scope_is_taken_among_those_the_caller_sees() -> None:
    assert strongest_scope(["public", "user:ann", "team:red"], ["public", "team:red"]) == "team:red"
    assert strongest_scope(["user:ann"], ["public"]) is None


def test_within_a_scope_relevance_decides() -> None:
    rows = standings(standing("a"), standing("b"), standing("c"))
    found = rank(
        [Candidate(i, 1, keyword=k) for i, k in (("a", 2.0), ("b", 9.0), ("c", 5.0))], rows, ["public"], top_k=9
    )
    assert order(found) == ["b", "c", "a"]


def test_a_specific_but_irrelevant_item_does_not_push_out_a_relevant_one() -> None:
    rows = standings(standing("match"), standing("mine", 3, 1, 0, "user:ann"))
    both = [Candidate("match", 1, keyword=9.0), Candidate("mine", 2, keyword=0.1)]
    assert order(rank(both, rows, ["user:ann", "public"], top_k=1)) == ["match"]


def test_quality_decides_between_matches_that_are_nearly_equal() -> None:
    rows = standings(standing("plain"), standing("proven", 5, 20))
    pair = [Candidate("plain", 1, keyword=10.0), Candidate("proven", 2, keyword=9.8)]
    assert order(rank(pair, rows, ["public"], top_k=2)) == ["proven", "plain"]


def test_no_quality_lifts_an_item_over_a_clearly_better_match() -> None:
    rows = standings(standing("plain", 3, 0), standing("famous", 5, 1_000_000))
    pair = [Candidate("plain", 1, keyword=10.0), Candidate("famous", 2, keyword=8.0)]
    assert order(rank(pair, rows, ["public"], top_k=2)) == ["plain", "famous"]


def test_equal_quality_keeps_the_order_of_relevance() -> None:
    results = [Ranked(str(n), n, 1 - n / 1000, 7.0, "public", Candidate(str(n), n)) for n in range(50)]
    assert by_worth(results) == results


def test_freshness_halves_with_each_half_life() -> None:
    assert freshness(NOW, NOW) == 1.0
    assert freshness(NOW - timedelta(days=30), NOW) == pytest.approx(0.5)
    assert freshness(NOW - timedelta(days=60), NOW) == pytest.approx(0.25)
    assert freshness(NOW + timedelta(days=3), NOW) == 1.0

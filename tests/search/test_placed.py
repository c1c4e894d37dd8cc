"""A result that its scope alone puts before a far more relevant one says so."""

from __future__ import annotations

from datetime import UTC, datetime

from projections.search.placed import FAR, placed_by_scope
from projections.search.ranking import Candidate, Ranked, Standing
from tests.search.ranked import rank

NOW = datetime(2026, 3, 5, tzinfo=UTC)


def results(*items: tuple[str, str, float]) -> list[Ranked]:
    """What a caller gets of items (id, scope, keyword score)."""
    candidates = [Candidate(name, at, keyword=score) for at, (name, _, score) in enumerate(items, 1)]
    standings = {name: Standing(name, 3, 1, 0, [scope], NOW) for name, scope, _ in items}
    return rank(candidates, standings, [scope for _, scope, _ in items], top_k=9)


def test_why_names_the_scope_that_puts_an_item_before_a_far_more_relevant_one() -> None:
    ordered = results(("near", "public", 13.0), ("far", "user:ann", 0.9), ("between", "team:web", 12.0))
    assert [each.item_id for each in ordered] == ["far", "between", "near"], "the order by scope stays"
    why = placed_by_scope(ordered)
    assert set(why) == {"far"}
    assert "user:ann" in why["far"]
    assert "near" in why["far"]


def test_nothing_is_said_of_an_item_that_is_nearly_as_relevant_or_stands_by_relevance_alone() -> None:
    assert placed_by_scope(results(("a", "public", 1.0), ("b", "user:ann", FAR + 0.01))) == {}
    assert placed_by_scope(results(("a", "public", 1.0), ("b", "public", 0.01))) == {}
    assert placed_by_scope([]) == {}

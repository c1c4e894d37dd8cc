"""Out of which candidates is an answer made? The first pool is the same, however many results are asked for."""

from __future__ import annotations

import pytest

from projections.search.pools import LEAST_CANDIDATES, pool, pool_sizes
from projections.vectors.port import Found


def found(number: int, keyword: float | None, vector: float | None) -> Found:
    return Found(item_id=f"k{number}", version=1, valid_from=number, keyword=keyword, vector=vector)


def test_ten_results_are_made_of_twenty_candidates_a_path_and_more_of_twice_as_many() -> None:
    assert pool_sizes(1) == pool_sizes(10) == [LEAST_CANDIDATES]
    assert pool_sizes(11) == pool_sizes(20) == [20, 40]
    assert pool_sizes(100) == [20, 40, 80, 160, 320]


@pytest.mark.parametrize("few", [1, 10, 25, 60])
def test_the_pools_of_a_smaller_question_are_the_first_of_a_larger_one(few: int) -> None:
    sizes = pool_sizes(few)
    assert pool_sizes(100)[: len(sizes)] == sizes


def test_a_pool_has_the_first_of_each_path_with_the_scores_of_those_paths_alone() -> None:
    hits = [found(1, 9.0, None), found(2, 8.0, 0.1), found(3, 7.0, 0.9), found(4, None, 0.8)]
    assert pool(hits, 2) == {1: (9.0, None), 2: (8.0, None), 3: (None, 0.9), 4: (None, 0.8)}
    assert pool(hits, 4) == {1: (9.0, None), 2: (8.0, 0.1), 3: (7.0, 0.9), 4: (None, 0.8)}


def test_equal_scores_are_cut_by_age() -> None:
    assert set(pool([found(n, 1.0, None) for n in (5, 3, 4, 1)], 2)) == {1, 3}

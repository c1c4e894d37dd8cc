"""What further queries find joins the first answer, and never makes it worse."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from projections.search.asked_differently import CLEARLY, TRUST, Hit, joined, stays_with

FLOOR = 0.5


def hits(*pairs: tuple[str, float]) -> list[Hit[str]]:
    return [Hit(name, match, f"text of {name}") for name, match in pairs]


def ids(found: Sequence[Hit[str]]) -> list[str]:
    return [hit.id for hit in found]


def test_one_text_that_covers_a_part_of_the_question_stands_for_all_of_an_answer() -> None:
    question = "怎么修那个登录的 bug"
    assert stays_with(question, ["用户认证错误排查", "登录页面 bug 修复方案"])
    assert stays_with("how can I undo my last commit", ["撤销上一次提交", "git undo last commit keep changes"])
    assert not stays_with(question, ["用户认证错误排查", "login authentication error fix"])
    assert not stays_with("Who won the chess match between Spassky and Fischer?", ["who won the last Tour de France"])
    assert not stays_with("How do I fix it?", ["", "!", "bread"])


def test_what_the_first_query_found_for_sure_stays_where_it_is() -> None:
    first = hits(("a", 0.6), ("b", 0.2))
    assert ids(joined(first, [hits(("c", 1.0)), hits(("d", 0.9))], FLOOR)) == ["a", "c", "d", "b"]
    between = hits(("a", 0.2), ("b", 0.6), ("c", 0.1))
    assert ids(joined(between, [hits(("d", 1.0))], FLOOR)) == ["a", "b", "d", "c"]


def test_a_further_result_needs_the_floor_with_less_trust_than_the_callers_own_words() -> None:
    just_below = FLOOR / TRUST - 0.01
    first = hits(("a", 0.1))
    assert ids(joined(first, [hits(("c", just_below))], FLOOR)) == ["a"]
    (best, *_) = joined(first, [hits(("c", just_below + 0.02))], FLOOR)
    assert best.id == "c"
    assert best.match == pytest.approx(TRUST * (just_below + 0.02))


def test_a_further_result_comes_first_only_where_it_is_clearly_better() -> None:
    almost = (FLOOR - 0.01 + CLEARLY) / TRUST - 0.02
    assert ids(joined(hits(("a", FLOOR - 0.01)), [hits(("c", almost))], FLOOR)) == ["a", "c"]
    assert ids(joined(hits(("a", FLOOR - 0.01)), [hits(("c", almost + 0.04))], FLOOR)) == ["c", "a"]


def test_an_item_that_both_found_stands_once_with_the_better_match() -> None:
    first = hits(("a", 0.3), ("b", 0.2))
    found = joined(first, [hits(("b", 0.8), ("a", 0.1)), hits(("b", 1.0))], FLOOR)
    assert ids(found) == ["b", "a"]
    assert found[0].match == pytest.approx(TRUST)
    sure = joined(hits(("a", 0.6)), [hits(("a", 1.0))], FLOOR)
    assert [(hit.id, hit.match) for hit in sure] == [("a", 0.6)]


def test_nothing_further_changes_nothing() -> None:
    first = hits(("a", 0.3), ("b", 0.7), ("c", 0.2))
    assert joined(first, [], FLOOR) == first
    assert joined(first, [[], hits(("x", 0.3))], FLOOR) == first
    assert ids(joined([], [hits(("x", 0.9), ("y", 1.0))], FLOOR)) == ["y", "x"]


def test_where_every_result_counts_none_is_displaced() -> None:
    """With a floor of 0 the first answer is whole, and what is further comes after it."""
    first = hits(("a", 0.3), ("b", 0.0))
    assert ids(joined(first, [hits(("x", 1.0))], 0.0)) == ["a", "b", "x"]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_found_further_no_sure_result_loses_its_place(seed: int) -> None:
    """With a further match of any height, for any item: what a hostile rewriting can do at most."""
    drawn = random.Random(seed)
    names = [f"i{n}" for n in range(20)]
    first = [Hit(name, drawn.random(), name) for name in drawn.sample(names, drawn.randint(0, 10))]
    further = [
        [
            Hit(name, drawn.choice([drawn.random(), 1.0, 7.0]), name)
            for name in drawn.sample(names, drawn.randint(0, 10))
        ]
        for _ in range(drawn.randint(0, 4))
    ]
    found = joined(first, further, FLOOR)
    assert len({hit.id for hit in found}) == len(found)
    assert {hit.id for hit in first} <= {hit.id for hit in found}
    for at, hit in enumerate(first):
        if hit.match >= FLOOR:
            assert found[at] == hit
    shown, before = [hit.id for hit in found if hit.match >= FLOOR], [hit.id for hit in first if hit.match >= FLOOR]
    assert set(before) <= set(shown), "what a recall shows without is shown with it"
    assert all(0.0 <= hit.match <= 1.0 for hit in found)


def rank(found: Sequence[Hit[str]], wanted: str, floor: float, most: int = 5) -> float:
    """1 / the place of the wanted item among what a recall shows; 0 where it is not."""
    shown = [hit.id for hit in found if hit.match >= floor][:most]
    return 1 / (shown.index(wanted) + 1) if wanted in shown else 0.0


@pytest.mark.parametrize("floor", [0.0, FLOOR])
def test_rows_get_better_with_good_queries_and_no_row_worse_with_useless_and_hostile_ones(floor: float) -> None:
    """Row by row: of 300 seeded questions, the place of the wanted item among the five that are shown."""
    drawn = random.Random(16)
    better = 0
    for _ in range(300):
        names = [f"i{n}" for n in range(12)]
        wanted = drawn.choice(names)
        order = drawn.sample(names, 8)
        first = [
            Hit(name, match, name)
            for name, match in zip(order, sorted((drawn.random() for _ in order), reverse=True), strict=True)
        ]
        without = rank(first, wanted, floor)
        worst = [name for name in names if name != wanted]
        good = [hits((wanted, 0.95), *((name, drawn.uniform(0, 0.6)) for name in worst[:5]))]
        useless = [hits(*((name, drawn.uniform(0, 0.4)) for name in names)), []]
        hostile = [hits(*((name, 1.0) for name in worst)), hits((worst[0], 1.0))]
        assert rank(joined(first, useless, floor), wanted, floor) >= without
        assert rank(joined(first, good, floor), wanted, floor) >= without
        better += rank(joined(first, good, floor), wanted, floor) > without
        if without:
            assert rank(joined(first, hostile, floor), wanted, floor) >= without
    assert better > 60 or floor == 0.0

"""A search reads the passages that it needs to tell its results, many in one step, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.recall import LeftOut
from projections.search import remembered
from projections.search.ask import enough_read
from projections.search.match import Matches, Passages, covered, passages, passages_of, weighed
from projections.search.ranking import Candidate, Ranked, cut, with_a_sure_one
from projections.search.remembered import READ_AT_ONCE, read_passages

WORDS = ("lamp", "glaze", "kiln", "river", "stone", "bridge")


def result(number: int) -> Ranked:
    return Ranked(str(number), number, 1 - number / 1000, 7.0, "public", Candidate(str(number), number))


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 8))
def test_what_is_cut_is_the_same_as_of_all_that_could_be_read_and_no_more_is_read_than_it_takes(
    fits: list[bool], top_k: int
) -> None:
    considered = [result(number) for number in range(len(fits))]
    read: list[int] = []

    async def read_of(results: Sequence[Ranked]) -> None:
        read.extend(each.version_position for each in results)

    def why_not(each: Ranked) -> LeftOut | None:
        return None if fits[each.version_position] else "min_match"

    def of_those_read(each: Ranked) -> LeftOut | None:
        assert each.version_position in read
        return why_not(each)

    asyncio.run(enough_read(considered, of_those_read, read_of, top_k))
    assert cut(considered, of_those_read, top_k=top_k) == cut(considered, why_not, top_k=top_k)
    wanted = [number for number, fit in enumerate(fits) if fit][:top_k]
    assert read == list(range(wanted[-1] + 1 if len(wanted) == top_k else len(fits)))


@given(st.lists(st.sampled_from(["no", "weak", "sure"]), max_size=40), st.integers(1, 8))
def test_one_of_what_is_told_is_sure_and_where_none_is_nothing_is_told(kinds: list[str], top_k: int) -> None:
    considered = [result(number) for number in range(len(kinds))]
    read: list[int] = []

    async def read_of(results: Sequence[Ranked]) -> None:
        read.extend(each.version_position for each in results)

    def is_(each: Ranked, *wanted: str) -> bool:
        assert each.version_position in read
        return kinds[each.version_position] in wanted

    def why_not(each: Ranked) -> LeftOut | None:
        return None if is_(each, "weak", "sure") else "min_match"

    looked_at = asyncio.run(enough_read(considered, why_not, read_of, top_k, lambda each: is_(each, "sure")))
    fit = [each for each in looked_at if why_not(each) is None]
    told = with_a_sure_one(fit, lambda each: is_(each, "sure"), top_k)
    numbers = [each.version_position for each in told]
    every = [number for number, kind in enumerate(kinds) if kind != "no"]
    sure = [number for number in every if kinds[number] == "sure"]
    if not sure:
        assert numbers == []
    elif sure[0] in every[:top_k]:
        assert numbers == every[:top_k]
    else:
        assert numbers == [*every[: top_k - 1], sure[0]]
    assert len(read) == len(set(read))


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=8), st.data())
def test_matches_of_what_is_read_step_by_step_are_those_of_each_alone(
    texts: list[list[str]], data: st.DataObject
) -> None:
    query, read = weighed("lamp by the river"), dict[str, Passages]()
    matches = Matches(query, read, lambda _: None, meaning=False)
    for number, words in enumerate(texts):
        read[str(number)] = passages("", " ".join(words))
        asked = str(data.draw(st.integers(0, number)))
        assert matches.of(asked, None) == round(covered(query, read[asked]), 4)


@pytest.mark.parametrize(
    ("sizes", "steps"),
    [
        ([300] * 5, [5]),
        ([300] * 100, [33, 33, 33, 1]),
        ([READ_AT_ONCE * 2, 10, 10], [1, 2]),
        ([10, READ_AT_ONCE * 2, 10], [1, 1, 1]),
        ([], []),
    ],
    ids=["few", "many", "a long one first", "a long one among others", "none"],
)
async def test_many_texts_are_read_in_few_steps_and_a_long_one_alone(
    sizes: list[int], steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def reading(items: Iterable[tuple[str, str]]) -> list[Passages]:
        given = list(items)
        taken.append(len(given))
        return passages_of(given)

    monkeypatch.setattr(remembered, "passages_of", reading)
    texts = {at: ("", (f"{WORDS[at % len(WORDS)]} number{at} " * size)[:size]) for at, size in enumerate(sizes)}
    read = await read_passages(
        {at: {"task": task, "content": said} for at, (task, said) in texts.items()}, asyncio.Lock()
    )
    assert taken == steps
    assert list(read) == list(texts)
    for at, text in texts.items():
        assert all((one == other).all() for one, other in zip(read[at], passages(*text), strict=True))

"""An explanation of a search has the very numbers that ranked: whoever orders by them gets the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger import LedgerClient
from kledger.answers.explained import MOST_EXPLAINED, ExplainedCandidate, SearchExplained
from kledger.answers.knowledge import SearchResults
from kledger.contract.recall import LeftOut
from kledger.contract.scopes import PRIORITY
from projections.search import ranking
from projections.search.explained import chosen_of, explained
from projections.search.ranking import Candidate, Ranked, Standing, cut, ordered, unfit
from tests.journeys.running_node import caught_up, head, running
from tests.recall.people import new_number, somebody

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SCOPES = ("public", "org:o", "team:t", "agent:a", "project:p", "user:u")
_scores = st.none() | st.floats(0, 50)


@st.composite
def searches(draw: st.DrawFn) -> tuple[list[Candidate], dict[str, Standing], dict[str, list[tuple[str, bool]]]]:
    """Candidates of a search with their standings, some of them hidden, and what stands beside what."""
    ids = [f"k{n}" for n in range(draw(st.integers(0, 14)))]
    candidates = [
        Candidate(each, n, draw(_scores), draw(st.none() | st.floats(-1, 1)), draw(st.floats(0, 1)))
        for n, each in enumerate(ids)
    ]
    standings = {
        each: Standing(
            each,
            draw(st.integers(1, 5)),
            draw(st.integers(0, 9)),
            draw(st.integers(0, 4)),
            [draw(st.sampled_from([*SCOPES, "user:hidden"]))],
            NOW,
        )
        for each in ids
    }
    names = st.tuples(st.sampled_from(ids), st.booleans()) if ids else st.nothing()
    beside = {each: draw(st.lists(names, max_size=2)) for each in ids if draw(st.booleans())}
    return candidates, standings, beside


def answered_by(told: SearchExplained, top_k: int) -> list[str]:
    """The answer, made of the explained numbers alone."""
    fit = [each for each in told["candidates"] if each["left_out"] in (None, "beyond_top_k")]
    best = sorted(fit, key=lambda each: -each["worth"])[:top_k]
    return [each["id"] for each in sorted(best, key=lambda each: -each["scope_priority"])]


def adds_up(each: ExplainedCandidate) -> None:
    """The factors make the relevance, and with the quality the worth, to the last digit."""
    factors = each["factors"]
    assert factors["keyword"] + factors["vector"] + factors["recency"] + factors["lent"] == each["relevance"]
    assert each["relevance"] * factors["quality"] == each["worth"]
    assert (each["lent"] > 0) == (each["beside"] is not None)
    assert (each["rank"] is None) == (each["left_out"] is not None)


@settings(max_examples=150, deadline=None)
@given(search=searches(), top_k=st.integers(1, 8), min_score=st.integers(0, 4), matches=st.lists(st.floats(0, 1)))
def test_ordering_by_the_explained_numbers_gives_the_answer(
    search: tuple[list[Candidate], dict[str, Standing], dict[str, list[tuple[str, bool]]]],
    top_k: int,
    min_score: int,
    matches: list[float],
) -> None:
    candidates, standings, beside = search
    match_of = dict(zip(standings, [*matches, *[1.0] * len(standings)], strict=False))

    def why_not(each: Ranked) -> LeftOut | None:
        fault = unfit(standings[each.item_id], min_score)
        return fault or ("min_match" if match_of[each.item_id] < 0.5 else None)

    considered = ordered(candidates, standings, SCOPES, beside=beside)
    results = cut(considered, why_not, top_k=top_k)
    told = explained(
        considered,
        results,
        why_not=why_not,
        match_of=lambda each: match_of[each.item_id],
        shown=lambda item_id: {"task": item_id, "version": 1},
        priority=PRIORITY,
        vector_weight=0.3,
        policy="p",
    )
    assert answered_by(told, top_k) == [each.item_id for each in results]
    assert [each["worth"] for each in told["candidates"]] == sorted(
        (e["worth"] for e in told["candidates"]), reverse=True
    )
    for each in told["candidates"]:
        adds_up(each)
        standing = standings[each["id"]]
        assert "user:hidden" not in standing.scopes
        assert (each["left_out"] == "min_score") == (standing.score < min_score)
        if each["left_out"] == "min_match":
            assert each["match"] < 0.5
    ranks = {each["rank"]: each["id"] for each in told["candidates"] if each["rank"] is not None}
    assert [ranks[rank] for rank in sorted(ranks)] == [each.item_id for each in results]
    for path in ("keyword", "vector"):
        places = told["paths"][path]
        assert {place["id"] for place in places} == {e["id"] for e in told["candidates"] if e[path] is not None}
        assert [place["rank"] for place in places] == list(range(1, len(places) + 1))
        assert [place["score"] for place in places] == sorted((place["score"] for place in places), reverse=True)


def test_of_many_candidates_the_answer_and_the_best_others_are_explained() -> None:
    many = [Candidate(f"k{n}", n, keyword=float(n)) for n in range(2 * MOST_EXPLAINED)]
    standings = {each.item_id: Standing(each.item_id, 3, 1, 0, ["public"], NOW) for each in many}
    considered = ordered(many, standings, ["public"])
    last = cut(considered, lambda each: None if each.item_id in ("k1", "k2") else "min_match", top_k=5)
    told = explained(
        considered, last, why_not=lambda _: "min_match", match_of=lambda _: 0.1, priority=PRIORITY,
        shown=lambda item_id: {"task": item_id, "version": 1}, vector_weight=0.3, policy="p",
    )  # fmt: skip
    assert (len(told["candidates"]), told["considered"]) == (MOST_EXPLAINED, 2 * MOST_EXPLAINED)
    assert [(each["id"], each["rank"]) for each in told["candidates"][-2:]] == [("k2", 1), ("k1", 2)]
    assert all(len(told["paths"][path]) <= MOST_EXPLAINED for path in ("keyword", "vector", "recency"))


def test_what_a_model_did_not_choose_is_told_from_what_was_too_many() -> None:
    both = [Candidate("a", 1, keyword=9.0), Candidate("b", 2, keyword=8.0), Candidate("c", 3, keyword=7.0)]
    standings = {each.item_id: Standing(each.item_id, 3, 1, 0, ["public"], NOW) for each in both}
    considered = ordered(both, standings, ["public"])
    told = explained(
        considered, cut(considered, lambda _: None, top_k=2), why_not=lambda _: None, match_of=lambda _: 1.0,
        shown=lambda item_id: {"task": item_id, "version": 1}, priority=PRIORITY, vector_weight=0.3, policy="p",
    )  # fmt: skip
    chosen = chosen_of(told, [{"id": "b"}], by_a_model=True)
    places = [(each["id"], each["rank"], each["left_out"]) for each in chosen["candidates"]]
    assert places == [("a", None, "not_chosen"), ("b", 1, None), ("c", None, "beyond_top_k")]
    first = chosen_of(told, [{"id": "a"}], by_a_model=False)
    assert [each["left_out"] for each in first["candidates"]] == [None, "beyond_top_k", "beyond_top_k"]


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerClient]:
    """A person with a store in which every reason to be left out occurs."""
    data: Path = tmp_path_factory.mktemp("explained") / "data"
    with running(data) as node, somebody(node, number := new_number()) as ann:
        own = f"user:ann{number}"
        for n in range(6):
            words = " ".join(["release", "rollback", "branch"][: 1 + n % 3])
            ann.save(f"note {n}", f"{words} number {n}", ["tool"], id=f"k{n}", scopes=["public"] if n % 2 else [own])
        ann.save("poor", "release rollback branch", ["tool"], id="poor", scopes=["public"], score=1)
        ann.save("bad", "release rollback branch", ["tool"], id="bad", scopes=["public"])
        for _ in range(4):
            ann.rate("bad", "harmful")
        for n, content in enumerate(("release rollback branch together", "lantern")):
            ann.save("turn", content, ["tool"], id=f"turn-{n}", source={"trace_id": "t", "message_id": f"m{n}"})
        caught_up(ann.acting_as())
        yield ann


def agrees(answer: SearchResults) -> SearchExplained:
    told = answer["explained"]
    by_id = {each["id"]: each for each in told["candidates"]}
    for rank, item in enumerate(answer["results"], 1):
        each = by_id[item["id"]]
        assert (each["rank"], round(each["relevance"], 6), each["match"]) == (rank, item["relevance"], item["match"])
        assert (each["quality"], each["version"], each["task"]) == (
            item["quality_score"],
            item["version"],
            item["task"],
        )
        assert each["beside"] == item.get("beside")
    assert answered_by(told, max(1, len(answer["results"]))) == [item["id"] for item in answer["results"]]
    for each in told["candidates"]:
        adds_up(each)
    return told


ASKED: Sequence[dict[str, Any]] = (
    {},
    {"top_k": 2},
    {"min_match": 0.4},
    {"min_score": 1, "top_k": 100},
    {"path": "keyword"},
    {"path": "vector"},
    {"path": "recency"},
    {"types": ["tool"], "owner": "user:nobody"},
    {"route": True},
)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_an_explained_search_answers_like_one_that_is_not(ann: LedgerClient, asked: dict[str, Any]) -> None:
    plain = ann.search("release rollback branch", record=False, **asked)
    told = ann.search("release rollback branch", record=False, explain=True, **asked)
    assert "explained" not in plain
    assert [item["id"] for item in told["results"]] == [item["id"] for item in plain["results"]]
    agrees(told)


def test_every_reason_to_be_left_out_is_named(ann: LedgerClient) -> None:
    told = agrees(ann.search("release rollback branch", top_k=2, min_match=0.4, record=False, explain=True))
    left = {each["id"]: each["left_out"] for each in told["candidates"]}
    assert left["poor"] == "min_score"
    assert left["bad"] == "negative_quality"
    assert left["k0"] == "min_match"
    assert "beyond_top_k" in left.values()
    assert [each for each in left.values() if each is None] == [None, None]
    assert told["weights"]["recency"] == ranking.RECENCY_WEIGHT
    assert told["considered"] == len(told["candidates"])


def test_what_stands_beside_a_hit_says_what_was_lent(ann: LedgerClient) -> None:
    told = agrees(ann.search("release rollback branch", top_k=9, record=False, explain=True))
    by_id = {each["id"]: each for each in told["candidates"]}
    lent = by_id["turn-1"]
    assert lent["beside"] == "turn-0"
    first = by_id["turn-0"]["relevance"] - by_id["turn-0"]["lent"]
    assert lent["lent"] == pytest.approx(told["weights"]["lent"] * first)


def test_the_past_is_explained_as_it_was(ann: LedgerClient) -> None:
    ann.save("later", "release rollback branch", ["tool"], id="later", scopes=["public"])
    caught_up(ann.acting_as())
    before = head(ann.acting_as()) - 1
    then = agrees(ann.search("release rollback branch", as_of=before, record=False, explain=True))
    assert "later" not in {each["id"] for each in then["candidates"]}
    nothing = ann.search("release", as_of=0, record=False, explain=True)["explained"]
    assert (nothing["candidates"], nothing["considered"], nothing["paths"]["keyword"]) == ([], 0, [])


def test_nothing_is_told_of_what_the_caller_may_not_see(ann: LedgerClient) -> None:
    stranger = ann.acting_as(user="mallory")
    told = agrees(stranger.search("release rollback branch", min_score=1, record=False, explain=True))
    seen = {item["id"] for item in stranger.iterate(status="all")}
    assert {each["id"] for each in told["candidates"]} <= seen
    assert "k0" not in str(told)
    assert "turn-0" not in str(told)

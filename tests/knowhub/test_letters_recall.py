"""Verdicts, scores, search and lists: what sources 000 and 001 say of each, asked of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode, running, until
from tests.knowhub import source
from tests.knowhub.doors import Http, Refused
from tests.openai_server import embedding_endpoint
from tests.reactors.conftest import models

ASKED, MEANT = "sedan", "automobile"
CHINESE = {"Accept-Language": "zh"}
ANSWERED = ("id", "task", "content", "types", "tags", "eval.score", "eval.helpful", "eval.harmful", "eval.confidence")


class Asker(Http):
    """Who asks for Chinese, and is nobody else."""

    @property
    def headers(self) -> dict[str, str]:
        return super().headers | CHINESE


@pytest.fixture
def word() -> str:
    return f"w{uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node on which nobody states anything public: a search finds the caller's own items alone."""
    with running(tmp_path_factory.mktemp("letters") / "data") as node:
        yield node


@pytest.fixture(scope="module")
def understanding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node whose model knows that two words mean the same."""
    with embedding_endpoint() as server, pytest.MonkeyPatch.context() as patch:
        given = server.answer
        patch.setattr(server, "answer", lambda key, body: given(key, body.replace(ASKED.encode(), MEANT.encode())))
        about = models(server)
        with running(tmp_path_factory.mktemp("understanding") / "data", env=about) as node:
            yield node


@pytest.fixture
def door(quiet: RunningNode, word: str) -> Asker:
    return Asker(quiet.url, {"user": f"ann-{word}", "org": f"lantern-{word}"})


def ids(items: list[JsonObject]) -> list[str]:
    return [item["id"] for item in items]


def several(door: Http, word: str, count: int, **about: Any) -> list[str]:
    """So many items that a search for the word finds."""
    return [door.save(task=f"t {word}", content=f"c {word} {number}", **about) for number in range(count)]


def test_a_search_finds_by_meaning_words_that_stand_nowhere_else(understanding: RunningNode, word: str) -> None:
    door = Http(understanding.url, {"user": f"ann-{word}"})
    door.save(task="cooking", content="salt the water first")
    meant = door.save(task=MEANT, content=f"{MEANT}: change the oil")
    door.save(task="sailing", content="mind the wind")

    def found(paths: str) -> list[str]:
        return ids(door.ask("GET", "/api/knowledge/search", q=ASKED, paths=paths)["results"])

    until(lambda: meant in found("vector"), "the model's vectors are there")
    assert found("keyword") == []
    assert found("fused")[0] == meant


def test_a_search_finds_what_was_asked_for_before_anything_else(door: Asker, word: str) -> None:
    item_id = door.save(task=f"数据库迁移 {word}", content="先建影子表再双写")
    door.save(task="做饭", content="先放盐")
    assert ids(door.search("怎么迁移数据库"))[0] == item_id


def test_what_is_saved_is_in_the_vector_store_and_in_the_view(door: Asker, word: str) -> None:
    item_id = door.save(task=f"t {word}", content=f"c {word}")
    assert ids(door.ask("GET", "/api/knowledge/search", q=word, paths="vector")["results"]) == [item_id]
    assert item_id in ids(door.list())


def test_a_search_answers_five_items_unless_told_otherwise(door: Asker, word: str) -> None:
    several(door, word, 7)
    assert door.ask("GET", "/api/knowledge/search", q=word)["count"] == 5
    assert door.ask("GET", "/api/knowledge/search", q=word, top_k=6)["count"] == 6


def test_a_search_leaves_out_scores_below_three_unless_told_otherwise(door: Asker, word: str) -> None:
    poor, fair = door.save(content=word, score=2), door.save(content=word, score=3)
    assert ids(door.ask("GET", "/api/knowledge/search", q=word)["results"]) == [fair]
    assert set(ids(door.ask("GET", "/api/knowledge/search", q=word, min_score=2)["results"])) == {poor, fair}


def test_a_search_is_filtered_by_types_separated_by_commas(door: Asker, word: str) -> None:
    tool, plan, other = (door.save(content=word, types=[type_]) for type_ in ("tool", "plan", "usecase"))
    found = door.ask("GET", "/api/knowledge/search", q=word, types="tool,plan")["results"]
    assert set(ids(found)) == {tool, plan}
    assert other in ids(door.ask("GET", "/api/knowledge/search", q=word)["results"])


@pytest.mark.parametrize("field", [*ANSWERED, "quality_score"])
def test_an_answer_to_a_search_has_the_field(door: Asker, word: str, field: str) -> None:
    item_id = door.save(content=word)
    door.judge(item_id, "helpful", outcome="成功")
    door.judge(item_id, "harmful", reason="原因")
    (found,), kept = door.search(word), door.one(item_id)
    for name in field.split("."):
        found, kept = found[name], kept[name]
    assert found == kept


def test_a_search_says_how_many_it_found(door: Asker, word: str) -> None:
    several(door, word, 2)
    told = door.ask("GET", "/api/knowledge/search", q=word)
    assert told["count"] == len(told["results"]) == 2


@pytest.mark.parametrize(("helpful", "harmful", "quality"), [(5, 0, 9.0), (2, 1, 4.0), (0, 2, 0.0)])
def test_quality_is_score_and_helpful_less_twice_harmful(
    door: Asker, word: str, helpful: int, harmful: int, quality: float
) -> None:
    door.save(content=word, eval={"score": 4, "helpful": helpful, "harmful": harmful})
    (item,) = door.search(word)
    assert item["quality_score"] == quality


def test_what_has_a_quality_below_zero_is_left_out(door: Asker, word: str) -> None:
    zero = door.save(content=word, eval={"score": 4, "helpful": 0, "harmful": 2})
    door.save(content=word, eval={"score": 5, "helpful": 0, "harmful": 3})
    assert ids(door.search(word)) == [zero]


def test_a_list_has_ten_items_unless_told_otherwise(door: Asker, word: str) -> None:
    several(door, word, 12)
    assert len(door.ask("GET", "/api/knowledge")["results"]) == 10
    assert len(door.ask("GET", "/api/knowledge", limit=11)["results"]) == 11


def test_a_list_is_filtered_by_types_separated_by_commas(door: Asker, word: str) -> None:
    own = f"user:ann-{word}"
    kept = [door.save(types=[type_]) for type_ in ("tool", "plan", "usecase")]
    assert set(ids(door.ask("GET", "/api/knowledge", types="tool,plan", scopes=own)["results"])) == set(kept[:2])


def test_a_list_is_filtered_by_scopes_separated_by_commas(door: Asker, word: str) -> None:
    own = f"user:ann-{word}"
    mine = door.save()
    org = f"org:lantern-{word}"
    shared = door.save(scopes=[org])
    assert ids(door.ask("GET", "/api/knowledge", scopes=own)["results"]) == [mine]
    assert set(ids(door.ask("GET", "/api/knowledge", scopes=f"{own},{org}")["results"])) == {mine, shared}


@pytest.mark.parametrize("verdict", ["helpful", "harmful"])
@pytest.mark.parametrize("field", ["task", "outcome", "reason", "timestamp", "query", "trace_id"])
def test_a_case_keeps_its_field(door: Asker, verdict: str, field: str) -> None:
    item_id = door.save()
    case = {"task": "任务描述", "outcome": "失败", "reason": "原因", "timestamp": "2026-03-05T12:00:00Z"}
    case |= {"query": "怎么办", "trace_id": "trace-xxx"}
    door.ask("PUT", f"/api/knowledge/{item_id}", {f"add_{verdict}_case": case})
    (kept,) = door.one(item_id)["eval"][f"{verdict}_history"]
    assert kept[field] == case[field]


@pytest.mark.parametrize("verdict", ["helpful", "harmful"])
def test_a_case_counts_once_in_its_count(door: Asker, verdict: str) -> None:
    item_id = door.save()
    before = door.one(item_id)["eval"]
    door.ask("PUT", f"/api/knowledge/{item_id}", {f"add_{verdict}_case": source.HELPFUL})
    after = door.one(item_id)["eval"]
    assert {name: after[name] - before[name] for name in ("helpful", "harmful")} == {
        name: int(name == verdict) for name in ("helpful", "harmful")
    }


def test_a_score_is_stated_anew(door: Asker) -> None:
    item_id = door.save()
    door.ask("PUT", f"/api/knowledge/{item_id}", {"update_score": 5})
    assert door.one(item_id)["eval"]["score"] == 5


def test_evidence_moves_the_confidence_within_zero_and_one(door: Asker) -> None:
    good, bad = door.save(), door.save()
    for _ in range(3):
        door.judge(good, "helpful", outcome="成功")
        door.judge(bad, "harmful", reason="原因")
    certain, doubtful = (door.one(each)["eval"]["confidence"] for each in (good, bad))
    assert 0 <= doubtful < 0.5 < certain <= 1


@pytest.mark.parametrize("helpful", [True, False], ids=["helpful", "harmful"])
def test_a_verdict_of_a_batch_counts_on_its_item(door: Asker, helpful: bool) -> None:
    first, other = door.save(), door.save()
    verdicts = [{"knowledge_id": first, "is_helpful": helpful, "case": source.HELPFUL}]
    assert door.ask("POST", "/api/knowledge/batch_update", {"feedback_list": verdicts})["updated"] == 1
    judged, untouched = door.one(first)["eval"], door.one(other)["eval"]
    assert (judged["helpful"], judged["harmful"]) == ((2, 0) if helpful else (1, 1))
    (kept,) = judged["helpful_history" if helpful else "harmful_history"]
    assert kept.items() >= source.HELPFUL.items()
    assert (untouched["helpful"], untouched["harmful"]) == (1, 0)


def test_what_was_retired_is_not_found(door: Asker, word: str) -> None:
    item_id = door.save(content=word)
    door.ask("DELETE", f"/api/knowledge/{item_id}")
    assert ids(door.search(word)) == []


def focused(door: Http, description: str) -> JsonObject:
    """A goal, focused once the view has what was saved."""
    told: JsonObject = door.ask(
        "POST", "/api/goals/goal-123/focus", {"description": description}, min_position=door.after
    )
    return told


def test_a_focus_searches_with_the_goals_description(door: Asker) -> None:
    goals = {goal: door.save(task=goal, content=goal) for goal in ("烤面包", "修自行车", "迁移数据库")}
    # All of them are found for any goal: the one that fits comes first.
    assert {goal: ids(focused(door, goal)["metadata"]["items"])[0] for goal in goals} == goals


def test_a_focus_injects_three_items(door: Asker, word: str) -> None:
    several(door, word, 5)
    assert len(focused(door, word)["metadata"]["items"]) == 3


def test_a_focus_injects_nothing_below_score_three(door: Asker, word: str) -> None:
    several(door, word, 2, score=2)
    (fair,) = several(door, word, 1, score=3)
    assert ids(focused(door, word)["metadata"]["items"]) == [fair]


def test_a_focus_keeps_its_items_on_the_goal(door: Asker, word: str) -> None:
    several(door, word, 2)
    told = focused(door, word)
    assert ids(door.ask("GET", "/api/goals/goal-123")["knowledge"]) == ids(told["metadata"]["items"])


def test_a_focus_has_the_title_of_the_source(door: Asker, word: str) -> None:
    assert focused(door, word)["title"] == "✅ Goal 已聚焦"


def test_a_focus_says_what_the_goal_is_and_how_much_is_known(door: Asker, word: str) -> None:
    several(door, word, 2)
    assert focused(door, word)["output"].startswith(f"当前 Goal: {word}\n\n📚 相关知识 (2 条):\n")


def test_a_goal_shows_what_was_injected_in_a_section_of_related_knowledge(door: Asker, word: str) -> None:
    (item_id,) = several(door, word, 1)
    told = focused(door, word)
    section = door.ask("GET", "/api/goals/goal-123")["section"]
    assert section.startswith("📚 相关知识 (1 条):")
    assert item_id in section
    assert told["output"].endswith(section)


def test_a_goal_focused_again_has_what_was_saved_since(door: Asker, word: str) -> None:
    assert focused(door, word)["metadata"]["items"] == []
    (item_id,) = several(door, word, 1)
    assert ids(focused(door, word)["metadata"]["items"]) == [item_id]


def test_a_start_loads_the_profile_before_other_knowledge(door: Asker, word: str) -> None:
    known = door.save(content=f"c {word}", types=["tool"])
    about = door.save(content=f"p {word}", types=["user_profile"])
    told = door.ask("GET", "/api/recall/startup", q=word)
    assert (ids(told["profile"]), ids(told["results"])) == ([about], [known])
    assert told["prompt"].index(f"p {word}") < told["prompt"].index(f"c {word}")


def test_a_start_loads_what_is_related_to_what_it_is_about(door: Asker) -> None:
    abouts = {about: door.save(task=about, content=about) for about in ("烤面包", "修自行车", "迁移数据库")}
    found = {about: ids(door.ask("GET", "/api/recall/startup", q=about)["results"])[0] for about in abouts}
    assert found == abouts


@pytest.mark.parametrize("by", ["confidence", "helpful"])
def test_a_start_orders_the_profile_by(door: Asker, by: str) -> None:
    low, high = ({"confidence": 0.6, "helpful": 9}, {"confidence": 0.9, "helpful": 1})
    if by == "helpful":
        low, high = ({"confidence": 0.9, "helpful": 1}, {"confidence": 0.9, "helpful": 9})
    first, second = (
        door.save(types=["user_profile"], content=said, eval=counted)
        for said, counted in (("tea", low), ("jazz", high))
    )
    assert ids(door.ask("GET", "/api/recall/startup")["profile"]) == [second, first]


def test_whoever_may_not_see_an_item_cannot_judge_it(door: Asker, quiet: RunningNode, word: str) -> None:
    item_id = door.save()
    other = Http(quiet.url, {"user": f"bob-{word}"}, after=door.after)
    with pytest.raises(Refused, match="unknown_knowledge"):
        other.judge(item_id, "helpful", outcome="成功")

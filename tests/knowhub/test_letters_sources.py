"""What an item says of its source: who and when, every field, the dates and cases that it comes with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import ITEM, Command, Http, Refused, Sdk
from tests.knowhub.walking import Walk
from tests.patience import PATIENCE

SOURCE_FIELDS = {"name", "category", "urls", "agent_id", "submitted_by", "timestamp", "trace_id", "message_id"}
DATES = {"created_at": "2026-03-05T12:00:00Z", "updated_at": "2026-03-06T09:30:00Z"}
CASES: JsonObject = {
    "helpful_history": [
        {"query": "部署", "trace_id": "trace-xxx", "outcome": "成功"},
        {"task": "发布", "outcome": "成功", "timestamp": "2026-03-05T12:00:00Z"},
    ],
    "harmful_history": [{"task": "周五发布", "outcome": "失败", "reason": "没有人在"}],
}


@pytest.fixture
def door(shared_node: RunningNode) -> Http:
    return Http(shared_node.url, {"agent": f"scribe-{uuid4().hex[:8]}"})


def imported(door: Http, *items: JsonObject) -> list[JsonObject]:
    """What became of each of the items of an import."""
    told = door.ask("POST", "/api/knowledge/batch", {"items": list(items)})
    door.after = told["position"]
    return list(told["results"])


def owned(door: Http) -> list[JsonObject]:
    """The items of this door's agent alone."""
    listed: JsonObject = door.ask("GET", "/api/knowledge", owner=f"agent:{door.who['agent']}", limit=1000)
    return list(listed["results"])


@pytest.mark.parametrize("walk", ["http", "sdk", "command"], indirect=True)
def test_the_source_has_every_field_null_or_empty_where_nobody_filled_it_in(walk: Walk) -> None:
    door = walk.door(user="ann")
    item = door.one(door.save())
    assert item["source"].keys() == SOURCE_FIELDS
    assert {name for name, value in item["source"].items() if value not in (None, [])} == set()
    assert (item["message_id"], item["origin"], item["source"]["urls"]) == (None, None, [])


def test_lists_and_searches_tell_what_was_filled_in_alone(door: Http) -> None:
    word = uuid4().hex[:8]
    door.save(content=f"about {word}", source={"name": "a book"})
    for item in (*owned(door), *door.search(word, top_k=1)):
        assert item["source"].keys() == {"name", "urls", "agent_id", "timestamp"}


@pytest.mark.parametrize("walk", ["http", "sdk", "command"], indirect=True)
def test_what_an_agent_saves_names_it_and_the_moment(walk: Walk) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    door = walk.door(agent="scribe")
    source = door.one(door.save())["source"]
    assert source["agent_id"] == walk.own("scribe")
    assert before <= datetime.fromisoformat(source["timestamp"]) <= datetime.now(UTC) + timedelta(seconds=5)


@pytest.mark.parametrize("walk", ["http", "sdk"], indirect=True)
def test_what_is_saved_for_an_agent_that_the_source_alone_names_has_the_moment_too(walk: Walk) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    door = walk.door(user="ann")
    source = door.one(door.save(source={"agent_id": "scribe"}))["source"]
    assert source["agent_id"] == "scribe"
    assert before <= datetime.fromisoformat(source["timestamp"]) <= datetime.now(UTC) + timedelta(seconds=5)


def test_what_a_source_states_is_not_filled_in(door: Http) -> None:
    stated = {"agent_id": "another", "timestamp": "2026-03-05"}
    source = door.one(door.save(source=stated))["source"]
    assert {name: source[name] for name in stated} == stated


def test_saving_the_same_again_is_the_same_although_the_moment_is_another(door: Http) -> None:
    item = {**ITEM, "id": f"k-{uuid4().hex[:8]}"}
    first, second = (door.ask("POST", "/api/knowledge", item) for _ in range(2))
    assert (second["duplicate"], second["position"]) == (True, first["position"])
    (outcome,) = imported(door, item)
    assert outcome["outcome"] == "unchanged", "an import states the same"
    with pytest.raises(Refused, match="knowledge_exists"):
        door.ask("POST", "/api/knowledge", {**item, "source": {"agent_id": "another"}})


@pytest.mark.parametrize("date", DATES)
def test_a_date_that_is_stated_is_kept(door: Http, date: str) -> None:
    alone = door.one(door.save(**{date: DATES[date]}))
    assert alone["origin"][date] == DATES[date]
    assert alone[date] != DATES[date], "the item is as old as its events"
    (outcome,) = imported(door, {**ITEM, "content": f"{date} {uuid4()}", **DATES})
    assert door.one(outcome["id"])["origin"][date] == DATES[date]


def test_created_at_is_the_sources_time_and_replaces_none_that_is_stated(door: Http) -> None:
    assert door.one(door.save(**DATES))["source"]["timestamp"] == DATES["created_at"]
    both = door.one(door.save(**DATES, source={"timestamp": "2026-01-01"}))
    assert (both["source"]["timestamp"], both["origin"]["created_at"]) == ("2026-01-01", DATES["created_at"])


def test_cases_are_first_cases_of_what_is_imported(door: Http) -> None:
    item = {**ITEM, "content": f"cases {uuid4()}", "eval": {"helpful": 5, **CASES}}
    (outcome,) = imported(door, item)
    told = door.one(outcome["id"])["eval"]
    assert (told["helpful"], told["harmful"]) == (5, 1), "a count that is stated includes its cases"
    for name in CASES:
        for said, kept in zip(CASES[name], told[name], strict=True):
            assert kept.items() >= said.items()
    (again,) = imported(door, item)
    assert (again["outcome"], door.one(outcome["id"])["eval"]) == ("unchanged", told)
    edges = door.ask("GET", "/api/lineage", ref="trace:trace-xxx")["edges"]
    assert outcome["id"] in [edge["ref"] for edge in edges]


def test_an_item_that_was_read_is_imported_elsewhere_with_its_cases(door: Http, shared_node: RunningNode) -> None:
    (outcome,) = imported(door, {**ITEM, "content": f"read {uuid4()}", "eval": CASES})
    read = door.one(outcome["id"])
    other = Http(shared_node.url, {"agent": f"other-{uuid4().hex[:8]}"})
    names = ("task", "content", "types", "tags", "source", "created_at", "updated_at", "message_id", "eval")
    (moved,) = imported(other, {name: read[name] for name in names})
    assert moved["outcome"] == "saved", moved
    there = other.one(moved["id"])
    assert [case["outcome"] for case in there["eval"]["helpful_history"]] == ["成功", "成功"]
    assert (there["eval"]["helpful"], there["origin"]["created_at"]) == (read["eval"]["helpful"], read["created_at"])


@pytest.mark.parametrize("walk", ["sdk", "command"], indirect=True)
def test_an_import_takes_dates_and_cases_through_every_interface(walk: Walk, tmp_path: Path) -> None:
    door = walk.door(agent="scribe")
    item_id = f"k-{walk.word}"
    item = {**ITEM, "id": item_id, **DATES, "eval": CASES}
    match door:
        case Sdk():
            door.ledger.save_many([item])
        case _:
            assert isinstance(door, Command)
            file = tmp_path / "items.jsonl"
            file.write_text(json.dumps(item) + "\n", "utf-8")
            door.ask("import", str(file))
    told = door.one(item_id)
    assert [len(told["eval"][name]) for name in CASES] == [2, 1]
    assert {name: told["origin"][name] for name in DATES} == DATES


def said_of(door: Http, method: str, path: str, body: JsonObject) -> Any:
    with httpx.Client(base_url=door.url, headers=door.headers, trust_env=False, timeout=PATIENCE) as client:
        return client.request(method, path, json=body)


def test_cases_elsewhere_are_answered_with_a_reason(door: Http) -> None:
    answer = said_of(door, "POST", "/api/knowledge", {**ITEM, "eval": CASES})
    assert answer.status_code == 422
    told = answer.json()["error"]
    assert [each["field"] for each in told["details"]["errors"]] == ["eval.helpful_history", "eval.harmful_history"]
    assert "add_helpful_case" in told["message"]
    assert owned(door) == [], "and nothing is kept"


def test_a_count_below_its_cases_is_refused(door: Http) -> None:
    (outcome,) = imported(door, {**ITEM, "eval": {"helpful": 1, **CASES}})
    assert (outcome["outcome"], outcome["error"]["code"]) == ("refused", "invalid_payload")


def test_a_score_beside_another_one_is_refused(door: Http) -> None:
    answer = said_of(door, "POST", "/api/knowledge", {**ITEM, "score": 4, "eval": {"score": 5}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_payload")
    assert "eval.score" in answer.json()["error"]["message"]
    assert imported(door, {**ITEM, "score": 4, "eval": {"score": 5}})[0]["outcome"] == "refused"
    assert door.one(door.save(score=4, eval={"score": 4}))["eval"]["score"] == 4


def test_many_items_with_cases_are_imported_at_once(door: Http) -> None:
    items = [{**ITEM, "content": f"item {number} {uuid4()}", "eval": CASES} for number in range(120)]
    assert {each["outcome"] for each in imported(door, *items)} == {"saved"}
    assert {item["eval"]["harmful"] for item in owned(door)} == {1}

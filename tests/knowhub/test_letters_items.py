"""An item field by field: what sources 000 and 001 say of each, asked of one node."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest

from ledger.event import JsonObject
from tests.doors.http_door import PROFILE_EXAMPLE
from tests.journeys.running_node import RunningNode
from tests.knowhub import source
from tests.knowhub.doors import Http, Refused

WHOLE: JsonObject = {  # source 001, "知识结构", but for what the ledger decides itself
    "types": ["strategy", "tool"],
    "task": "在什么场景下要完成什么目标",
    "tags": {"category": "preference", "domain": "coding_style"},
    "scopes": ["org:cybertogether"],
    "owner": "agent:research_agent",
    "content": "核心知识内容",
    "resource_ids": ["code/selenium/login", "credentials/website_a"],
    "source": {
        "name": "资源名称",
        "category": "exp",
        "urls": ["https://example.com"],
        "agent_id": "research_agent",
        "submitted_by": "user@example.com",
        "timestamp": "2026-03-05T12:00:00Z",
        "message_id": "msg-xxx",
        "trace_id": "trace-xxx",
    },
    "eval": {"score": 4, "helpful": 5, "harmful": 0, "confidence": 0.9},
}
DEFAULTS: JsonObject = {
    "tags": {},
    "resource_ids": [],
    "scopes": ["agent:research_agent"],
    "owner": "agent:research_agent",
    "eval.score": 3,
    "eval.helpful": 1,
    "eval.harmful": 0,
    "eval.confidence": 0.5,
    "eval.helpful_history": [],
    "eval.harmful_history": [],
}
TYPES = ("user_profile", "strategy", "tool", "usecase", "definition", "plan")


def leaves(value: JsonObject, place: str = "") -> dict[str, Any]:
    """Every field of a document by its path; tags and lists are one field."""
    found: dict[str, Any] = {}
    for name, part in value.items():
        inner = isinstance(part, dict) and name in ("source", "eval")
        found |= leaves(part, f"{place}{name}.") if inner else {place + name: part}
    return found


def at(item: JsonObject, place: str) -> Any:
    """The value of a field by its path."""
    for name in place.split("."):
        item = item[name]
    return item


FIELDS = leaves(WHOLE)
PROFILE_FIELDS = leaves({name: value for name, value in PROFILE_EXAMPLE.items() if name not in ("id", "type")})


@pytest.fixture(scope="module")
def agent(shared_node: RunningNode) -> Http:
    """The agent of source 001."""
    return Http(shared_node.url, {"agent": "research_agent", "org": "cybertogether"})


@pytest.fixture(scope="module")
def whole(agent: Http) -> tuple[str, JsonObject]:
    """The item of source 001 under an id of its own, and as it is answered."""
    item_id = f"knowledge-20260305-{uuid4().hex[:8]}"
    agent.ask("POST", "/api/knowledge", {"id": item_id, **WHOLE})
    return item_id, agent.one(item_id)


@pytest.fixture(scope="module")
def bare(agent: Http) -> JsonObject:
    """An item of which only what has to be stated is stated."""
    told = agent.ask("POST", "/api/knowledge", {"task": "t", "content": "c", "types": ["tool"]})
    return agent.one(told["id"])


@pytest.fixture(scope="module")
def profile(shared_node: RunningNode) -> JsonObject:
    """The example of source 000, as it is answered."""
    door = Http(shared_node.url, {"user": "123"})
    item_id = f"profile_{uuid4().hex[:8]}"
    door.ask("POST", "/api/knowledge", {**PROFILE_EXAMPLE, "id": item_id})
    return door.one(item_id)


def test_an_id_that_is_stated_is_the_items_id(whole: tuple[str, JsonObject]) -> None:
    assert whole[1]["id"] == whole[0]


def test_an_id_that_is_not_stated_has_a_timestamp_and_something_random(agent: Http) -> None:
    ids = {agent.save() for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch(r"knowledge-20\d{6}-[a-z0-9]+", each) for each in ids)


def test_an_id_is_one_items_alone(agent: Http, whole: tuple[str, JsonObject]) -> None:
    with pytest.raises(Refused, match="knowledge_exists"):
        agent.ask("POST", "/api/knowledge", {"id": whole[0], **WHOLE, "content": "something else"})


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_an_item_is_answered_as_it_was_stated(whole: tuple[str, JsonObject], field: str) -> None:
    assert at(whole[1], field) == FIELDS[field]


@pytest.mark.parametrize("field", PROFILE_FIELDS)
def test_a_field_of_a_profile_item_is_answered_as_it_was_stated(profile: JsonObject, field: str) -> None:
    assert at(profile, field) == PROFILE_FIELDS[field]


def test_a_single_type_is_a_list_of_one(profile: JsonObject) -> None:
    assert profile["types"] == [PROFILE_EXAMPLE["type"]]


@pytest.mark.parametrize("field", DEFAULTS)
def test_a_field_that_is_left_out_begins_with_its_default(bare: JsonObject, field: str) -> None:
    assert at(bare, field) == DEFAULTS[field]


@pytest.mark.parametrize("field", ["created_at", "updated_at"])
def test_an_item_says_when(bare: JsonObject, field: str) -> None:
    assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", bare[field])


def test_updated_at_moves_with_a_change_and_created_at_stays(agent: Http) -> None:
    item_id = agent.save()
    first = agent.one(item_id)
    agent.ask("PUT", f"/api/knowledge/{item_id}", {"content": "anew"})
    second = agent.one(item_id)
    assert (first["created_at"], first["updated_at"] < second["updated_at"]) == (second["created_at"], True)


@pytest.mark.parametrize("type_", TYPES)
def test_a_type_is_taken_and_its_items_are_found_by_it(agent: Http, type_: str) -> None:
    item_id, other = agent.save(types=[type_]), agent.save(types=["tool" if type_ != "tool" else "plan"])
    found = [item["id"] for item in agent.list(types=[type_])]
    assert item_id in found
    assert other not in found


def test_an_item_has_several_types_and_is_found_by_each(agent: Http) -> None:
    item_id = agent.save(types=["tool", "strategy"])
    for type_ in ("tool", "strategy"):
        assert item_id in [item["id"] for item in agent.list(types=[type_])]


@pytest.mark.parametrize("category", ["preference", "background", "habit", "constraint"])
def test_a_category_is_a_tag(agent: Http, category: str) -> None:
    assert agent.one(agent.save(tags={"category": category}))["tags"] == {"category": category}


def test_tags_of_ones_own_are_kept(agent: Http) -> None:
    tags = {"category": "x", "domain": "y", "自定义": "标签", "n": 1}
    assert agent.one(agent.save(tags=tags))["tags"] == tags


@pytest.mark.parametrize("category", ["paper", "exp", "skill", "book"])
def test_a_category_of_the_source_is_kept(agent: Http, category: str) -> None:
    assert agent.one(agent.save(source={"category": category}))["source"]["category"] == category


def test_a_source_keeps_every_link_in_its_order(agent: Http) -> None:
    urls = ["https://example.com/b", "https://example.com/a", "https://example.org"]
    assert agent.one(agent.save(source={"urls": urls}))["source"]["urls"] == urls


@pytest.mark.parametrize(
    "stated",
    [
        {"score": 0},
        {"score": 6},
        {"eval": {"confidence": -0.1}},
        {"eval": {"confidence": 1.1}},
        {"eval": {"helpful": -1}},
        {"eval": {"harmful": -1}},
        {"types": []},
        {"types": None},
        {"content": None},
        {"tags": ["a"]},
    ],
    ids=str,
)
def test_a_value_outside_of_what_the_field_may_be_is_refused(agent: Http, stated: JsonObject) -> None:
    with pytest.raises(Refused, match="invalid_payload"):
        agent.save(**stated)


@pytest.mark.parametrize("score", [1, 2, 3, 4, 5])
def test_a_score_is_one_to_five(agent: Http, score: int) -> None:
    assert agent.one(agent.save(score=score))["eval"]["score"] == score


def test_an_owner_is_one_entity(agent: Http) -> None:
    for owner in ("research_agent", ["agent:research_agent"], "agent:"):
        with pytest.raises(Refused, match=r"illegal_scope|invalid_payload"):
            agent.save(owner=owner)


def test_a_score_at_the_top_is_the_items_score(agent: Http) -> None:
    told = agent.ask("POST", "/api/knowledge", source.ITEM)
    assert agent.one(told["id"])["eval"]["score"] == source.ITEM["score"]


@pytest.mark.parametrize("ref", ["message:msg-xxx", "trace:trace-xxx"])
def test_lineage_leads_from_where_the_source_says_it_is_from_to_the_item(
    agent: Http, whole: tuple[str, JsonObject], ref: str
) -> None:
    edges = agent.ask("GET", "/api/lineage", ref=ref)["edges"]
    assert whole[0] in str(edges)


@pytest.mark.parametrize("table", ["scopes", "types"])
def test_an_analyst_finds_the_list_of_an_item_as_a_list(shared_node: RunningNode, agent: Http, table: str) -> None:
    item_id = agent.save(scopes=["org:cybertogether"], types=["tool", "plan"])
    assert agent.one(item_id)
    with shared_node.client() as ledger:
        asked = ledger.sql(f"SELECT {table} FROM knowledge WHERE id = '{item_id}'")
        assert asked["rows"] == [[agent.one(item_id)[table]]]

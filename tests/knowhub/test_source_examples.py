"""The requests of source 001, as written there, get the answers that it describes, from endpoints and from tools."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kledger import AsyncLedgerClient
from kledger.client.tools import functions as tools
from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode, until
from tests.knowhub import source
from tests.patience import PATIENCE

AGENT = {"X-Ledger-Agent": "research_agent", "X-Ledger-Org": "cybertogether"}
"""The source's clients act for this agent of this org and do not say so; ours have to."""


@pytest.fixture
def door(shared_node: RunningNode) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shared_node.url, headers=AGENT, trust_env=False, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def word() -> str:
    """A word that no other item has."""
    return f"w{uuid4().hex}"


def saved(door: httpx.Client, word: str) -> tuple[str, int]:
    """The source's item, found by a word of its own; its id and position."""
    answer = door.post("/api/knowledge", json={**source.ITEM, "content": f"{source.ITEM['content']} {word}"})
    assert answer.status_code == 201, answer.text
    told = answer.json()
    return told["id"], told["position"]


def read(door: httpx.Client, path: str, position: int, **params: Any) -> JsonObject:
    answer = door.get(path, params={**params, "min_position": position})
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    return told


def test_post_knowledge_keeps_the_item_whole_under_an_id_of_the_sources_form(door: httpx.Client, word: str) -> None:
    item_id, position = saved(door, word)
    prefix, day, random = item_id.split("-")
    assert (prefix, len(day), day.isdecimal(), bool(random)) == ("knowledge", 8, True, True)
    item = read(door, f"/api/knowledge/{item_id}", position)
    assert set(item) >= source.WHOLE_ITEM
    stated = {"task", "types", "tags", "scopes", "owner"}
    assert {name: item[name] for name in stated} == {name: source.ITEM[name] for name in stated}
    assert {name: item["source"][name] for name in source.WHOLE_SOURCE} == source.ITEM["source"]
    assert set(item["eval"]) >= source.WHOLE_EVAL
    assert (item["eval"]["score"], item["eval"]["helpful_history"]) == (4, [])


def test_an_item_in_the_sources_own_form_is_taken_as_it_stands(door: httpx.Client) -> None:
    item = {
        "id": f"knowledge-20260305-{uuid4().hex[:8]}",
        "message_id": "msg-xxx",
        **source.ITEM,
        "resource_ids": ["code/selenium/login", "credentials/website_a"],
        "eval": {
            "score": 4,
            "helpful": 5,
            "harmful": 0,
            "confidence": 0.9,
            "helpful_history": [],
            "harmful_history": [],
        },
        "created_at": "2026-03-05T12:00:00Z",
        "updated_at": "2026-03-05T12:00:00Z",
    }
    answer = door.post("/api/knowledge", json=item)
    assert answer.status_code == 201, answer.text
    kept = read(door, f"/api/knowledge/{item['id']}", answer.json()["position"])
    assert kept["eval"] == item["eval"]
    assert kept["resource_ids"] == item["resource_ids"]
    assert (kept["source"]["message_id"], kept["source"]["timestamp"]) == ("msg-xxx", item["created_at"])


def test_search_answers_with_results_a_count_and_the_quality_score_of_the_formula(
    door: httpx.Client, word: str
) -> None:
    item_id, position = saved(door, word)
    asked = {"q": word, "top_k": 5, "min_score": 3, "types": "strategy,tool"}
    found = read(door, "/api/knowledge/search", position, **asked)
    assert 1 <= found["count"] == len(found["results"]) <= 5
    (item,) = (one for one in found["results"] if one["id"] == item_id)
    assert set(item) >= source.ANSWERED_ITEM
    judged = item["eval"]
    assert set(judged) >= source.ANSWERED_EVAL
    assert item["quality_score"] == judged["score"] + judged["helpful"] - judged["harmful"] * 2.0
    for narrower in ({"min_score": 5}, {"types": "plan"}):
        left = read(door, "/api/knowledge/search", position, **{**asked, **narrower})
        assert item_id not in [one["id"] for one in left["results"]]


def test_put_keeps_both_cases_and_the_score(door: httpx.Client, word: str) -> None:
    item_id, _ = saved(door, word)
    answer = door.put(f"/api/knowledge/{item_id}", json=source.UPDATE)
    assert answer.status_code == 200, answer.text
    judged = read(door, f"/api/knowledge/{item_id}", answer.json()["position"])["eval"]
    assert (judged["score"], judged["helpful"], judged["harmful"]) == (4, 2, 1)
    (helpful,), (harmful,) = judged["helpful_history"], judged["harmful_history"]
    assert helpful.items() >= source.HELPFUL.items()
    assert harmful.items() >= source.HARMFUL.items()


def test_batch_update_keeps_each_verdict(door: httpx.Client, word: str) -> None:
    item_id, _ = saved(door, word)
    answer = door.post("/api/knowledge/batch_update", json=source.verdicts(item_id))
    assert (answer.status_code, answer.json()["updated"]) == (200, 1), answer.text
    judged = read(door, f"/api/knowledge/{item_id}", answer.json()["position"])["eval"]
    assert judged["helpful_history"][0].items() >= source.HELPFUL.items()


def test_list_takes_a_limit_types_and_scopes(door: httpx.Client, word: str) -> None:
    item_id, position = saved(door, word)
    listed = read(door, "/api/knowledge", position, limit=10, types="tool,plan", scopes="org:cybertogether,public")
    assert item_id in [item["id"] for item in listed["results"]]
    assert len(listed["results"]) <= 10
    assert read(door, "/api/knowledge", position, limit=1)["count"] == 1
    assert read(door, "/api/knowledge", position, limit=10, types="plan", scopes="project:none")["count"] == 0


def test_knowledge_refers_to_resources_as_in_the_four_scenes(door: httpx.Client) -> None:
    for item in source.REFERRING:
        answer = door.post("/api/knowledge", json=item)
        assert answer.status_code == 201, answer.text
        kept = read(door, f"/api/knowledge/{answer.json()['id']}", answer.json()["position"])
        assert kept["resource_ids"] == item["resource_ids"]


def test_evolve_takes_the_sources_body_and_says_that_there_is_no_model(door: httpx.Client, word: str) -> None:
    item_id, _ = saved(door, word)
    answer = door.put(f"/api/knowledge/{item_id}", json=source.EVOLVE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_available"), answer.text


def test_slim_takes_the_sources_body_and_keeps_the_best_of_each_group_without_a_model(
    door: httpx.Client, shared_node: RunningNode, word: str
) -> None:
    slimmer = {"X-Ledger-Agent": f"slimmer-{word}"}
    with shared_node.client() as ledger:
        named = ledger.acting_as(agent=f"slimmer-{word}")
        first, other = (
            named.save("t", f"{polite}retry {word} three times", ["tool"])["id"] for polite in ("", "Please ")
        )
        report = door.post("/api/knowledge/slim", json=source.SLIM, headers=slimmer).json()
        until(lambda: named.slim_get(report["id"])["done"], "the slim is done")
        told = named.slim_get(report["id"])
        assert (told["status"], told["model"], told["usage"]) == ("applied", None, None)
        assert (told["items_before"], told["items_after"]) == (2, 1)
        assert "no model is configured" in str(told["note"])
        assert (named.get(other)["status"], named.get(other)["merged_into"]) == ("merged", first)
        again = named.tools.knowledge_slim()
        assert (again["model"], again["merged"], again["dry_run"]) == (None, 0, True)


@pytest.mark.parametrize("name", source.TOOLS)
def test_a_tool_of_the_sdk_has_the_sources_name_parameters_and_defaults(name: str) -> None:
    stated = list(inspect.signature(getattr(tools, name)).parameters.values())[1:]  # the first is the wire
    ours = {one.name: source.NEEDED if one.default is inspect.Parameter.empty else one.default for one in stated}
    theirs = source.TOOLS[name]
    assert list(ours.items())[: len(theirs)] == list(theirs.items())
    assert source.NEEDED not in list(ours.values())[len(theirs) :], "what is ours may be left out"


async def test_the_tools_of_the_sdk_do_what_the_source_says_on_the_face_that_awaits(
    shared_node: RunningNode, word: str
) -> None:
    async with AsyncLedgerClient(shared_node.url) as ledger:
        use = ledger.acting_as(agent="research_agent", org="cybertogether").tools
        kept = await use.knowledge_save(
            source.ITEM["task"],
            f"{source.ITEM['content']} {word}",
            source.ITEM["types"],
            source.ITEM["tags"],
            source.ITEM["scopes"],
            source_name="资源名称",
            urls=["https://example.com"],
            submitted_by="user@example.com",
            score=4,
            message_id="msg-xxx",
        )
        found = (await use.knowledge_search(word))["results"]
        (item,) = (one for one in found if one["id"] == kept["id"])
        stated = {"task", "types", "tags", "scopes", "owner"}
        assert {name: item[name] for name in stated} == {name: source.ITEM[name] for name in stated}  # type: ignore[literal-required]
        assert {name: dict(item["source"])[name] for name in source.WHOLE_SOURCE} == source.ITEM["source"]
        changed = await use.knowledge_update(kept["id"], source.HELPFUL, source.HARMFUL, 4)
        assert [event["type"].partition(".")[2] for event in changed["events"]] == ["scored", "rated", "rated"]
        rated = await use.knowledge_batch_update(source.verdicts(kept["id"])["feedback_list"])
        assert (rated["updated"], rated["refused"]) == (1, [])
        listed = await use.knowledge_list(10, ["tool"], ["org:cybertogether"])
        assert kept["id"] in [one["id"] for one in listed["results"]]
        with pytest.raises(LedgerError) as refusal:
            await use.knowledge_update(kept["id"], **source.EVOLVE)
        assert refusal.value.code == "not_available"


def test_a_deployment_states_the_owner_and_the_scopes_of_what_its_agents_save(
    shared_node: RunningNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared_node.client() as ledger:
        item = ("t", "c", ["tool"])

        def kept(saved: Any) -> tuple[str, list[str]]:
            named = ledger.acting_as(agent="defaults").get(saved["id"])
            return named["owner"], named["scopes"]

        assert kept(ledger.tools.knowledge_save(*item, agent_id="defaults")) == ("agent:defaults", ["agent:defaults"])
        monkeypatch.setenv("KLEDGER_TOOLS_SCOPES", "public, org:cybertogether")
        monkeypatch.setenv("KLEDGER_TOOLS_OWNER", "agent:{agent_id}")
        as_ann = ledger.acting_as(user="ann", agent="defaults").tools
        assert kept(as_ann.knowledge_save(*item)) == ("agent:defaults", ["public", "org:cybertogether"])
        assert kept(as_ann.knowledge_save(*item, owner="user:ann", scopes=["agent:defaults"]))[0] == "user:ann"

"""Attacks by callers who know of another's things: they page around them, take up their plans, and copy their seals."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import nats
import orjson
import pytest

from ledger.broker.access import LEDGER_STREAM
from tests.journeys.running_node import RunningNode, caught_up, head, running

ADA, BOB = {"X-Ledger-User": "ada"}, {"X-Ledger-User": "bob"}
SECRET = "ada-keeps-the-blue-key-under-the-stone"
SPOKEN = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@dataclass(frozen=True)
class Grounds:
    """A node with things of Ada's, which Bob may not see, between things that he may; and a plan of hers."""

    node: RunningNode
    head: int
    visible: dict[str, int]
    """The items that Bob sees, and where each was saved."""
    resources: dict[str, int]
    plan: str

    def ask(self, line: str, who: dict[str, str], **more: Any) -> httpx.Response:
        method, _, path = line.partition(" ")
        return httpx.request(
            method, self.node.url + path, headers={**who, **more.pop("headers", {})}, timeout=30, **more
        )

    def state(self) -> list[list[Any]]:
        with self.node.client() as operator:
            caught_up(operator)
            return operator.sql("SELECT id, version, status, content FROM knowledge ORDER BY id")["rows"]


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    with running(tmp_path_factory.mktemp("reach") / "data", "--quack", "off") as node, node.client() as operator:
        ada, bob = operator.acting_as(user="ada"), operator.acting_as(user="bob")
        visible, resources = {}, {}
        for number in range(12):
            ada.save("where the key is", SECRET, ["tool"], id=f"adas-{number}")
            ada.resources.save(f"adas/{number}", SECRET)
            if number % 3 == 0:
                owner = bob if number % 2 else ada
                visible[f"open-{number}"] = owner.save(
                    f"open {number}", f"content {number}", ["tool"], id=f"open-{number}", scopes=["public"]
                )["position"]
                resources[f"open/{number}"] = owner.resources.save(f"open/{number}", "t", scopes=["public"])["position"]
        plan = ada.slim(dry_run=True)
        assert plan["done"], plan
        assert plan["groups"], plan
        caught_up(operator)
        yield Grounds(node, head(operator), visible, resources, str(plan["id"]))


@pytest.mark.parametrize("path", ["/api/knowledge", "/api/resource"])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_no_page_before_any_position_tells_of_what_is_hidden(grounds: Grounds, path: str, limit: int) -> None:
    """Each page is what follows from the visible things alone, wherever it is said to begin."""
    saved = grounds.visible if path == "/api/knowledge" else grounds.resources
    newest = sorted(saved, key=lambda name: -saved[name])
    for before in [None, *range(grounds.head + 2), 10 * grounds.head]:
        asked = f"{path}?limit={limit}" + ("" if before is None else f"&before={before}")
        told = grounds.ask(f"GET {asked}", BOB).json()
        expected = [name for name in newest if before is None or saved[name] < before][:limit]
        assert [each["id"] for each in told["results"]] == expected, asked
        assert told["total"] == len(saved), asked
        assert told["next"] == (saved[expected[-1]] if len(expected) == limit else None), asked


@pytest.mark.parametrize("path", ["/api/knowledge", "/api/resource"])
def test_no_page_of_the_past_tells_of_what_is_hidden(grounds: Grounds, path: str) -> None:
    saved = grounds.visible if path == "/api/knowledge" else grounds.resources
    for then in range(0, grounds.head + 1, 3):
        for before in (0, then // 2, then, then + 1, grounds.head):
            told = grounds.ask(f"GET {path}?limit=2&before={before}&as_of={then}", BOB).json()
            there = {name for name, at in saved.items() if at <= then}
            assert {each["id"] for each in told["results"]} <= there
            assert told["total"] == len(there)
            assert told["next"] in {None, *saved.values()}


@pytest.mark.parametrize("path", ["evolutions", "slims", "extractions", "conflicts", "goals"])
def test_no_page_of_what_is_under_way_counts_what_is_anothers(grounds: Grounds, path: str) -> None:
    for offset in (0, 1, 2**31):
        answer = grounds.ask(f"GET /api/{path}?limit=1&offset={offset}", BOB)
        if answer.status_code in (404, 405):
            assert path in ("extractions", "goals"), "there is no such list"
            continue
        assert (answer.json()["results"], answer.json()["total"]) == ([], 0)


ATTACKS = {
    "reading another's plan": "GET /api/slims/{plan}",
    "applying another's plan": "POST /api/slims/{plan}/apply",
    "rejecting another's plan": "POST /api/slims/{plan}/reject?reason=mine",
    "reverting another's plan": "POST /api/slims/{plan}/revert",
    "taking another's plan for an evolution": "POST /api/evolutions/{plan}/apply",
    "taking another's plan for a conflict": "GET /api/evolutions/{plan}",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_anothers_plan_is_as_one_that_is_not_there(grounds: Grounds, name: str) -> None:
    before = grounds.state(), head_of(grounds)
    told = []
    for plan in (grounds.plan, "slim-0000000000000000"):
        answer = grounds.ask(ATTACKS[name].replace("{plan}", plan), BOB)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_process")
        assert SECRET not in answer.text
        told.append(answer.text.replace(plan, "ID"))
    assert told[0] == told[1]
    assert (grounds.state(), head_of(grounds)) == before
    assert grounds.ask(f"GET /api/slims/{grounds.plan}", ADA).json()["status"] == "reported"


def test_anothers_plan_is_applied_by_no_tool_either(grounds: Grounds) -> None:
    before = grounds.state()
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "knowledge_slim", "arguments": {"apply": grounds.plan}},
    }
    answer = grounds.ask("POST /mcp", BOB, json=message, headers=SPOKEN)
    result = answer.json()["result"]
    assert result["isError"]
    assert "unknown_process" in result["content"][0]["text"]
    assert SECRET not in answer.text
    assert grounds.state() == before


async def sealed_text(node: RunningNode) -> str:
    """What the log itself holds of Ada's words, as somebody reads it who has the log's bytes."""
    role = node.access.credentials("admin")
    assert role is not None
    client = await nats.connect(node.access.url, user=role[0], password=role[1], inbox_prefix="_INBOX_admin")
    try:
        kept = await client.jetstream().get_msg(LEDGER_STREAM, 1)
    finally:
        await client.close()
    assert kept.data is not None
    text = orjson.loads(kept.data)["data"]["content"]
    assert str(text).startswith("sealed:v1:user:ada:")
    return str(text)


def carrying(seal: str) -> dict[str, tuple[str, Any]]:
    """Every place of a request in which somebody could put a seal that was copied."""
    item = {"task": "t", "content": "c", "types": ["tool"]}
    case = {"add_helpful_case": {"reason": seal}}
    mine = "PUT /api/knowledge/bobs"
    return {
        "content": ("POST /api/knowledge", {**item, "content": seal}),
        "task": ("POST /api/knowledge", {**item, "task": seal}),
        "tag": ("POST /api/knowledge", {**item, "tags": {"a": seal}}),
        "tag in a list": ("POST /api/knowledge", {**item, "tags": {"a": ["b", {"c": seal}]}}),
        "source": ("POST /api/knowledge", {**item, "source": {"name": seal}}),
        "address": ("POST /api/knowledge", {**item, "source": {"urls": [seal]}}),
        "revision": (mine, {"content": seal}),
        "revised tags": (mine, {"tags": {"a": seal}}),
        "why it is revised": (mine, {"content": "d", "reason": seal}),
        "why it is scored": (mine, {"update_score": 4, "reason": seal}),
        "case": (mine, case),
        "query of a case": (mine, {"add_harmful_case": {"query": seal}}),
        "why it is retired": (f"DELETE /api/knowledge/bobs?reason={seal}", None),
        "title of a resource": ("POST /api/resource", {"id": "bobs/r", "title": seal}),
        "body of a resource": ("POST /api/resource", {"id": "bobs/r", "title": "t", "body": seal}),
        "metadata of a resource": ("POST /api/resource", {"id": "bobs/r", "title": "t", "metadata": {"a": seal}}),
        "memory": ("PUT /api/v1/memories/work", {"content": {"occupation": seal}}),
        "memory in part": ("PATCH /api/v1/memories/work", {"content": {"work_rules": [seal]}}),
        "goal": ("POST /api/goals/g/focus", {"description": seal}),
        "search": (f"GET /api/knowledge/search?q={seal}", None),
        "start": (f"GET /api/recall/startup?q={seal}", None),
        "words of an import": ("POST /api/knowledge/batch", {"items": [{**item, "content": seal}]}),
        "verdict of many": (
            "POST /api/knowledge/batch_update",
            {"feedback_list": [{"knowledge_id": "bobs", "is_helpful": True, "case": {"task": seal}}]},
        ),
    }


PLACES = sorted(carrying(""))


@pytest.mark.parametrize("place", PLACES)
async def test_a_seal_that_was_copied_out_of_the_log_is_opened_for_nobody(grounds: Grounds, place: str) -> None:
    seal = await sealed_text(grounds.node)
    bob = grounds.ask("POST /api/knowledge", BOB, json={"id": "bobs", "task": "t", "content": "c", "types": ["tool"]})
    assert bob.is_success
    line, body = carrying(seal)[place]
    line = line.replace(seal, quote(seal, safe=""))
    before = await asyncio.to_thread(head_of, grounds)
    answer = await asyncio.to_thread(grounds.ask, line, BOB, **({} if body is None else {"json": body}))
    assert SECRET not in answer.text
    assert "invalid_payload" in answer.text
    assert await asyncio.to_thread(head_of, grounds) == before, "nothing of it is kept"


async def test_a_copied_seal_within_other_words_and_as_a_secret_is_what_was_said_and_no_more(grounds: Grounds) -> None:
    seal = await sealed_text(grounds.node)
    asked = base64.b64encode(seal.encode()).decode()
    for number, text in enumerate((f" {seal}", f"x{seal}", f"\u200b{seal}", asked)):
        item = {"id": f"copied-{number}", "task": "t", "content": text, "types": ["tool"]}
        assert (await asyncio.to_thread(grounds.ask, "POST /api/knowledge", BOB, json=item)).is_success
        told = await asyncio.to_thread(grounds.ask, f"GET /api/knowledge/copied-{number}", BOB)
        assert told.json()["content"] == text
        found = await asyncio.to_thread(grounds.ask, "GET /api/knowledge/search?q=blue+key+stone&min_score=0", BOB)
        assert SECRET not in found.text
    secret = {"id": "bobs/copied", "title": "t", "secure_body": seal}
    assert (await asyncio.to_thread(grounds.ask, "POST /api/resource", BOB, json=secret)).is_success
    told = await asyncio.to_thread(grounds.ask, "GET /api/resource/bobs/copied", BOB)
    assert told.json()["secure_body"] == seal


def head_of(grounds: Grounds) -> int:
    with grounds.node.client() as operator:
        return head(operator)


def test_lineage_neither_begins_at_what_is_hidden_nor_goes_on_through_it(grounds: Grounds) -> None:
    """Ada's hidden save names what Bob said as its cause, and what Bob said later names hers."""
    said = {"task": "t", "content": "c", "types": ["tool"]}
    first = grounds.ask("POST /api/knowledge", BOB, json={**said, "id": "cause-of-hers"}).json()
    hers = {**ADA, "X-Ledger-Message-Id": "m-of-hers", "X-Ledger-Causation-Id": first["event_id"]}
    hidden = grounds.ask("POST /api/knowledge", hers, json={**said, "id": "hers-alone"}).json()
    with grounds.node.client() as operator:
        caught_up(operator)
    for ref in ("hers-alone", "message:m-of-hers", f"event:{hidden['event_id']}"):
        answer = grounds.ask(f"GET /api/lineage?ref={quote(ref)}", BOB)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_reference"), ref
    later = {**BOB, "X-Ledger-Causation-Id": hidden["event_id"]}
    grounds.ask("POST /api/knowledge", later, json={**said, "id": "effect-of-hers"})
    with grounds.node.client() as operator:
        caught_up(operator)
        assert {event["entity_id"] for event in operator.lineage("cause-of-hers")["events"]} >= {"effect-of-hers"}
    for ref, others in (("cause-of-hers", "effect-of-hers"), ("effect-of-hers", "cause-of-hers")):
        told = grounds.ask(f"GET /api/lineage?ref={ref}", BOB).json()
        assert others not in orjson.dumps(told).decode(), ref

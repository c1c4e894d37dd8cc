"""Every trace and message that was given is kept, leads to what it was given with, and says where it was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from kledger import LedgerClient
from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import ITEM, NAMES, Command, Door, Http, Mcp, Sdk
from tests.knowhub.walking import Walk


@pytest.fixture
def word() -> str:
    return uuid4().hex[:8]


@pytest.fixture
def node(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with LedgerClient(shared_node.url) as ledger:
        yield ledger


def given(door: Door, trace: str, message: str, method: str, path: str, body: JsonObject) -> Any:
    """What the node answers to a request with lineage in its headers."""
    headers = {**door.headers, "X-Ledger-Trace-Id": trace, "X-Ledger-Message-Id": message}
    with httpx.Client(base_url=door.url, headers=headers, trust_env=False, timeout=30) as client:
        answer = client.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def called(door: Mcp, tool: str, trace: str, message: str, arguments: JsonObject) -> Any:
    """What a tool answers to a call with lineage in its metadata."""
    spoken = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    params = {"name": tool, "arguments": arguments, "_meta": {"trace_id": trace, "message_id": message}}
    with httpx.Client(headers=door.headers | spoken, trust_env=False, timeout=30) as client:
        told = client.post(
            f"{door.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        ).json()["result"]
    assert not told["isError"], told
    return told["structuredContent"]


def stated_in(ledger: LedgerClient, item_id: str) -> dict[str, list[str]]:
    """Every trace and message that an item is from, and where each is named."""
    edges = ledger.lineage(item_id)["edges"]
    return {
        edge["ref"]: list(edge["stated_in"]) for edge in edges if edge["direction"] == "from" and "stated_in" in edge
    }


def test_what_body_source_and_headers_name_is_linked_and_says_where_it_was_given(
    shared_node: RunningNode, node: LedgerClient, word: str
) -> None:
    door = Http(shared_node.url, {"agent": f"scribe-{word}"})
    body = {
        **ITEM,
        "message_id": f"M-body-{word}",
        "trace_id": f"T-body-{word}",
        "source": {"message_id": f"M-source-{word}", "trace_id": f"T-source-{word}"},
    }
    item_id = given(door, f"T-header-{word}", f"M-header-{word}", "POST", "/api/knowledge", body)["id"]
    ledger = node.acting_as(agent=f"scribe-{word}")
    places = {"header": ["envelope"], "body": ["origin"], "source": ["source"]}
    expected = {
        f"{kind}:{letter}-{place}-{word}": told
        for kind, letter in (("trace", "T"), ("message", "M"))
        for place, told in places.items()
    }
    assert stated_in(ledger, item_id) == expected
    for ref, told in expected.items():
        (edge,) = (each for each in ledger.lineage(ref)["edges"] if each["direction"] == "to")
        assert (edge["ref"], edge["stated_in"]) == (item_id, told)


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_ids_that_differ_are_all_linked_through_every_interface(walk: Walk, node: LedgerClient, word: str) -> None:
    door = walk.door(agent="scribe")
    header, source = f"M-header-{word}", f"M-source-{word}"
    match door:
        case Http():
            body = {**ITEM, "source": {"message_id": source}}
            item_id = given(door, "T", header, "POST", "/api/knowledge", body)["id"]
        case Sdk():
            with LedgerClient(door.url) as ledger:
                within = ledger.acting_as(**door.who).within(trace_id="T", message_id=header)
                item_id = within.save("t", "c", ["tool"], source={"message_id": source})["id"]
        case Command():
            said = ("--content", "c", "--types", "tool", "--message", header, "--source-message", source)
            item_id = door.ask("save", *said)["id"]
        case _:
            assert isinstance(door, Mcp)
            item_id = called(door, "knowledge_save", "T", header, {**ITEM, "message_id": source})["id"]
    found = stated_in(node.acting_as(**door.who), item_id)
    assert {f"message:{header}", f"message:{source}"} <= found.keys()
    assert "source" in found[f"message:{source}"]


def test_a_message_at_the_top_comes_back_at_the_top_of_every_answer(shared_node: RunningNode, word: str) -> None:
    door = Http(shared_node.url, {"agent": f"scribe-{word}"})
    item_id = door.save(message_id=f"M-{word}", content=f"what {word} says", source={"message_id": "M-source"})
    door.ask("PUT", f"/api/knowledge/{item_id}", {"content": f"what {word} says now"})
    (listed,) = [item for item in door.list() if item["id"] == item_id]
    (found,) = [item for item in door.search(word) if item["id"] == item_id]
    for item in (door.one(item_id), listed, found):
        assert item["message_id"] == f"M-{word}"
    assert door.one(item_id)["origin"]["message_id"] == f"M-{word}"


@pytest.mark.parametrize("walk", ["sdk", "mcp"], indirect=True)
def test_a_message_that_a_tool_or_the_client_states_comes_back_at_the_top(walk: Walk, word: str) -> None:
    door = walk.door(agent="scribe")
    item_id = door.save(message_id=f"M-{word}")
    assert [item["message_id"] for item in door.list() if item["id"] == item_id] == [f"M-{word}"]


def test_the_command_says_where_an_id_was_given(shared_node: RunningNode, word: str) -> None:
    door = Command(shared_node.url, {"agent": f"scribe-{word}"})
    said = ("--content", "c", "--types", "tool", "--message", "M", "--source-message", f"M-{word}")
    item_id = door.ask("save", *said)["id"]
    (edge,) = [each for each in door.ask("lineage", f"message:M-{word}")["edges"] if each["entity_id"] == item_id]
    assert edge["stated_in"] == ["source"]


def test_what_a_resource_states_is_linked_beside_the_headers(
    shared_node: RunningNode, node: LedgerClient, word: str
) -> None:
    door = Http(shared_node.url, {"agent": f"scribe-{word}"})
    body = {"id": f"code/{word}", "title": "t", "message_id": f"M-body-{word}", "trace_id": f"T-body-{word}"}
    given(door, f"T-header-{word}", f"M-header-{word}", "POST", "/api/resource", body)
    for ref in ("trace:T-body", "trace:T-header", "message:M-body", "message:M-header"):
        edges = node.acting_as(agent=f"scribe-{word}").lineage(f"{ref}-{word}")["edges"]
        assert [edge["entity_id"] for edge in edges if edge["direction"] == "to"] == [f"code/{word}"]


def case_of(door: Door, item_id: str) -> JsonObject:
    (case,) = Http(door.url, door.who).one(item_id)["eval"]["helpful_history"]
    return dict(case)


@pytest.mark.parametrize("walk", ["http", "sdk", "mcp"], indirect=True)
def test_a_case_keeps_its_own_trace_and_is_found_by_it_and_by_the_headers(
    walk: Walk, node: LedgerClient, word: str
) -> None:
    door = walk.door(agent="judge")
    item_id, own, header = door.save(), f"T-case-{word}", f"T-header-{word}"
    case = {"task": "t", "outcome": "o", "trace_id": own, "message_id": f"M-case-{word}"}
    match door:
        case Http():
            given(door, header, "M", "PUT", f"/api/knowledge/{item_id}", {"add_helpful_case": case})
        case Sdk():
            with LedgerClient(door.url) as ledger:
                ledger.acting_as(**door.who).within(trace_id=header).rate(item_id, "helpful", **case)
        case _:
            assert isinstance(door, Mcp)
            called(door, "knowledge_update", header, "M", {"knowledge_id": item_id, "add_helpful_case": case})
    ledger = node.acting_as(**door.who)
    for trace, place in ((own, "case"), (header, "envelope")):
        edges = [edge for edge in ledger.lineage(f"trace:{trace}")["edges"] if edge["direction"] == "to"]
        assert [(edge["ref"], edge["stated_in"]) for edge in edges] == [(item_id, [place])]
    kept = case_of(door, item_id)
    assert (kept["trace_id"], kept["message_id"]) == (own, f"M-case-{word}")


def test_each_case_of_a_batch_keeps_its_own_trace(shared_node: RunningNode, word: str) -> None:
    door = Http(shared_node.url, {"agent": f"judge-{word}"})
    item_id = door.save()
    verdict = {"knowledge_id": item_id, "is_helpful": True, "case": {"task": "t", "trace_id": f"T-case-{word}"}}
    told = given(door, "T-header", "M", "POST", "/api/knowledge/batch_update", {"feedback_list": [verdict]})
    door.after = told["position"]
    assert door.one(item_id)["eval"]["helpful_history"][0]["trace_id"] == f"T-case-{word}"


def test_each_of_two_cases_of_one_request_is_linked_to_its_own_trace_alone(
    shared_node: RunningNode, node: LedgerClient, word: str
) -> None:
    door = Http(shared_node.url, {"agent": f"judge-{word}"})
    item_id = door.save()
    cases = {
        f"add_{verdict}_case": {"task": "t", "trace_id": f"T-{verdict}-{word}"} for verdict in ("helpful", "harmful")
    }
    door.ask("PUT", f"/api/knowledge/{item_id}", cases)
    for verdict in ("helpful", "harmful"):
        edges = node.acting_as(**door.who).lineage(f"trace:T-{verdict}-{word}")["edges"]
        events = [edge["event_id"] for edge in edges if edge["direction"] == "to"]
        (case,) = door.one(item_id)["eval"][f"{verdict}_history"]
        assert events == [case["event_id"]]

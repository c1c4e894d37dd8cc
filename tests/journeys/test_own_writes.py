"""What was just written is there: for whoever wrote it, through every interface, without naming a position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from producers.cli.main import app
from tests.journeys.running_node import RunningNode

MEI = {"X-Ledger-User": "mei"}
K = "/api/knowledge"


@pytest.fixture
def http(shared_node: RunningNode) -> httpx.Client:
    return httpx.Client(base_url=shared_node.url, timeout=30, headers=MEI)


def test_a_search_finds_what_its_caller_saved_the_moment_before(http: httpx.Client) -> None:
    with http:
        for number in range(20):
            word = f"momentary{number}q"
            saved = http.post(K, json={"task": f"mend the {word}", "content": "with glue", "types": ["tool"]})
            found = http.get(f"{K}/search", params={"q": word, "top_k": 1, "record": False}).json()
            assert [item["id"] for item in found["results"]] == [saved.json()["id"]]
            assert found["degraded"] == []


def test_a_search_shows_what_its_caller_changed_the_moment_before(http: httpx.Client) -> None:
    with http:
        body = {"task": "paint the quixotic fence", "content": "in green", "types": ["tool"]}
        item = http.post(K, json=body).json()["id"]
        search: dict[str, Any] = {"q": "quixotic fence", "top_k": 1, "record": False}
        for number in range(1, 6):
            http.put(f"{K}/{item}", json={"content": f"in colour {number}", "add_helpful_case": {}})
            (found,) = http.get(f"{K}/search", params=search).json()["results"]
            assert (found["content"], found["eval"]["helpful"]) == (f"in colour {number}", 1 + number)
        http.delete(f"{K}/{item}")
        assert item not in [hit["id"] for hit in http.get(f"{K}/search", params=search).json()["results"]]


def test_a_resource_and_a_memory_are_there_the_moment_after(http: httpx.Client) -> None:
    with http:
        for number in range(5):
            name = f"own/{number}"
            http.post("/api/resource", json={"id": name, "title": "a note", "body": str(number)})
            assert http.get(f"/api/resource/{name}").json()["body"] == str(number)
            http.put("/api/v1/memories/user", json={"content": {"occupation": f"baker {number}"}})
            assert http.get("/api/v1/memories/user").json()["occupation"] == f"baker {number}"


def test_a_batch_is_found_by_the_next_search(shared_node: RunningNode) -> None:
    items = [{"task": f"sort batchwise{n}q", "content": "by hand", "types": ["tool"]} for n in range(300)]
    with shared_node.client(read_your_writes=False) as ledger:
        mei = ledger.acting_as(user="mei")
        assert mei.save_many(items)["saved"] == 300
        (found,) = mei.search("batchwise299q", top_k=1, record=False)["results"]
        assert "batchwise299q" in found["task"]


def test_one_command_sees_what_the_one_before_wrote(shared_node: RunningNode) -> None:
    def kledger(*words: str) -> str:
        ran = CliRunner(env={"KLEDGER_URL": shared_node.url}).invoke(app, [*words, "--user", "mei", "--json"])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    kledger("save", "--types", "tool", "--task", "oil the commandlike4q hinge", "--content", "a drop")
    found = json.loads(kledger("search", "commandlike4q", "--no-record"))["results"]
    assert "commandlike4q" in found[0]["task"]


def test_an_import_ends_when_its_items_are_found_whoever_asks(shared_node: RunningNode, tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    lines = (
        {"task": f"stack importlike{n}q", "content": "high", "types": ["tool"], "scopes": ["public"]}
        for n in range(2000)
    )
    file.write_text("\n".join(map(json.dumps, lines)))
    ran = CliRunner(env={"KLEDGER_URL": shared_node.url}).invoke(app, ["import", str(file), "--user", "mei", "--json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["searchable"] is True
    with LedgerClient(shared_node.url).acting_as(user="jonas") as jonas:  # nobody who wrote anything
        (found,) = jonas.search("importlike1999q", top_k=1, record=False)["results"]
        assert "importlike1999q" in found["task"]


def test_what_is_written_through_mcp_is_read_through_http_and_mcp(shared_node: RunningNode, http: httpx.Client) -> None:
    def call(name: str, **arguments: object) -> dict[str, object]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        answer = http.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        told: dict[str, object] = answer.json()["result"]["structuredContent"]
        return told

    with http:
        task = "wind the toollike7q clock"
        saved = call(
            "knowledge_save", task=task, content="on Sundays", types=["tool"], scopes=["user:mei"], owner="user:mei"
        )
        found = http.get(f"{K}/search", params={"q": "toollike7q", "record": False}).json()
        assert found["results"][0]["id"] == saved["id"]
        again = call("knowledge_search", query="toollike7q")
        assert again["results"][0]["id"] == saved["id"]  # type: ignore[index]  # a document of the tool
        assert "degraded" not in again  # a whole answer lacks nothing, and a model reads every word

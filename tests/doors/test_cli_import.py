"""Does an import bring every line in, or say why not?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.commands import importing
from producers.cli.main import app
from producers.requests import chunks
from tests.doors.scripted_node import Asked, Reply, ScriptedNode, scripted_node

BATCH = "POST /api/knowledge/batch"


class SavingNode(ScriptedNode):
    """Saves every item of a batch, except those whose task says how they fare."""

    def reply(self, asked: Asked) -> Reply:
        if asked.line != BATCH or self._replies[BATCH]:
            return super().reply(asked)
        self.asked.append(asked)
        items = asked.body["items"]
        if any(item.get("task") == "spoils the request" for item in items) and len(items) > 1:
            error = {"code": "payload_too_large", "message": "the batch is too large", "details": {}}
            return Reply(413, json.dumps({"error": error}).encode())
        results = [self._result(index, item) for index, item in enumerate(items)]
        counts = {name: sum(one["outcome"] == name for one in results) for name in ("saved", "unchanged", "refused")}
        return Reply(200, json.dumps({"results": results, **counts, "position": 99}).encode())

    @staticmethod
    def _result(index: int, item: dict[str, Any]) -> dict[str, Any]:
        told = {"index": index, "id": item.get("id"), "outcome": "saved", "position": 9, "error": None}
        if item.get("task") == "known":
            told["outcome"] = "unchanged"
        elif item.get("task") in ("bad", "spoils the request"):
            told |= {"outcome": "refused", "error": {"code": "invalid_payload", "message": "types is required"}}
        return told


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node(SavingNode) as running:
        monkeypatch.setenv("KLEDGER_URL", running.url)
        yield running


def kledger(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def lines(*documents: Any) -> str:
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)


def test_items_travel_in_chunks_and_are_counted(node: ScriptedNode, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(lines(*({"task": "知识" if n % 10 else "known", "n": n} for n in range(450))), "utf-8")
    ran = kledger("import", str(file), "--json")
    told = json.loads(ran.stdout)
    assert ran.exit_code == 0
    assert (told["lines"], told["saved"], told["unchanged"], told["refused"]) == (450, 405, 45, 0)
    assert (told["position"], told["errors"]) == (99, [])
    assert sorted(len(asked.body["items"]) for asked in node.told) == [50, 200, 200]
    sent = sorted(item["n"] for asked in node.told for item in asked.body["items"])
    assert sent == list(range(450))


def test_what_was_refused_is_told_by_its_line_and_stops_nothing(node: ScriptedNode) -> None:
    text = lines({"task": "good"}) + "{not json\n\n" + lines({"task": "bad"}, [1], {"task": "good"})
    ran = kledger("import", "-", "--json", stdin=text)
    told = json.loads(ran.stdout)
    assert ran.exit_code == 1
    assert (told["saved"], told["refused"], told["lines"]) == (2, 3, 5)
    assert [(error["line"], error["code"]) for error in told["errors"]] == [
        (2, "bad_json"),
        (4, "invalid_payload"),
        (5, "invalid_payload"),
    ]
    assert "types is required" in told["errors"][1]["message"]


def test_a_refused_line_is_told_without_its_place_in_a_request_that_nobody_typed(node: ScriptedNode) -> None:
    message = "items[4] does not fit: content is required"
    error = {"code": "invalid_payload", "message": message, "details": {}}
    refused = {"index": 0, "id": None, "outcome": "refused", "position": None, "error": error}
    node.says(
        "POST /api/knowledge/batch", {"results": [refused], "saved": 0, "unchanged": 0, "refused": 1, "position": 1}
    )
    told = json.loads(kledger("import", "-", "--json", stdin=lines({"task": "t"})).stdout)
    assert told["errors"] == [{"line": 1, "code": "invalid_payload", "message": "it does not fit: content is required"}]


def test_a_reader_sees_counts_rate_and_the_first_errors(node: ScriptedNode) -> None:
    ran = kledger("import", "-", stdin=lines(*[{"task": "bad"}] * 23, {"task": "good"}))
    assert ran.exit_code == 1
    assert "1 saved, 0 unchanged, 23 refused of 24" in ran.stdout
    assert "items/s" in ran.stdout
    assert "and 3 more" in ran.stdout
    assert "import" in ran.stderr


def test_one_payload_that_spoils_a_request_is_found_and_the_others_are_saved(node: ScriptedNode) -> None:
    documents: list[dict[str, Any]] = [{"task": "good"} for _ in range(40)]
    documents[17] = {"task": "spoils the request"}
    told = json.loads(kledger("import", "-", "--json", stdin=lines(*documents)).stdout)
    assert (told["saved"], told["refused"], told["errors"][0]["line"]) == (39, 1, 18)


def test_bytes_that_are_no_text_and_a_byte_order_mark_are_met_line_by_line(node: ScriptedNode) -> None:
    raw = b"\xef\xbb\xbf" + lines({"task": "good"}).encode() + b'{"task": "\xff"}\n' + lines({"task": "good"}).encode()
    told = json.loads(kledger("import", "-", "--json", stdin=raw).stdout)
    assert (told["saved"], told["refused"], told["errors"][0]["line"]) == (2, 1, 2)


def test_large_items_travel_in_smaller_chunks(node: ScriptedNode) -> None:
    told = json.loads(kledger("import", "-", "--json", stdin=lines(*[{"task": "x" * 900_000}] * 7)).stdout)
    assert told["saved"] == 7
    assert max(len(asked.body["items"]) for asked in node.told) <= 3


def test_an_empty_file_imports_nothing(node: ScriptedNode) -> None:
    ran = kledger("import", "-", "--json", stdin="\n\n")
    assert (ran.exit_code, json.loads(ran.stdout)["lines"], node.asked) == (0, 0, [])


def test_a_node_that_fails_in_the_middle_ends_the_import_and_says_how_far_it_was(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "ITEMS_A_CHUNK", 1)
    monkeypatch.setattr(importing, "IN_FLIGHT", 1)
    saved = {"index": 0, "id": "k", "outcome": "saved", "position": 1, "error": None}
    node.says(BATCH, {"results": [saved], "saved": 1, "unchanged": 0, "refused": 0, "position": 1})
    node.refuses(BATCH, "broker_misconfigured", 503, "the stream is gone")
    ran = kledger("import", "-", "--json", stdin=lines(*[{"task": "good"}] * 5))
    told = json.loads(ran.stdout)["error"]
    assert ran.exit_code == 1
    assert told["code"] == "broker_misconfigured"
    assert told["details"]["saved"] == 1
    assert "at least 1 item was saved before this; import the same file again" in ran.stderr
    assert len(node.told) == 2


def test_an_import_that_saved_nothing_says_nothing_of_what_was_saved(node: ScriptedNode) -> None:
    node.refuses(BATCH, "broker_misconfigured", 503, "the stream is gone")
    ran = kledger("import", "-", stdin=lines({"task": "good"}))
    assert ran.exit_code == 1
    assert "the stream is gone" in ran.stderr
    assert "saved before this" not in ran.stderr


def test_the_sample_that_ships_has_every_type_both_languages_and_lineage(node: ScriptedNode) -> None:
    told = json.loads(kledger("import", "--sample", "--json").stdout)
    items = [item for asked in node.told for item in asked.body["items"]]
    assert told["saved"] == len(items) == 60
    assert len({item["id"] for item in items}) == 60
    kinds = {kind for item in items for kind in item["types"]}
    assert kinds == {"user_profile", "strategy", "tool", "usecase", "definition", "plan"}
    assert {item["tags"]["lang"] for item in items} == {"en", "zh"}
    assert all(item["source"]["trace_id"] and item["source"]["message_id"] for item in items)
    assert len({item["owner"] for item in items}) >= 8


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "[\n1\n]\n", "\nno JSON\n", "\x00\x01\n"])
def test_a_file_that_is_no_json_lines_is_told_with_its_line_and_nothing_is_sent(
    node: ScriptedNode, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "odd"
    file.write_text(text)
    ran = kledger("import", str(file), "--wait", "0")
    assert ran.exit_code == 1
    assert f"is not JSON Lines, line {2 if text.startswith(chr(10)) else 1} is not JSON" in ran.stderr
    assert "a JSON object, on each line" in ran.stderr
    assert not [each for each in node.asked if each.line == BATCH]


@pytest.mark.parametrize("stdin", ["", "\n\n"])
def test_nothing_to_import_is_told_and_nobody_is_asked(node: ScriptedNode, stdin: str) -> None:
    ran = kledger("import", "-", stdin=stdin)
    assert (ran.exit_code, ran.stdout) == (0, "nothing to import: there is no line with a save payload\n")
    ran = kledger("import", "-", "--json", stdin=stdin)
    assert json.loads(ran.stdout).items() >= {"lines": 0, "saved": 0, "position": 0, "searchable": True}.items()
    assert not node.asked

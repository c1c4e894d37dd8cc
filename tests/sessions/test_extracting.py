"""Closing a session, and every so many turns, asks extraction with ids; the words are read where they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kledger import LedgerClient
from ledger.sessions.head import Head
from ledger.sessions.settings import SessionSettings
from producers.operations.available_models import Models, ModelsElsewhere, NoModels
from producers.operations.sessions.extracting import is_due, is_due_for_compaction
from tests.journeys.running_node import caught_up, running, until
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.reactors.conftest import models

FOUND = {"type": "strategy", "task": "t", "category": "c", "domain": "d", "message_ids": ["m-1"]}


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as server:
        server.chat.says({"items": [{**FOUND, "content": "以后都用中文回答"}]}, to="<message id=")
        server.chat.says({"verdicts": []}, to="<new item=")
        yield server


@pytest.fixture
def op(tmp_path: Path, endpoint: EmbeddingEndpoint) -> Iterator[LedgerClient]:
    with running(tmp_path / "data", env=models(endpoint, KLEDGER_SESSION_TURNS="3")) as node, node.client() as client:
        yield client


def said(*numbers: int) -> list[dict[str, Any]]:
    return [
        message
        for n in numbers
        for message in (
            {"id": f"m-{n}", "role": "user", "content": f"the secretword {n}"},
            {"id": f"a-{n}", "role": "assistant", "content": f"answer {n}"},
        )
    ]


def extractions(op: LedgerClient) -> list[dict[str, Any]]:
    caught_up(op)
    rows = op.sql("SELECT id, status, messages FROM extractions ORDER BY requested_position")["rows"]
    return [dict(zip(("id", "status", "messages"), row, strict=True)) for row in rows]


def test_closing_offers_what_was_said_since_to_extraction_and_the_log_has_no_word_of_it(
    op: LedgerClient, endpoint: EmbeddingEndpoint
) -> None:
    session = op.acting_as(user="mei").session("s1")
    op.acting_as(user="mei", agent="scribe").session("s1").append(said(1, 2))
    assert extractions(op) == []
    session.close()
    until(lambda: [each["status"] for each in extractions(op)] == ["completed"], "extraction ends")
    (prompt,) = [asked.text for asked in endpoint.chat.asked if "<message id=" in asked.text]
    assert "the secretword 2" in prompt
    assert "answer 1" in prompt
    assert re.search(r'<message id="m-1" role="user" time="20\d\d-[0-9T:.-]+Z">', prompt)
    events = op.sql("SELECT count(*) FROM events WHERE data::VARCHAR LIKE '%secretword%'")["rows"]
    assert events == [[0]]
    (item,) = op.acting_as(user="mei").list()["results"]
    assert (item["owner"], item["scopes"], item["tags"]["message_ids"]) == ("user:mei", ["user:mei"], ["m-1"])
    assert item["source"]["agent_id"] == "scribe", "who appended, whoever closes"
    session.close()
    session.append(said(2))
    session.close()
    assert len(extractions(op)) == 1, "what was asked is not asked again"
    session.append(said(3))
    session.close()
    until(lambda: len(extractions(op)) == 2, "what is new is asked")
    named = [each["id"] for each in json.loads(extractions(op)[1]["messages"])]
    assert named == ["m-3", "a-3"]


def test_every_so_many_turns_ask_too(op: LedgerClient) -> None:
    session = op.acting_as(user="mei").session("s1")
    session.append(said(1, 2))
    assert extractions(op) == []
    session.append(said(3))
    until(lambda: len(extractions(op)) == 1, "it is asked beside the request")
    session.append(said(4, 5))
    assert len(extractions(op)) == 1
    session.append(said(6))
    until(lambda: len(extractions(op)) == 2, "it is asked again")
    asked = [[each["id"] for each in json.loads(one["messages"])] for one in extractions(op)]
    assert asked == [["m-1", "a-1", "m-2", "a-2", "m-3", "a-3"], ["m-4", "a-4", "m-5", "a-5", "m-6", "a-6"]]


def test_a_context_that_drops_words_asks_for_what_was_not_offered_yet(op: LedgerClient) -> None:
    session = op.acting_as(user="mei", agent="scribe").session("s1")
    long = [{"id": f"m-{n}", "role": "assistant", "content": f"{n} " + "lamp " * 200} for n in range(1, 31)]
    session.append(long[:12])
    assert session.context(20_000)["left_out"] == []
    assert extractions(op) == []
    assert session.context(2_000)["left_out"]
    until(lambda: len(extractions(op)) == 1, "it is asked beside the context")
    session.append(long[12:16])
    session.context(2_000)
    assert len(extractions(op)) == 1, "what was dropped was offered, or is less than a segment"
    session.append(long[16:])
    session.context(2_000)
    until(lambda: len(extractions(op)) == 2, "it is asked again")
    asked = [[each["id"] for each in json.loads(one["messages"])] for one in extractions(op)]
    assert asked == [[f"m-{n}" for n in range(1, 13)], [f"m-{n}" for n in range(13, 31)]]


def test_words_that_are_gone_when_they_are_read_are_a_failure_with_its_reason(
    op: LedgerClient, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.chat.held.clear()
    session = op.acting_as(user="mei").session("s1")
    session.append(said(1))
    session.close()
    until(lambda: endpoint.chat.calls == 1, "the model is asked")
    other = op.acting_as(user="mei").session("s2")
    other.append(said(1))
    other.close()
    other.remove()
    endpoint.chat.held.set()
    until(lambda: [each["status"] for each in extractions(op)] == ["completed", "failed"], "both end")
    assert op.sql("SELECT code FROM extractions WHERE status = 'failed'")["rows"] == [["unknown_session"]]


def test_what_was_found_is_reached_from_the_trace_in_which_its_message_was_said(
    op: LedgerClient, endpoint: EmbeddingEndpoint
) -> None:
    found = [{**FOUND, "content": f"rule {n}", "message_ids": [f"m-{n}"]} for n in (1, 2, 3)]
    endpoint.chat.says({"items": found}, to="<message id=")
    mei = op.acting_as(user="mei")
    for trace, number in (("trace-1", 1), ("trace-2", 2)):
        mei.within(trace_id=trace).session("s1").append(said(number)[:1])
    mei.session("s1").append(said(3)[:1])
    until(lambda: [each["status"] for each in extractions(op)] == ["completed"], "extraction ends")
    items = {item["content"]: item for item in mei.list()["results"]}
    assert {item["source"]["trace_id"] for item in items.values()} == {"s1"}, "a recall in the session knows them"
    for number in (1, 2):
        caused = {edge["entity_id"] for edge in mei.lineage(f"trace:trace-{number}")["edges"]}
        assert [items[f"rule {n}"]["id"] in caused for n in (1, 2, 3)] == [number == n for n in (1, 2, 3)]
        refs = {edge["ref"] for edge in mei.lineage(items[f"rule {number}"]["id"])["edges"]}
        assert {f"trace:trace-{number}", "trace:s1", f"message:m-{number}"} <= refs


KINDS = {"preference": 7, "decision": 7, "follow_up": 3, "mood": 1}
"""The days that each lives: source 004, section 2.2.1."""


def test_what_matters_for_a_while_is_a_short_memory_of_its_kind_that_names_the_session(
    op: LedgerClient, endpoint: EmbeddingEndpoint
) -> None:
    found = [{**FOUND, "type": kind, "content": f"{kind} 以后"} for kind in KINDS]
    endpoint.chat.says({"items": found}, to="<message id=")
    mei = op.acting_as(user="mei")
    session = mei.session("s1")
    session.append(said(1))
    session.close()
    until(lambda: [each["status"] for each in extractions(op)] == ["completed"], "extraction ends")
    (prompt,) = [asked.text for asked in endpoint.chat.asked if "<message id=" in asked.text]
    assert all(f"- {kind}: " in prompt for kind in KINDS)
    memories = mei.memories(limit=10)["results"]
    assert {each["kind"]: each.get("lifetime", 0) / 86_400 for each in memories} == KINDS
    assert {(each["layer"], each["session_id"], *each["scopes"]) for each in memories} == {("short", "s1", "user:mei")}


def test_nothing_for_a_while_is_kept_of_a_request_that_is_no_session(
    op: LedgerClient, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.chat.says({"items": [{**FOUND, "type": "mood", "content": "annoyed"}]}, to="<message id=")
    mei = op.acting_as(user="mei")
    mei.extract(messages=[{"id": "m-1", "role": "user", "content": "no!"}], kind="conversation")
    until(lambda: [each["status"] for each in extractions(op)] == ["completed"], "extraction ends")
    assert mei.list()["results"] == []
    assert "- mood: " not in endpoint.chat.asked[-1].text


@pytest.mark.parametrize(("extract", "models"), [(True, NoModels()), (False, ModelsElsewhere())])
def test_nothing_is_asked_beside_a_request_where_nothing_extracts(extract: bool, models: Models) -> None:
    desk: Any = SimpleNamespace(sessions=SimpleNamespace(settings=SessionSettings(extract=extract)), models=models)
    head = Head(opened=1, count=500, turns=250)
    cut: Any = SimpleNamespace(left_out=[{"last": 490, "by": "budget"}])
    assert not is_due(desk, head)
    assert not is_due_for_compaction(desk, head, cut)
    able: Any = SimpleNamespace(sessions=SimpleNamespace(settings=SessionSettings()), models=ModelsElsewhere())
    assert is_due(able, head)
    assert is_due_for_compaction(able, head, cut)

"""Extraction asked by itself after a finished task and after a verdict: only where a model and a setting say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload
from producers.operations.reflection.asking import VARIABLE, reflected_from_environment
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint
from tests.reactors.conftest import models
from tests.reactors.test_extract import finding, finds, judges


@pytest.fixture(scope="module")
def reflecting(tmp_path_factory: pytest.TempPathFactory, endpoint: EmbeddingEndpoint) -> Iterator[RunningNode]:
    data: Path = tmp_path_factory.mktemp("reflecting") / "data"
    with running(data, env=models(endpoint, **{VARIABLE: "task, verdict"})) as node:
        yield node


@pytest.fixture
def op(reflecting: RunningNode) -> Iterator[LedgerClient]:
    with reflecting.client() as client:
        yield client


def asked_by(op: LedgerClient, owner: str) -> list[dict[str, Any]]:
    caught_up(op)
    columns = ("id", "kind", "status", "messages")
    rows = op.sql(
        f"SELECT id, kind, status, messages FROM extractions WHERE owner = '{owner}' ORDER BY requested_position"
    )["rows"]
    return [dict(zip(columns, row, strict=True)) for row in rows]


def ended(op: LedgerClient, owner: str, number: int) -> list[dict[str, Any]]:
    until(
        lambda: [each["status"] for each in asked_by(op, owner)] == ["completed"] * number,
        f"{number} extractions of {owner} are completed",
    )
    return asked_by(op, owner)


@pytest.mark.parametrize(
    ("word", "reason"), [("wyvern", "it was broken until Monday"), ("夜里部署", "直到周一都是坏的")]
)
def test_a_verdict_that_says_why_is_reflected_on_by_itself(
    op: LedgerClient, chat: ChatEndpoint, word: str, reason: str
) -> None:
    rater, role = f"rater-{word}", f"user:rater-{word}"
    item = op.acting_as(agent="author").save(f"{word} at night", f"{word} on Friday.", ["strategy"], scopes=["public"])
    finds(chat, reason, finding(f"{word}: {reason}", "msg-45", type="strategy"))
    judges(chat, word)
    mei = op.acting_as(user=rater, agent="deployer").within(trace_id=f"trace-{word}", message_id="msg-45")
    mei.rate(item["id"], "harmful", task="release 45", reason=reason)
    (extraction,) = ended(op, role, 1)
    assert extraction["kind"] == "feedback"
    assert reason not in extraction["messages"], "the log has no copy of the words"
    (prompt,) = [call.text for call in chat.asked if reason in call.text and "<message id=" in call.text]
    assert f'<item id="{item["id"]}">\n{word} at night\n{word} on Friday.\n</item>' in prompt
    assert f"harmful\ntask: release 45\nreason: {reason}" in prompt
    (found,) = mei.list(owner=role)["results"]
    assert (found["scopes"], found["source"]["agent_id"]) == ([role], "deployer")
    assert (found["source"]["trace_id"], found["source"]["message_id"]) == (f"trace-{word}", "msg-45")
    caused = {edge["entity_id"] for edge in op.lineage(f"trace:trace-{word}")["edges"]}
    assert {item["id"], found["id"]} <= caused


def test_a_verdict_without_words_or_sent_again_asks_nothing_more(op: LedgerClient, chat: ChatEndpoint) -> None:
    item = op.acting_as(agent="author").save("Oil the kraken", "Twice.", ["strategy"], scopes=["public"])["id"]
    chat.says({"items": []}, to="kraken")
    kim = op.acting_as(user="kim").within(trace_id="trace-kraken", message_id="msg-1")
    kim.rate(item, "helpful", task="oiling")
    for _ in range(2):
        kim.rate(item, "helpful", task="oiling", outcome="the kraken is calm")
    ended(op, "user:kim", 1)


def test_many_verdicts_of_one_request_are_one_prompt(op: LedgerClient, chat: ChatEndpoint) -> None:
    items = [
        op.acting_as(agent="author").save(f"Ride roc {n}", "Gently.", ["strategy"], scopes=["public"])["id"]
        for n in range(3)
    ]
    chat.says({"items": []}, to="roc fell")
    lee = op.acting_as(user="lee")
    lee.rate_many([{"knowledge_id": each, "is_helpful": False, "case": {"reason": "the roc fell"}} for each in items])
    (extraction,) = ended(op, "user:lee", 1)
    assert [each["about"] for each in json.loads(extraction["messages"])] == items


def test_what_is_found_in_one_verdict_of_many_names_the_trace_of_that_verdict(
    op: LedgerClient, chat: ChatEndpoint
) -> None:
    items = [
        op.acting_as(agent="author").save(f"Calm imp {n}", "Softly.", ["strategy"], scopes=["public"])["id"]
        for n in range(2)
    ]
    finds(chat, "imp 1 bit", finding("An imp bites.", "msg-imp-1", type="strategy"))
    judges(chat, "An imp bites")
    uma = op.acting_as(user="uma")
    uma.rate_many(
        [
            {
                "knowledge_id": item,
                "is_helpful": False,
                "case": {"reason": f"imp {n} bit", "trace_id": f"trace-imp-{n}", "message_id": f"msg-imp-{n}"},
            }
            for n, item in enumerate(items)
        ]
    )
    ended(op, "user:uma", 1)
    (found,) = uma.list(owner="user:uma")["results"]
    assert (found["source"]["trace_id"], found["source"]["message_id"]) == ("trace-imp-1", "msg-imp-1")
    assert found["id"] in {edge["entity_id"] for edge in op.lineage("trace:trace-imp-1")["edges"]}


def test_of_an_item_that_only_a_scope_lets_its_judge_read_a_model_gets_no_word(
    op: LedgerClient, chat: ChatEndpoint
) -> None:
    item = op.acting_as(agent="author", project="cave").save(
        "Enter the cave", "The password is basalt.", ["plan"], scopes=["project:cave"]
    )["id"]
    chat.says({"items": []}, to="stalactite")
    op.acting_as(user="ned", project="cave").rate(item, "harmful", reason="a stalactite fell")
    ended(op, "user:ned", 1)
    (prompt,) = [call.text for call in chat.asked if "stalactite" in call.text]
    assert "basalt" not in prompt


def test_words_of_a_verdict_that_were_erased_before_a_model_was_asked_reach_none(
    op: LedgerClient, chat: ChatEndpoint
) -> None:
    item = op.acting_as(agent="author").save("Comb the gorgon", "Slowly.", ["plan"], scopes=["public"])["id"]
    chat.says({"items": []}, to="hydra")
    chat.held.clear()
    try:
        before = chat.calls
        op.acting_as(user="una").rate(item, "harmful", reason="a hydra came")
        until(lambda: chat.calls > before, "a model is at work")
        op.acting_as(user="zoe").rate(item, "harmful", reason="zoe was bitten")
        result_of(op, "forget", subject="user:zoe")
    finally:
        chat.held.set()
    until(lambda: asked_by(op, "user:zoe")[0]["status"] == "failed", "the request of who was forgotten fails")
    assert not [call for call in chat.asked if "bitten" in call.text]


def test_a_task_that_the_scratchpad_has_as_completed_is_reflected_on(op: LedgerClient, chat: ChatEndpoint) -> None:
    finds(chat, "griffin", finding("A griffin wants hay.", "m-1", type="strategy"))
    judges(chat, "griffin")
    session = op.acting_as(user="ivo", agent="keeper").session("stable")
    session.append([{"id": "m-1", "role": "user", "content": "The griffin wants hay."}])
    session.scratchpad({"current_goal": "feed the griffin", "sub_goals": ["feed"]})
    session.scratchpad({"completed": ["feed"]})
    (extraction,) = ended(op, "user:ivo", 1)
    assert (extraction["kind"], [each["id"] for each in json.loads(extraction["messages"])]) == ("task", ["m-1"])
    session.scratchpad({"current_step": "rest", "completed": ["feed"]})
    session.close()
    ended(op, "user:ivo", 1)


def test_a_node_with_a_model_alone_reflects_on_nothing(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    ola = ledger.acting_as(user="ola-silent")
    item = ola.save("Wake the troll", "Never.", ["plan"])["id"]
    ola.rate(item, "harmful", reason="it woke")
    session = ola.session("silent")
    session.append([{"id": "m-1", "role": "user", "content": "The troll woke."}])
    session.scratchpad({"completed": ["wake the troll"]})
    assert asked_by(ledger, "user:ola-silent") == []


@pytest.mark.parametrize(
    ("value", "reflected"),
    [("", set()), ("task", {"task"}), (" Verdict ,task,", {"task", "verdict"})],
)
def test_what_is_reflected_on_is_named_in_the_environment(
    value: str, reflected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert reflected_from_environment() == reflected


def test_a_word_that_is_none_of_them_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "verdicts")
    with pytest.raises(InvalidPayload, match="verdicts"):
        reflected_from_environment()

"""A message with a pasted log or a long story is recalled for like any other, over every interface."""

from __future__ import annotations

import pytest

from kledger import LedgerClient
from kledger.contract.bounds import MOST_QUERY
from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.seal_mark import MARK
from kledger.contract.sessions import MOST_CONTENT
from tests.journeys.running_node import RunningNode

LOG = "".join(
    f"2026-11-28T10:00:{n % 60:02}Z INFO [worker-{n % 7}] GET /orders?page={n} lease {n * 7919 % 1000} renewed\n"
    for n in range(120)
)
QUESTIONS = {
    "Which port is the staging database of the shop on?": "The staging database of the shop is on port 5433.",
    "商城的测试数据库端口是多少？": "商城的测试数据库端口是5433。",
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("pasted", ["{}\n" + LOG, LOG + "\n{}", "Hello.\n{} Thanks a lot!\n" + LOG * 8])
def test_a_question_with_a_pasted_log_is_answered(ann: LedgerClient, question: str, pasted: str) -> None:
    message = pasted.format(question)
    for text in QUESTIONS.values():
        ann.remember(text, "semantic")
    ann.remember("The workers renew a lease of the orders once a minute.", "semantic")
    answer = ann.recall(message)
    assert not answer["nothing_known"]
    assert answer["results"][0]["content"] == QUESTIONS[question]
    assert answer["searched"] <= MOST_QUERY < len(message)
    told = ann.recalls.get(str(answer["recall_id"]))
    assert question in told["query"]
    assert len(told["query"]) == answer["searched"]
    assert "searched" not in ann.recall(question)


def test_every_way_to_ask_takes_a_long_message(ann: LedgerClient) -> None:
    (question, text), *_ = QUESTIONS.items()
    ann.remember(text, "semantic")
    message = f"{LOG}\n{question}"
    assert ann.search(message)["results"][0]["content"] == text
    assert ann.search(message)["searched"] <= MOST_QUERY
    start = ann.startup(message)
    assert text in start["prompt"]
    assert start["searched"] <= MOST_QUERY
    assert text in ann.tools.memory_recall(message)["text"]
    assert ann.tools.knowledge_search(message)["results"][0]["content"] == text


def test_a_message_is_taken_up_to_the_size_of_one_of_a_session(ann: LedgerClient) -> None:
    (question, text), *_ = QUESTIONS.items()
    ann.remember(text, "semantic")
    message = (LOG * 200)[: MOST_CONTENT - len(question) - 1] + "\n" + question
    ann.session("long").append([{"id": "m1", "role": "user", "content": message}])
    assert ann.recall(message, session="long")["results"][0]["content"] == text
    with pytest.raises(InvalidPayload, match="message"):
        ann.recall(message + "?")


@pytest.mark.parametrize("blank", [" " * 9_000, "\u200b" * 4_001])
def test_a_long_message_that_says_nothing_is_refused_and_a_start_goes_without_it(ann: LedgerClient, blank: str) -> None:
    with pytest.raises(InvalidPayload, match="empty"):
        ann.recall(blank)
    with pytest.raises(InvalidPayload, match="empty"):
        ann.search(blank)
    assert ann.startup(blank)["recall_id"]


@pytest.mark.parametrize("before", ["", " ", "\n" * 5_000])
def test_a_long_message_that_begins_as_a_sealed_value_does_is_refused(ann: LedgerClient, before: str) -> None:
    with pytest.raises(InvalidPayload, match="sealed"):
        ann.recall(f"{before}{MARK}{LOG}")


def test_an_address_that_no_node_reads_says_that_a_recall_takes_it(ann: LedgerClient, node: RunningNode) -> None:
    with pytest.raises(LedgerError, match="recall"):
        ann.search(LOG * 10)
    assert ann.recall(LOG * 10)["nothing_known"]

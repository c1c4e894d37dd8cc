"""A recall with models: other words where the own ones find nothing, a reranker within its bounds, an intent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode, running
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.recall.people import somebody
from tests.rerank_endpoint import by_shared_words, reversed_order

QUESTION = "怎么修那个登录的 bug"


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as server:
        yield server


@pytest.fixture(scope="module")
def modelled(served: EmbeddingEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    about = {
        "KLEDGER_MODEL_URL": served.url,
        "KLEDGER_MODEL_KEY": "k",
        "KLEDGER_MODEL_REWRITE": "small",
        "KLEDGER_RERANK_URL": served.url,
        "KLEDGER_RERANK_MODEL": "cross",
        "KLEDGER_RERANK_DEADLINE": "30",
    }
    with running(tmp_path_factory.mktemp("models") / "data", env=about) as node:
        yield node


@pytest.fixture
def ann(modelled: RunningNode) -> Iterator[LedgerClient]:
    with somebody(modelled) as client:
        yield client


def unhurried(ann: LedgerClient, question: str) -> JsonObject:
    """A recall with what the model wrote: what comes too late for one is kept for the next."""
    while True:
        answer = ann.recall(question)
        if not any(lack["part"] == "rewriting" for lack in answer.get("degraded") or ()):
            return dict(answer)


def test_other_words_find_what_the_own_words_do_not(served: EmbeddingEndpoint, ann: LedgerClient) -> None:
    ann.save("user authentication troubleshooting", "Clear the session cookie, then check the token.", ["strategy"])
    ann.save("tea", "Green tea wants eighty degrees.", ["definition"])
    with served.chat.scripted() as chat:
        chat.says({"queries": ["怎么修登录的 bug", "user authentication troubleshooting"]}, to="in other words")
        answer = unhurried(ann, QUESTION)
        in_chinese = f'<question language="zh">\n{QUESTION}\n'
        assert in_chinese in chat.asked[-1].text, "the question's language, whatever the texts of the caller are in"
    assert [item["task"] for item in answer["results"]] == ["user authentication troubleshooting"]
    assert answer["results"][0].get("asked_as") == "user authentication troubleshooting"
    assert answer["floor"] <= answer["results"][0]["match"] <= 0.7
    assert not answer["nothing_known"]


def test_no_model_is_asked_where_the_own_words_find_an_answer(served: EmbeddingEndpoint, ann: LedgerClient) -> None:
    ann.save("登录", "登录的 bug 要先清掉 cookie 再修", ["strategy"])
    with served.chat.scripted() as chat:
        before = chat.calls
        assert ann.recall(QUESTION)["results"]
        assert chat.calls == before


@pytest.mark.parametrize(
    "said", [{"queries": []}, {"queries": ["Knead the dough"]}, {"queries": ["登录 " * 30_000] * 9}, "no document"]
)
def test_a_useless_answer_of_the_model_changes_nothing(
    served: EmbeddingEndpoint, ann: LedgerClient, said: object
) -> None:
    ann.save("bread", "Knead the dough until it is smooth.", ["strategy"])
    with served.chat.scripted() as chat:
        chat.says(said, to="in other words")
        answer = ann.recall(QUESTION)
    assert answer["nothing_known"]
    assert answer["results"] == []


def test_a_dead_model_is_said_to_lack_and_the_rest_answers(served: EmbeddingEndpoint, ann: LedgerClient) -> None:
    with served.chat.scripted() as chat:
        chat.faults += [500] * 9
        answer = ann.recall("where is the violin of the neighbour")
    assert answer["nothing_known"]
    assert [lack["part"] for lack in answer["degraded"]] == ["rewriting"]


def test_a_reranker_is_heard_within_its_bounds_and_shown(served: EmbeddingEndpoint, ann: LedgerClient) -> None:
    ann.save("deploy of the shop", "Deploys of the shop need two reviewers and a quiet evening.", ["plan"])
    ann.save("shop", "The shop closes at eight.", ["definition"])
    served.rerank.scorer = by_shared_words
    answer = ann.recall("deploys of the shop with reviewers", min_match=0.01)
    assert answer["results"][0]["task"] == "deploy of the shop"
    assert all(0.85 <= item["why"].get("rerank", 0) <= 1.15 for item in answer["results"])
    served.rerank.scorer = reversed_order
    turned = ann.recall("deploys of the shop with reviewers", min_match=0.01)
    assert [item["id"] for item in turned["results"]] == [item["id"] for item in answer["results"]]


def test_a_dead_reranker_is_said_to_lack(served: EmbeddingEndpoint, ann: LedgerClient) -> None:
    for number in range(2):
        ann.save("deploy", f"Deploy number {number} of the quay.", ["plan"])
    served.rerank.status = 500
    try:
        answer = ann.recall("deploy of the quay")
    finally:
        served.rerank.status = 200
    assert len(answer["results"]) == 2
    assert [lack["part"] for lack in answer["degraded"]] == ["reranker"]

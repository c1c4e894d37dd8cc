"""Which model does what on a node: told without keys, tried once each, and nothing is called where nothing is set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from consumers.model_settings import TASKS, ModelSettings, setting_of
from kledger import LedgerClient
from kledger.contract.words import ModelWork
from producers.operations.admin.tiers import WITHOUT
from producers.operations.admin.tiers import setting_of as told_setting_of
from tests.journeys.running_node import RunningNode, caught_up, running
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.reactors.conftest import models
from tests.rerank_endpoint import reversed_order

KEYS = ("sk-nobody-may-read-this", "rr-nobody-may-read-this", "emb-nobody-may-read-this")


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running_server:
        yield running_server


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory, served: EmbeddingEndpoint) -> Iterator[RunningNode]:
    """A node with a model for every work, some of which share one."""
    data: Path = tmp_path_factory.mktemp("tiered") / "data"
    env = models(
        served,
        KLEDGER_MODEL_REWRITE="small",
        KLEDGER_MODEL_HYDE="tiny",
        KLEDGER_MODEL_INTENT="small",
        KLEDGER_MODEL_PRICES='{"big": [1, 2], "small": [1, 2], "tiny": [1, 2]}',
        KLEDGER_RERANK_URL=served.url.replace("http://", "http://user:pass-nobody-may-read@"),
        KLEDGER_RERANK_MODEL="cross",
        KLEDGER_RERANK_KEY=KEYS[1],
        KLEDGER_RERANK_DEADLINE="30",
        KLEDGER_EMBEDDING_KEY=KEYS[2],
    )
    with running(data, env=env) as node:
        yield node


@pytest.fixture
def ledger(tiered: RunningNode) -> Iterator[LedgerClient]:
    with tiered.client() as client:
        yield client


def by_work(answer: Any) -> dict[str, dict[str, Any]]:
    return {each["work"]: each for each in answer["models"]}


def test_each_task_has_a_field_of_the_settings_and_each_work_says_what_works_without() -> None:
    fields = ModelSettings.model_fields
    assert all(task in fields for task in TASKS)
    assert tuple(WITHOUT) == get_args(ModelWork)
    assert all(setting_of(task) == told_setting_of(task) for task in TASKS)


def test_what_is_set_is_told_by_work_and_nothing_is_called(ledger: LedgerClient, served: EmbeddingEndpoint) -> None:
    chats, reranks = served.chat.calls, len(served.rerank.asked)
    told = by_work(ledger.models())
    assert {work: each["model"] for work, each in told.items()} == {
        "evolve": "big",
        "extract": "big",
        "slim": "big",
        "summarise": "big",
        "route": "small",
        "intent": "small",
        "rewrite": "small",
        "hyde": "tiny",
        "embed": "m",
        "rerank": "cross",
    }
    assert all(each["tried"] is None for each in told.values())
    assert told["rerank"]["url"] == f"{served.url}/rerank"
    assert (served.chat.calls, len(served.rerank.asked)) == (chats, reranks)


def test_each_model_is_tried_once_whatever_it_does(ledger: LedgerClient, served: EmbeddingEndpoint) -> None:
    with served.chat.scripted() as chat:
        chat.says({"word": "yes"}, to="Do you answer?")
        before, reranks = chat.calls, len(served.rerank.asked)
        tried = by_work(ledger.try_models())
        assert sorted(asked.model for asked in chat.asked[before:]) == ["big", "small", "tiny"]
        assert len(served.rerank.asked) == reranks + 1
    assert all(each["tried"]["error"] is None and each["tried"]["seconds"] >= 0 for each in tried.values())


def test_one_that_does_not_answer_is_told_with_its_reason_and_no_key(
    ledger: LedgerClient, served: EmbeddingEndpoint
) -> None:
    served.rerank.scorer = reversed_order
    served.dimensions = 32
    try:
        with served.chat.scripted() as chat:
            chat.says("refuse: no", to="Do you answer?")
            answer = ledger.try_models()
    finally:
        served.rerank = type(served.rerank)()
        served.dimensions = 64
    tried = by_work(answer)
    assert "declined" in tried["evolve"]["tried"]["error"]
    assert "set KLEDGER_EMBEDDING_DIMENSIONS=" in tried["embed"]["tried"]["error"]
    assert "the query's own words" in tried["rerank"]["tried"]["error"]
    assert not any(key in str(answer) for key in (*KEYS, "pass-nobody-may-read"))


def test_the_works_that_recalls_wait_for_have_metrics(tiered: RunningNode) -> None:
    told = httpx.get(f"{tiered.url}/metrics", timeout=30).text
    for work in ("intent", "rewrite", "hyde", "rerank"):
        assert f'kledger_recall_model_available{{work="{work}"}} 1.0' in told


def test_where_nothing_is_set_nothing_is_called_and_all_works_without(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as client:
        assert all(each["model"] is None and each["tried"] is None for each in client.try_models()["models"])
        client.save("Deploy at night", "On Fridays.", ["plan"], id="night", scopes=["public"])
        caught_up(client)
        assert client.search("deploy")["count"] == 1


def test_a_node_says_which_setting_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="KLEDGER_RERANK"), running(tmp_path / "data", env={"KLEDGER_RERANK_URL": "x"}):
        pass

"""A proxy or certificates of the environment that cannot be used are told, and concern no address of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from consumers.model import ChatModel
from consumers.model_settings import ModelSettings
from consumers.recall.awaited import NoAnswer
from consumers.recall.rerank_settings import RerankSettings
from consumers.recall.reranker import Reranker
from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload, ModelFailed, NodeUnreachable
from projections.vectors.embedding.embeddings import openai_client
from tests.reactors.test_model import PROMPT, Colour

UNUSABLE = {"a SOCKS proxy": "socks5://127.0.0.1:1", "no address": "proxy://", "no certificates": "missing.pem"}
SAID = "the proxy or the certificates that the environment names"


@pytest.fixture(params=UNUSABLE)
def unusable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment with one of them."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    stated = UNUSABLE[request.param]
    if stated.endswith(".pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / stated))
    else:
        monkeypatch.setenv("ALL_PROXY", stated)


@pytest.mark.usefixtures("unusable")
@pytest.mark.parametrize("unusable", ["a SOCKS proxy", "no address"], indirect=True)  # one context serves all tests
def test_the_client_says_that_the_node_cannot_be_asked_so() -> None:
    """It ended with an ImportError of a library."""
    with LedgerClient("https://192.0.2.1:8420", retry_for=0) as ledger, pytest.raises(NodeUnreachable, match=SAID):
        ledger.list()


@pytest.mark.usefixtures("unusable")
def test_an_endpoint_of_embeddings_is_refused_with_what_to_correct() -> None:
    """The vector process ended with a traceback, and the node with it."""
    with pytest.raises(InvalidPayload, match=SAID):
        openai_client("https://models.example/v1", "key", retries=0)


@pytest.mark.usefixtures("unusable")
async def test_a_model_that_cannot_be_asked_has_failed() -> None:
    asking = ChatModel(ModelSettings(url="https://models.example/v1", model="big", retries=0))
    with pytest.raises(ModelFailed):
        await asking.ask("evolve", PROMPT, Colour, key="k")


@pytest.mark.usefixtures("unusable")
async def test_a_reranker_that_cannot_be_asked_gives_no_answer() -> None:
    asking = Reranker(RerankSettings(url="https://models.example", model="m", key=SecretStr("k")))
    with pytest.raises(NoAnswer, match="could not be asked"):
        await asking._posted("query", ["text"], as_texts=True)


@pytest.mark.usefixtures("unusable")
async def test_what_runs_on_this_machine_is_asked_without_either() -> None:
    async with openai_client("http://127.0.0.1:1/v1", "key", retries=0) as local:
        assert local._client._trust_env is False
    asking = Reranker(RerankSettings(url="http://127.0.0.1:1", model="m", key=SecretStr("k")))
    assert asking._connected()._trust_env is False
    await asking.close()
    with LedgerClient("http://127.0.0.1:1", retry_for=0) as ledger, pytest.raises(NodeUnreachable, match="refused"):
        ledger.list()

"""One node with models for all tests that leave it as they found it; the models are the local server's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode, running
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.temporary_files import OF_THE_SESSION


def models(endpoint: EmbeddingEndpoint, **more: str) -> dict[str, str]:
    """The environment of a node whose models, and embeddings, are this server's."""
    return {
        "KLEDGER_MODEL_URL": endpoint.url,
        "KLEDGER_MODEL": "big",
        "KLEDGER_MODEL_ROUTE": "small",
        "KLEDGER_MODEL_KEY": "sk-nobody-may-read-this",
        "KLEDGER_MODEL_PRICES": '{"big": [1.0, 2.0], "small": [0.1, 0.2]}',
        "KLEDGER_EMBEDDING_URL": endpoint.url,
        "KLEDGER_EMBEDDING_MODEL": "m",
        "KLEDGER_EMBEDDING_DIMENSIONS": "64",
        "KLEDGER_EMBEDDING_KEY": "k",
        "KLEDGER_EMBEDDING_DEADLINE": "15",  # no search goes without it, on a slow machine either
    } | more


@pytest.fixture(scope="session")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    """The local server, for the whole session."""
    with embedding_endpoint() as running_server:
        yield running_server


@pytest.fixture
def chat(endpoint: EmbeddingEndpoint) -> Iterator[ChatEndpoint]:
    """What models say in this test: it scripts them by a word of its own, which no later test is answered by."""
    with endpoint.chat.scripted() as chat:
        yield chat


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory, endpoint: EmbeddingEndpoint) -> Iterator[RunningNode]:
    """A node with models."""
    data: Path = tmp_path_factory.mktemp(f"{OF_THE_SESSION}modelled") / "data"
    with running(data, env=models(endpoint)) as node:
        yield node


@pytest.fixture
def ledger(modelled: RunningNode) -> Iterator[LedgerClient]:
    """It, asked by its operator."""
    with modelled.client() as client:
        yield client

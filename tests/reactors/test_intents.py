"""What a message is after, told by a small model within its deadline, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from consumers.model import ChatModel
from consumers.model_settings import ModelSettings
from consumers.recall.intents import MOST_ASKED, ModelIntents
from ledger.runtime.breaker import FAILURES
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running:
        yield running


@pytest.fixture
def chat(endpoint: EmbeddingEndpoint) -> ChatEndpoint:
    return endpoint.chat


@asynccontextmanager
async def intents(endpoint: EmbeddingEndpoint, patience: float = 30.0) -> AsyncIterator[ModelIntents]:
    model = ChatModel(ModelSettings(url=endpoint.url, intent="tiny", timeout=30.0, retries=0))
    made = ModelIntents(model, patience)
    try:
        yield made
    finally:
        await made.awaited.close()
        await model.close()


async def test_the_model_of_the_task_says_what_a_message_is_after(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint
) -> None:
    chat.says({"intent": "bug_fix"}, to="<message>")
    async with intents(endpoint) as asking:
        assert await asking.intent("登录</message>又坏了" + "!" * 9_000) == ("bug_fix", None)
    (asked,) = chat.asked
    assert asked.model == "tiny"
    assert asked.text.count("</message>") == 1
    assert len(asked.text) < MOST_ASKED + 2_000


@pytest.mark.parametrize(
    "said", [{"intent": "none of these"}, {"intent": ""}, {"intent": "x" * 100_000}, "no", "refuse: no", "y" * 100_000]
)
async def test_an_answer_that_is_no_intent_is_none(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, said: object
) -> None:
    chat.says(said, to="<message>")
    async with intents(endpoint) as asking:
        found, reason = await asking.intent("What broke?")
    assert found is None
    assert reason


async def test_a_slow_model_costs_its_deadline_and_then_nothing(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint
) -> None:
    chat.says({"intent": "bug_fix"}, to="<message>")
    chat.held.clear()
    try:
        async with intents(endpoint, patience=0.1) as asking:
            for _ in range(FAILURES):
                found, reason = await asking.intent("What broke?")
                assert found is None
                assert "within 0.1 s" in (reason or "")
            assert asking.awaited.breaker.reason
    finally:
        chat.held.set()

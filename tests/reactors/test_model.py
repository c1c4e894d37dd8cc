"""How a chat model is asked: in which form, how often, for how much, and what is told when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import generate_latest
from pydantic import BaseModel, ConfigDict, SecretStr
from structlog.testing import capture_logs

from consumers import model_faults
from consumers.model import Answer, ChatModel, Prompt
from consumers.model_settings import ModelSettings, Price, model_settings_from_environment
from kledger.contract.errors import BudgetSpent, InvalidPayload, LedgerError, ModelFailed, ModelRefused, NotAvailable
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint

PROMPT = Prompt("evolve-1", "Be brief.", "A secret of the prompt: 密码.")
KEY = "sk-nobody-may-read-this"


class Colour(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")

    name: str
    bright: bool


BLUE = {"name": "blue", "bright": False}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingEndpoint]:
    monkeypatch.setattr(model_faults, "FIRST_PAUSE", 0.01)
    with embedding_endpoint() as running:
        running.chat.says(BLUE)
        yield running


@pytest.fixture
def chat(endpoint: EmbeddingEndpoint) -> ChatEndpoint:
    return endpoint.chat


def settings(endpoint: EmbeddingEndpoint, **about: Any) -> ModelSettings:
    return ModelSettings(url=endpoint.url, key=SecretStr(KEY), **{"model": "big", "timeout": 5.0, **about})


async def ask(endpoint: EmbeddingEndpoint, *, key: str = "call-1", spent: float = 0.0, **about: Any) -> Answer[Colour]:
    async def spent_today() -> float:
        return spent

    asking = ChatModel(settings(endpoint, **about), spent_today)
    try:
        return await asking.ask("evolve", PROMPT, Colour, key=key)
    finally:
        await asking.close()


async def test_the_answer_has_the_form_asked_for_and_says_what_it_cost(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint
) -> None:
    got = await ask(endpoint, evolve="small", prices={"small": Price(1.0, 10.0)})
    assert got.value == Colour(name="blue", bright=False)
    usage = got.usage
    assert (usage.model, usage.prompt_version, usage.calls) == ("small", "evolve-1", 1)
    assert usage.cost_usd == pytest.approx((usage.input_tokens + 10 * usage.output_tokens) / 1e6)
    (asked,) = chat.asked
    assert (asked.key, asked.model, asked.form, asked.bearer) == ("call-1", "small", "json_schema", f"Bearer {KEY}")


async def test_without_a_price_the_cost_is_unknown_not_nothing(endpoint: EmbeddingEndpoint) -> None:
    assert (await ask(endpoint)).usage.cost_usd is None


@pytest.mark.parametrize("fault", [429, 503, 500])
async def test_what_was_not_done_is_asked_for_again_with_the_same_key(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, fault: int
) -> None:
    chat.faults = [fault, fault]
    assert (await ask(endpoint)).usage.calls == 1
    assert [asked.key for asked in chat.asked] == ["call-1"] * 3
    assert chat.billed == 1


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_cut_off_is_made_again_only_where_a_key_is_billed_once(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, idempotent: bool
) -> None:
    chat.ignores_key = not idempotent
    chat.faults = ["cut_after"]
    if idempotent:
        assert (await ask(endpoint, idempotent=True)).value.name == "blue"
    else:
        with pytest.raises(ModelFailed):
            await ask(endpoint)
    assert chat.billed == 1


async def test_a_slow_endpoint_is_given_up_after_the_time_set(endpoint: EmbeddingEndpoint, chat: ChatEndpoint) -> None:
    chat.held.clear()
    with pytest.raises(ModelFailed, match="did not answer in time"):
        await ask(endpoint, timeout=0.2)
    chat.held.set()


async def test_an_endpoint_that_is_not_there_is_tried_again_and_told_as_such() -> None:
    nowhere = ChatModel(ModelSettings(url="http://127.0.0.1:9/v1", model="big", retries=1, timeout=2.0))
    with pytest.raises(ModelFailed, match="could not be asked"):
        await nowhere.ask("evolve", PROMPT, Colour, key="k")
    await nowhere.close()
    assert b"kledger_model_retries_total" in generate_latest(nowhere.metrics.registry)


async def test_an_answer_out_of_form_is_asked_for_once_more_and_both_are_paid_for(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint
) -> None:
    chat.says("I like blue.")
    chat.says("Here you are:\n```json\n" + '{"name": "blue", "bright": false}\n```', to="does not fit")
    got = await ask(endpoint)
    assert (got.value.name, got.usage.calls, chat.billed) == ("blue", 2, 2)
    chat.says('{"name": 3}', to="does not fit")
    with pytest.raises(ModelFailed) as failed:
        await ask(endpoint, key="call-2")
    assert failed.value.details["usage"]["calls"] == 2  # type: ignore[index]


SAYS = b'{"choices": [{"message": {"content": "{\\"name\\": \\"blue\\", \\"bright\\": false}"}}], "usage": %s}'


@pytest.mark.parametrize(
    "body",
    [
        b"<html>the gateway says hello</html>",
        b"",
        b"\xff",
        b"[" * 100_000,
        b"null",
        b"[]",
        b'"text"',
        b'{"error": {"message": "busy"}}',
        b'{"choices": null, "usage": null}',
        b'{"choices": {}, "usage": "free"}',
        b'{"choices": []}',
        b'{"choices": [null]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": [{"type": "text", "text": "{}"}]}}]}',
    ],
)
async def test_whatever_is_answered_that_is_no_completion_is_a_failure_of_the_model_that_may_be_billed(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, body: bytes
) -> None:
    chat.body = body
    with pytest.raises(ModelFailed, match="big answered with no ") as failed:
        await ask(endpoint)
    assert failed.value.details["usage"]["calls"] == 1  # type: ignore[index]
    assert len(chat.asked) == 1, "it may be billed, so it is not asked for again"


@pytest.mark.parametrize(
    "usage",
    [
        b"null",
        b"[]",
        b'"free"',
        b"{}",
        b'{"prompt_tokens": null, "completion_tokens": "3"}',
        b'{"prompt_tokens": -5, "completion_tokens": 1e300}',
        b'{"prompt_tokens": true, "completion_tokens": NaN}',
    ],
)
async def test_a_usage_that_is_none_is_no_tokens_and_the_answer_counts(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, usage: bytes
) -> None:
    chat.body = SAYS % usage
    got = await ask(endpoint, prices={"big": Price(1.0, 10.0)})
    assert got.value.name == "blue"
    assert (got.usage.input_tokens, got.usage.output_tokens, got.usage.cost_usd) == (0, 0, 0.0)


async def test_no_number_of_tokens_is_too_large_for_an_event(endpoint: EmbeddingEndpoint, chat: ChatEndpoint) -> None:
    chat.body = SAYS % b'{"prompt_tokens": 1%s, "completion_tokens": 3}' % (b"0" * 30)
    got = await ask(endpoint, prices={"big": Price(1.0, 10.0)})
    assert got.usage.input_tokens > 1_000_000
    assert got.usage.output_tokens == 3


async def test_an_endpoint_without_schemas_is_told_the_schema_in_words(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint
) -> None:
    chat.unknown_forms = {"json_schema", "json_object"}
    got = await ask(endpoint)
    assert (got.value.name, got.usage.calls) == ("blue", 1)
    assert [asked.form for asked in chat.asked] == ["json_schema", "json_object", "text"]
    assert '"bright"' in chat.asked[-1].text


@pytest.mark.parametrize(
    ("said", "error"), [("refuse: no", ModelRefused), ("length: so", ModelFailed)], ids=["refused", "cut off"]
)
async def test_a_refusal_and_an_answer_cut_off_say_what_they_cost(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, said: str, error: type[LedgerError]
) -> None:
    chat.says(said)
    with pytest.raises(error) as failed:
        await ask(endpoint)
    assert failed.value.details["usage"]["calls"] == 1  # type: ignore[index]


async def test_no_more_calls_are_under_way_than_are_allowed(endpoint: EmbeddingEndpoint, chat: ChatEndpoint) -> None:
    chat.delay = 0.05
    asking = ChatModel(settings(endpoint, concurrency=2))
    await asyncio.gather(*(asking.ask("slim", PROMPT, Colour, key=f"k{n}") for n in range(6)))
    await asking.close()
    assert chat.most_at_once == 2


async def test_when_the_days_budget_is_spent_nothing_is_asked(endpoint: EmbeddingEndpoint, chat: ChatEndpoint) -> None:
    priced: dict[str, Any] = {"budget_usd": 0.5, "prices": {"big": Price(10_000.0, 10_000.0)}}
    with pytest.raises(BudgetSpent):  # by what the log says of calls before this process
        await ask(endpoint, spent=0.5, **priced)
    assert chat.calls == 0
    asking = ChatModel(settings(endpoint, **{**priced, "budget_usd": 0.01}))
    await asking.ask("route", PROMPT, Colour, key="k1")
    with pytest.raises(BudgetSpent):  # by a call that no event tells of
        await asking.ask("evolve", PROMPT, Colour, key="k2")
    await asking.close()
    assert chat.calls == 1


def test_a_task_without_a_model_and_a_budget_without_a_price_are_not_available() -> None:
    with pytest.raises(NotAvailable, match="KLEDGER_MODEL"):
        ModelSettings(model="").model_for("slim", "any")
    with pytest.raises(NotAvailable, match="price"):
        ModelSettings(model="big", budget_usd=1.0).model_for("slim")
    chosen = ModelSettings(model="big", slim="small")
    assert [chosen.model_for("evolve"), chosen.model_for("slim"), chosen.model_for("slim", "x")] == [
        "big",
        "small",
        "x",
    ]


def test_the_environment_is_read_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KLEDGER_MODEL": "big",
        "KLEDGER_MODEL_ROUTE": "tiny",
        "KLEDGER_MODEL_KEY": KEY,
        "KLEDGER_MODEL_PRICES": '{"big": [1.5, 6]}',
        "KLEDGER_MODEL_BUDGET_USD": "2",
        "KLEDGER_MODEL_IDEMPOTENT": "true",
    }.items():
        monkeypatch.setenv(name, value)
    read = model_settings_from_environment()
    assert read.named() == {"big", "tiny"}
    assert (read.prices["big"], read.budget_usd, read.idempotent) == ((1.5, 6), 2.0, True)
    assert KEY not in repr(read)
    monkeypatch.setenv("KLEDGER_MODEL_TIMEOUT", "soon")
    with pytest.raises(InvalidPayload, match="KLEDGER_MODEL_TIMEOUT"):
        model_settings_from_environment()


@pytest.mark.parametrize("fault", [400, 401, 500, "cut"])
async def test_neither_logs_nor_errors_hold_the_key_or_the_prompt(
    endpoint: EmbeddingEndpoint, chat: ChatEndpoint, fault: int | str
) -> None:
    chat.faults = [fault] * 9
    with capture_logs() as logged, pytest.raises(ModelFailed) as failed:
        await ask(endpoint, retries=1)
    told = f"{logged}{failed.value.message}{failed.value.details}{failed.value.__cause__}"
    assert KEY not in told
    assert "secret" not in told

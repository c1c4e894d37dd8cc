"""Chat model client for any endpoint with OpenAI's chat completions API; the only module that calls one.

Each call has a key (`Idempotency-Key`), a timeout, a slot of the concurrency limit, and a part of the day's budget.
The usage is returned with the answer, and with an error as well. No prompt text and no key is logged or in an error.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic

import structlog

from consumers.model_metrics import ModelMetrics
from consumers.model_settings import ModelSettings
from consumers.structured import FORMS, A, Form, InvalidAnswer, document_in, response_format, schema_instruction
from kledger.contract.errors import BudgetSpent, LedgerError, ModelFailed, ModelRefused
from kledger.contract.words import ModelTask
from ledger.events.usage import Usage
from ledger.runtime.breaker import stated_pause

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
    from openai.types.chat import ChatCompletion

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 20.0
"""Seconds before a retry: exponential backoff, or the endpoint's Retry-After."""

# Statuses of a call that was not processed, and is not billed.
_NOT_DONE = {409, 429, 500, 503}
# Timeouts on the way: the call may have been processed, and billed.
_PERHAPS_DONE = {408, 502, 504}
_NEVER_SENT = {"ConnectError", "ConnectTimeout"}
# What is asked while a reader waits: no event has its cost, so this process counts it.
_UNKEPT: frozenset[ModelTask] = frozenset({"route", "intent", "rewrite", "hyde"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: the rules (`system`) and the material (`text`). `version` is recorded with the answer."""

    version: str
    system: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer(Generic[A]):
    """A model's answer, parsed into the requested form, and its usage."""

    value: A
    usage: Usage


async def _no_cost() -> float:
    return 0.0


class ChatModel:
    """The models of one node, by task.

    `spent_today` returns the day's cost according to the log, in US dollars, so that the budget includes other nodes'
    calls and those before a restart. A few concurrent calls may exceed the budget.
    """

    def __init__(self, settings: ModelSettings, spent_today: Callable[[], Awaitable[float]] = _no_cost) -> None:
        self.settings = settings
        self.metrics = ModelMetrics()
        self._spent_today = spent_today
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._client: AsyncOpenAI | None = None
        self._forms: dict[str, int] = {}
        self._day = datetime.now(UTC).date()
        self._spent = {"kept": 0.0, "unkept": 0.0}

    @property
    def idempotent(self) -> bool:
        """Whether a call may be repeated with its key and is billed once."""
        return self.settings.idempotent

    def named(self, task: ModelTask, model: str | None = None) -> str:
        """The model that would be called. Raises NotAvailable."""
        return self.settings.model_for(task, model)

    async def ask(
        self,
        task: ModelTask,
        prompt: Prompt,
        answer: type[A],
        *,
        key: str,
        model: str | None = None,
        timeout: float | None = None,
        tried: bool = False,
    ) -> Answer[A]:
        """Call the task's model and parse its answer as `answer`; an invalid answer is repaired by a second call.

        `key` is the idempotency key of the call; `tried` says that it only tries the model, so no event will have its
        cost. `answer` has to forbid extra fields and have no defaults, as endpoints
        with strict schemas require. Raises NotAvailable, BudgetSpent, ModelRefused, ModelFailed; the latter two have
        `usage` in their details where something was billed.
        """
        name = self.named(task, model)
        await self._within_budget()
        usage = Usage(model=name, prompt_version=prompt.version, calls=0)
        began, outcome = time.perf_counter(), "failed"
        try:
            async with self._slots:
                value, usage = await self._answered(task, prompt, answer, key, usage, timeout, tried)
            outcome = "answered"
            return Answer(value, usage)
        except LedgerError as error:
            outcome = "refused" if isinstance(error, ModelRefused) else "failed"
            raise
        finally:
            label = name if name in self.settings.named() else "other"
            self.metrics.calls.labels(task, label, outcome).inc()
            self.metrics.seconds.labels(task).observe(time.perf_counter() - began)

    def get_ready(self) -> None:
        """Import the client library on a thread: it takes half a second, which would block the first call's loop."""
        threading.Thread(target=importlib.import_module, args=("openai",), name="import-openai", daemon=True).start()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def _answered(
        self,
        task: ModelTask,
        prompt: Prompt,
        answer: type[A],
        key: str,
        usage: Usage,
        timeout: float | None,
        tried: bool,
    ) -> tuple[A, Usage]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        for repair in ("", ":repair"):
            completion = await self._completed(task, messages, answer, key + repair, usage, timeout)
            usage = self._billed(task, usage, completion, kept=not tried and task not in _UNKEPT)
            text = _text_of(completion, usage)
            try:
                return document_in(text, answer), usage
            except InvalidAnswer as error:
                fault = str(error)
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": f"This does not fit the form asked for: {fault}. Answer again, in form."},
            ]
        raise ModelFailed(
            f"{usage.model} did not answer in the form asked for, not when asked again either: choose another model",
            usage=usage.model_dump(),
        )

    async def _completed(
        self,
        task: ModelTask,
        messages: list[dict[str, str]],
        answer: type[A],
        key: str,
        usage: Usage,
        timeout: float | None,
    ) -> ChatCompletion:
        """One completion, in the strictest form that the endpoint supports for this model."""
        import openai

        while True:
            at = self._forms.get(usage.model, 0)
            form = FORMS[at]
            try:
                return await self._sent(
                    task, messages, answer, form, key if at == 0 else f"{key}:{form}", usage, timeout
                )
            except openai.BadRequestError as error:
                if form == "text" or not _is_about_form(error):
                    raise _failed(usage, error) from None
            self._forms[usage.model] = max(at + 1, self._forms.get(usage.model, 0))

    async def _sent(
        self,
        task: ModelTask,
        messages: list[dict[str, str]],
        answer: type[A],
        form: Form,
        key: str,
        usage: Usage,
        timeout: float | None,
    ) -> ChatCompletion:
        import openai

        first, *rest = messages
        sent: Any = [{**first, "content": first["content"] + schema_instruction(form, answer)}, *rest]
        wanted: Any = response_format(form, answer)
        for attempt in range(self.settings.retries + 1):
            try:
                return await self._connected().chat.completions.create(
                    model=usage.model,
                    messages=sent,
                    response_format=openai.omit if wanted is None else wanted,
                    timeout=timeout or self.settings.timeout,
                    extra_headers={"Idempotency-Key": key},
                )
            except openai.BadRequestError:
                raise
            except openai.OpenAIError as error:
                if attempt == self.settings.retries or not self._may_repeat(error):
                    raise _failed(usage, error) from None
                pause = _pause(error, attempt)
            self.metrics.retries.labels(task).inc()
            log.info("a model is asked again", task=task, model=usage.model, attempt=attempt + 2, pause=pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            import openai  # takes a third of a second, which a node without a model need not spend

            # The library's retries would repeat a call that was interrupted after it was sent and may be billed.
            self._client = openai.AsyncOpenAI(
                base_url=self.settings.url, api_key=self.settings.key.get_secret_value() or "none", max_retries=0
            )
        return self._client

    def _may_repeat(self, error: OpenAIError) -> bool:
        """Whether the call can be repeated without being billed twice."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return error.status_code in _NOT_DONE or (self.idempotent and error.status_code in _PERHAPS_DONE)
        if isinstance(error, openai.APIConnectionError):
            return self.idempotent or type(error.__cause__).__name__ in _NEVER_SENT
        return False

    def _billed(self, task: ModelTask, before: Usage, completion: ChatCompletion, *, kept: bool) -> Usage:
        """Count a completion's usage in the metrics, and add it to the usage so far; `kept` where an event will."""
        usage = completion.usage
        tokens_in, tokens_out = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        price = self.settings.prices.get(before.model)
        cost = None if price is None else (tokens_in * price.input + tokens_out * price.output) / 1e6
        label = before.model if before.model in self.settings.named() else "other"
        self.metrics.tokens.labels(task, label, "input").inc(tokens_in)
        self.metrics.tokens.labels(task, label, "output").inc(tokens_out)
        if cost is not None:
            self.metrics.cost.labels(task, label).inc(cost)
            self._today()["kept" if kept else "unkept"] += cost
        return Usage(
            model=before.model,
            prompt_version=before.prompt_version,
            input_tokens=before.input_tokens + tokens_in,
            output_tokens=before.output_tokens + tokens_out,
            cost_usd=None if cost is None else round((before.cost_usd or 0.0) + cost, 9),
            calls=before.calls + 1,
        )

    def _today(self) -> dict[str, float]:
        if (today := datetime.now(UTC).date()) != self._day:
            self._day, self._spent = today, {"kept": 0.0, "unkept": 0.0}
        return self._spent

    async def _within_budget(self) -> None:
        if (budget := self.settings.budget_usd) is None:
            return
        ours = self._today()
        # Calls not yet in the log are only in our count; calls before this process started are only in the log.
        spent = max(await self._spent_today(), ours["kept"]) + ours["unkept"]
        if spent >= budget:
            now = datetime.now(UTC)
            tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
            raise BudgetSpent(
                f"models have cost {spent:.4f} US dollars today, and {budget:g} are allowed: ask again after midnight "
                "UTC, or raise KLEDGER_MODEL_BUDGET_USD",
                retry_after=int((tomorrow - now).total_seconds()) + 1,
            )


def _text_of(completion: ChatCompletion, usage: Usage) -> str:
    """The text of the model's answer. Raises ModelRefused, ModelFailed for an answer that was cut off."""
    if not completion.choices:
        raise ModelFailed(f"{usage.model} answered with no choices: try again", usage=usage.model_dump())
    choice = completion.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelRefused(f"{usage.model} declined to answer: change what it is asked", usage=usage.model_dump())
    if choice.finish_reason == "length":
        raise ModelFailed(
            f"the answer of {usage.model} was cut off at its length limit: ask for less", usage=usage.model_dump()
        )
    return choice.message.content or ""


def _is_about_form(error: APIStatusError) -> bool:
    return any(word in str(error.body) for word in ("response_format", "json_schema", "json_object"))


def _failed(usage: Usage, error: OpenAIError) -> ModelFailed:
    """The error without the endpoint's message, which often repeats keys and prompts."""
    import openai

    if isinstance(error, openai.APIStatusError):
        code = f" ({error.code})" if error.code else ""
        what = f"answered with status {error.status_code}{code}"
    elif isinstance(error, openai.APITimeoutError):
        what = "did not answer in time"
    else:
        what = f"could not be asked ({type(error.__cause__ or error).__name__})"
    return ModelFailed(
        f"{usage.model} {what}: check KLEDGER_MODEL_URL, the key and the model's name, or try again later",
        usage=usage.model_dump() if usage.calls else None,
    )


def _pause(error: OpenAIError, attempt: int) -> float:
    import openai

    stated = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    wanted = stated_pause(stated)
    return min(FIRST_PAUSE * 2**attempt if wanted is None else wanted, LONGEST_PAUSE)

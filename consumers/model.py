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
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic

import structlog

from consumers.model_faults import failed, is_about_form, may_repeat, pause_before, text_of, tokens_of
from consumers.model_metrics import ModelMetrics
from consumers.model_settings import ModelSettings
from consumers.structured import FORMS, A, Form, InvalidAnswer, document_in, response_format, schema_instruction
from kledger.contract.errors import BudgetSpent, InvalidPayload, LedgerError, ModelFailed, ModelRefused
from kledger.contract.words import ModelTask
from ledger.events.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

log = structlog.get_logger(__name__)

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


@dataclass(frozen=True, slots=True)
class _Call(Generic[A]):
    """One call of a model, whose answer has the form `answer`; `kept`: an event will have its cost."""

    task: ModelTask
    model: str
    answer: type[A]
    key: str
    timeout: float
    kept: bool


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
        kept = not tried and task not in _UNKEPT
        call = _Call(task, name, answer, key, timeout or self.settings.timeout, kept)
        began, outcome = time.perf_counter(), "failed"
        try:
            async with self._slots:
                value, usage = await self._answered(call, prompt)
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

    async def _answered(self, call: _Call[A], prompt: Prompt) -> tuple[A, Usage]:
        usage = Usage(model=call.model, prompt_version=prompt.version, calls=0)
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        for key in (call.key, f"{call.key}:repair"):
            completion = await self._completed(replace(call, key=key), messages, usage)
            usage = self._billed(call, usage, completion)
            text = text_of(completion, usage)
            try:
                return document_in(text, call.answer), usage
            except InvalidAnswer as error:
                fault = str(error)
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": f"This does not fit the form asked for: {fault}. Answer again, in form."},
            ]
        raise ModelFailed(
            f"{call.model} did not answer in the form asked for, not when asked again either: choose another model",
            usage=usage.model_dump(),
        )

    async def _completed(self, call: _Call[A], messages: list[dict[str, str]], usage: Usage) -> ChatCompletion | None:
        """One completion, in the strictest form that the endpoint supports for this model; None: it cannot be read."""
        import openai

        while True:
            at = self._forms.get(call.model, 0)
            form = FORMS[at]
            in_form = call if at == 0 else replace(call, key=f"{call.key}:{form}")
            try:
                return await self._sent(in_form, messages, form, usage)
            except openai.BadRequestError as error:
                if form == "text" or not is_about_form(error):
                    raise failed(usage, error) from None
            self._forms[call.model] = max(at + 1, self._forms.get(call.model, 0))

    async def _sent(
        self, call: _Call[A], messages: list[dict[str, str]], form: Form, usage: Usage
    ) -> ChatCompletion | None:
        import openai

        from projections.vectors.embedding.embeddings import UNREADABLE

        first, *rest = messages
        sent: Any = [{**first, "content": first["content"] + schema_instruction(form, call.answer)}, *rest]
        wanted: Any = response_format(form, call.answer)
        for attempt in range(self.settings.retries + 1):
            try:
                return await self._connected().chat.completions.create(
                    model=call.model,
                    messages=sent,
                    response_format=openai.omit if wanted is None else wanted,
                    timeout=call.timeout,
                    extra_headers={"Idempotency-Key": call.key},
                )
            except openai.BadRequestError:
                raise
            except UNREADABLE:
                return None  # it came with status 200, so it may be billed: it is not asked for again
            except openai.OpenAIError as error:
                if attempt == self.settings.retries or not may_repeat(error, idempotent=self.idempotent):
                    raise failed(usage, error) from None
                pause = pause_before(error, attempt)
            self.metrics.retries.labels(call.task).inc()
            log.info("a model is asked again", task=call.task, model=call.model, attempt=attempt + 2, pause=pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            from projections.vectors.embedding.embeddings import openai_client

            # The library's retries would repeat a call that was interrupted after it was sent and may be billed.
            try:
                self._client = openai_client(
                    self.settings.url, self.settings.key.get_secret_value() or "none", retries=0
                )
            except InvalidPayload as error:
                import openai

                raise openai.OpenAIError(error.message) from error.__cause__
        return self._client

    def _billed(self, call: _Call[A], before: Usage, completion: ChatCompletion | None) -> Usage:
        """Count a completion's usage in the metrics, and add it to the usage so far."""
        tokens_in, tokens_out = tokens_of(completion)
        price = self.settings.prices.get(call.model)
        cost = None if price is None else (tokens_in * price.input + tokens_out * price.output) / 1e6
        label = call.model if call.model in self.settings.named() else "other"
        self.metrics.tokens.labels(call.task, label, "input").inc(tokens_in)
        self.metrics.tokens.labels(call.task, label, "output").inc(tokens_out)
        if cost is not None:
            self.metrics.cost.labels(call.task, label).inc(cost)
            self._today()["kept" if call.kept else "unkept"] += cost
        return Usage(
            model=call.model,
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

"""How is a chat model asked? The one file that calls one: any endpoint that speaks OpenAI's chat completions API.

Each call has a key (`Idempotency-Key`), a time limit, a place among those under way, and a part in the day's budget.
What it cost is told with its answer, and with its failure as well. Texts and keys stand in no log and in no error.
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
from consumers.model_settings import ModelSettings, Task
from consumers.structured import FORMS, A, Form, Unfit, document_in, response_format, stated
from kledger.contract.errors import BudgetSpent, LedgerError, ModelFailed, ModelRefused
from ledger.events.usage import Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError
    from openai.types.chat import ChatCompletion

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 20.0
"""Seconds before a call is made again: twice as long each time, or as long as the endpoint asks for."""

# An endpoint that answers so has not done the work, and bills nothing.
_NOT_DONE = {409, 429, 500, 503}
# Somebody on the way gave up: the work may have been done, and billed.
_PERHAPS_DONE = {408, 502, 504}
_NEVER_SENT = {"ConnectError", "ConnectTimeout"}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is told: the rules (`system`), then the material (`text`). `version` is kept with the answer."""

    version: str
    system: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer(Generic[A]):
    """What a model said, in the form asked for, and what that cost."""

    said: A
    usage: Usage


async def _nothing_kept() -> float:
    return 0.0


class ChatModel:
    """The models of one node, by task.

    `spent_today` tells the day's cost as the log has it, in US dollars, so that neither a restart nor another node's
    calls are forgotten; a few calls under way may go beyond the budget.
    """

    def __init__(self, settings: ModelSettings, spent_today: Callable[[], Awaitable[float]] = _nothing_kept) -> None:
        self.settings = settings
        self.metrics = ModelMetrics()
        self._spent_today = spent_today
        self._places = asyncio.Semaphore(settings.concurrency)
        self._client: AsyncOpenAI | None = None
        self._forms: dict[str, int] = {}
        self._day = datetime.now(UTC).date()
        self._spent = {"kept": 0.0, "unkept": 0.0}

    @property
    def idempotent(self) -> bool:
        """Whether a call may be made again with its key, and is billed once."""
        return self.settings.idempotent

    def named(self, task: Task, model: str | None = None) -> str:
        """The model that would be asked. Raises NotAvailable."""
        return self.settings.model_for(task, model)

    async def ask(
        self,
        task: Task,
        prompt: Prompt,
        answer: type[A],
        *,
        key: str,
        model: str | None = None,
        timeout: float | None = None,
    ) -> Answer[A]:
        """What the task's model says, as `answer`; one that does not fit is asked for once more.

        `key` names this call for good: the same key is the same call. `answer` forbids what it does not name and
        has no defaults, as endpoints with strict schemas want it. Raises NotAvailable, BudgetSpent, ModelRefused,
        ModelFailed; the latter two have `usage` in their details where something was billed.
        """
        name = self.named(task, model)
        await self._within_budget()
        usage = Usage(model=name, prompt_version=prompt.version, calls=0)
        began, outcome = time.perf_counter(), "failed"
        try:
            async with self._places:
                said, usage = await self._answered(task, prompt, answer, key, usage, timeout)
            outcome = "answered"
            return Answer(said, usage)
        except LedgerError as error:
            outcome = "refused" if isinstance(error, ModelRefused) else "failed"
            raise
        finally:
            label = name if name in self.settings.named() else "other"
            self.metrics.calls.labels(task, label, outcome).inc()
            self.metrics.seconds.labels(task).observe(time.perf_counter() - began)

    def get_ready(self) -> None:
        """Import the client on a thread: half a second in which the loop would stand still with the first call."""
        threading.Thread(target=importlib.import_module, args=("openai",), name="import-openai", daemon=True).start()

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.close()

    async def _answered(
        self, task: Task, prompt: Prompt, answer: type[A], key: str, usage: Usage, timeout: float | None
    ) -> tuple[A, Usage]:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.text}]
        for repair in ("", ":repair"):
            completion = await self._completed(task, messages, answer, key + repair, usage, timeout)
            usage = self._billed(task, usage, completion)
            text = _text_of(completion, usage)
            try:
                return document_in(text, answer), usage
            except Unfit as unfit:
                fault = str(unfit)
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
        task: Task,
        messages: list[dict[str, str]],
        answer: type[A],
        key: str,
        usage: Usage,
        timeout: float | None,
    ) -> ChatCompletion:
        """One completion, in the strictest form that the endpoint takes for this model."""
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
        task: Task,
        messages: list[dict[str, str]],
        answer: type[A],
        form: Form,
        key: str,
        usage: Usage,
        timeout: float | None,
    ) -> ChatCompletion:
        import openai

        first, *rest = messages
        told: Any = [{**first, "content": first["content"] + stated(form, answer)}, *rest]
        wanted: Any = response_format(form, answer)
        for attempt in range(self.settings.retries + 1):
            try:
                return await self._connected().chat.completions.create(
                    model=usage.model,
                    messages=told,
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
            import openai  # takes a third of a second, which every start of a node without a model would pay

            # Its own retries would repeat a call that was cut off after it was sent, and may have been billed.
            self._client = openai.AsyncOpenAI(
                base_url=self.settings.url, api_key=self.settings.key.get_secret_value() or "none", max_retries=0
            )
        return self._client

    def _may_repeat(self, error: OpenAIError) -> bool:
        """Whether the call can be made again without being billed twice."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return error.status_code in _NOT_DONE or (self.idempotent and error.status_code in _PERHAPS_DONE)
        if isinstance(error, openai.APIConnectionError):
            return self.idempotent or type(error.__cause__).__name__ in _NEVER_SENT
        return False

    def _billed(self, task: Task, before: Usage, completion: ChatCompletion) -> Usage:
        """The usage so far with this completion's, counted."""
        told = completion.usage
        given, taken = (told.prompt_tokens, told.completion_tokens) if told else (0, 0)
        price = self.settings.prices.get(before.model)
        cost = None if price is None else (given * price.input + taken * price.output) / 1e6
        label = before.model if before.model in self.settings.named() else "other"
        self.metrics.tokens.labels(task, label, "input").inc(given)
        self.metrics.tokens.labels(task, label, "output").inc(taken)
        if cost is not None:
            self.metrics.cost.labels(task, label).inc(cost)
            self._today()["unkept" if task == "route" else "kept"] += cost  # no event tells what routing costs
        return Usage(
            model=before.model,
            prompt_version=before.prompt_version,
            input_tokens=before.input_tokens + given,
            output_tokens=before.output_tokens + taken,
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
        # What the log does not have yet is among ours; what it had before this process began is not.
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
    """What the model said. Raises ModelRefused, ModelFailed for an answer that was cut off."""
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
    """What went wrong without the words of anybody: endpoints like to repeat keys and prompts in theirs."""
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

    asked = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    wanted = float(asked) if asked.replace(".", "", 1).isdecimal() else FIRST_PAUSE * 2**attempt
    return min(wanted, LONGEST_PAUSE)

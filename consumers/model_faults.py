"""What a call of a chat model came to: its text, why it failed, and whether and when it may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kledger.contract.errors import ModelFailed, ModelRefused
from ledger.events.usage import Usage
from ledger.runtime.breaker import stated_pause

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAIError
    from openai.types.chat import ChatCompletion

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 20.0
"""Seconds before a retry: exponential backoff, or the endpoint's Retry-After."""

_MOST_TOKENS = 1_000_000_000
"""Of one answer, whatever the endpoint says: a sum of some fits an event."""

# Statuses of a call that was not processed, and is not billed.
_NOT_DONE = {409, 429, 500, 503}
# Timeouts on the way: the call may have been processed, and billed.
_PERHAPS_DONE = {408, 502, 504}
_NEVER_SENT = {"ConnectError", "ConnectTimeout"}


def text_of(completion: ChatCompletion | None, usage: Usage) -> str:
    """The text of the model's answer. Raises ModelRefused, ModelFailed for an answer that was cut off or has none.

    The client library checks no answer: it hands over whatever an endpoint, or a proxy before it, sent with status 200.
    """
    choices = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise ModelFailed(f"{usage.model} answered with no choices: try again", usage=usage.model_dump())
    choice = choices[0]
    message, finish_reason = getattr(choice, "message", None), getattr(choice, "finish_reason", None)
    content = getattr(message, "content", None)
    if getattr(message, "refusal", None) or finish_reason == "content_filter":
        raise ModelRefused(f"{usage.model} declined to answer: change what it is asked", usage=usage.model_dump())
    if finish_reason == "length":
        raise ModelFailed(
            f"the answer of {usage.model} was cut off at its length limit: ask for less", usage=usage.model_dump()
        )
    if message is None or not isinstance(content, str | None):
        raise ModelFailed(f"{usage.model} answered with no text: try again", usage=usage.model_dump())
    return content or ""


def tokens_of(completion: ChatCompletion | None) -> tuple[int, int]:
    """How many tokens the endpoint says came in and went out; none where it says nothing that is a number of tokens."""
    usage = getattr(completion, "usage", None)
    told = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
    tokens_in, tokens_out = (min(count, _MOST_TOKENS) if type(count) is int and count > 0 else 0 for count in told)
    return tokens_in, tokens_out


def is_about_form(error: APIStatusError) -> bool:
    return any(word in str(error.body) for word in ("response_format", "json_schema", "json_object"))


def failed(usage: Usage, error: OpenAIError) -> ModelFailed:
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


def pause_before(error: OpenAIError, attempt: int) -> float:
    import openai

    stated = error.response.headers.get("retry-after") if isinstance(error, openai.APIStatusError) else None
    wanted = stated_pause(stated)
    return min(FIRST_PAUSE * 2**attempt if wanted is None else wanted, LONGEST_PAUSE)


def may_repeat(error: OpenAIError, *, idempotent: bool) -> bool:
    """Whether the call can be repeated without being billed twice."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.status_code in _NOT_DONE or (idempotent and error.status_code in _PERHAPS_DONE)
    if isinstance(error, openai.APIConnectionError):
        return idempotent or type(error.__cause__).__name__ in _NEVER_SENT
    return False

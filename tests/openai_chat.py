"""The chat completions half of the local OpenAI-compatible server: scripted answers, usage, faults, and the bill.

What is billed: an Idempotency-Key once, however often it is sent; with `ignores_key` every answer made, told or not.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import BaseModel

Says = Callable[[str], Any]
CUT = b""
"""An answer that never arrives: the connection is closed."""


@dataclass(frozen=True)
class Asked:
    """One request, as it came."""

    key: str
    model: str
    text: str
    form: str
    bearer: str


@dataclass
class ChatEndpoint:
    """What was asked, what is answered, and how it is to misbehave.

    `faults`: one for each coming request: a status to answer with, "cut" before any work, "cut_after" the work was
    done and billed. `held` keeps answers back until it is set.
    """

    asked: list[Asked] = field(default_factory=list)
    faults: list[int | str] = field(default_factory=list)
    unknown_forms: set[str] = field(default_factory=set)
    ignores_key: bool = False
    body: bytes | None = None  # answer with this, and status 200
    delay: float = 0.0
    held: threading.Event = field(default_factory=threading.Event)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.held.set()
        self._rules: list[tuple[Callable[[str], bool], Says]] = []
        self._made: dict[str, bytes] = {}
        self._answers = 0
        self._now = 0
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        return len(self.asked)

    @property
    def billed(self) -> int:
        """How many answers somebody pays for."""
        return self._answers if self.ignores_key else len(self._made)

    def says(self, said: Any, to: str | Callable[[str], bool] = "") -> None:
        """Answer prompts that hold `to` (or fulfil it) with a document, a text, or what `said(prompt)` gives.

        The rule given last comes first. A text `refuse:…` is told as a refusal, `length:…` as cut off.
        """
        holds = to if callable(to) else lambda text: to in text
        self._rules.insert(0, (holds, said if callable(said) else lambda _text: said))

    @contextmanager
    def scripted(self) -> Iterator[ChatEndpoint]:
        """For one test of many: what it scripts is forgotten in the end."""
        before = list(self._rules)
        try:
            yield self
        finally:
            self._rules = before
            self.faults.clear()

    def answer(self, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        request = orjson.loads(body)
        text = "\n".join(message["content"] for message in request["messages"])
        form = (request.get("response_format") or {}).get("type", "text")
        key = headers.get("idempotency-key", "") or uuid.uuid4().hex
        with self._lock:
            self.asked.append(Asked(key, request["model"], text, form, headers.get("authorization", "")))
            fault = self.faults.pop(0) if self.faults else None
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            return self._answered(request["model"], text, form, key, fault)
        finally:
            with self._lock:
                self._now -= 1

    def _answered(self, model: str, text: str, form: str, key: str, fault: int | str | None) -> tuple[int, bytes]:
        if isinstance(fault, int):
            return fault, b'{"error": {"message": "not now: %s", "code": "scripted"}}' % b"a secret of the prompt"
        if fault == "cut":
            return 0, CUT
        if form in self.unknown_forms:
            return 400, b'{"error": {"message": "response_format is not supported"}}'
        with self._lock:
            made = None if self.ignores_key else self._made.get(key)
        if made is None:
            rule = next((says for holds, says in self._rules if holds(text)), None)
            if rule is None:
                return 400, b'{"error": {"message": "nothing is scripted for this prompt"}}'
            made = _completion(model, text, rule(text))
            with self._lock:
                self._answers += 1
                self._made[key] = made
        if fault == "cut_after":
            return 0, CUT
        time.sleep(self.delay)
        self.held.wait(60)
        return 200, made if self.body is None else self.body


def _completion(model: str, text: str, said: Any) -> bytes:
    if isinstance(said, BaseModel):
        said = said.model_dump_json()
    content = said if isinstance(said, str) else orjson.dumps(said).decode()
    message: dict[str, Any] = {"role": "assistant", "content": content}
    finish = "stop"
    if content.startswith("refuse:"):
        message = {"role": "assistant", "content": None, "refusal": content}
    elif content.startswith("length:"):
        finish = "length"
    given, taken = max(1, len(text) // 4), max(1, len(content) // 4)
    return orjson.dumps(
        {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {"prompt_tokens": given, "completion_tokens": taken, "total_tokens": given + taken},
        }
    )

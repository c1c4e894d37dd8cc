"""The question in other words: up to three queries, and a text that might answer it (HyDE).

Both are asked for at once, each of its own task's model, and waited for as long as PATIENCE. What a model writes is
data: bounded, on one line, without characters that no query may hold. It counts only while it stays with the question:
a set of queries of which none covers a part of it, or such a text, is left out.

What a model wrote is kept in memory for a while. It depends on nothing but what the model was given, and is still kept
for each caller apart: a quick answer would tell that somebody else had asked the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from consumers.model import ChatModel, Prompt
from consumers.prompting import prompt
from consumers.reactors.material import one_line
from consumers.recall.awaited import Awaited, NoAnswer
from consumers.structured import Structured
from kledger.contract.errors import LedgerError, ModelFailed
from kledger.contract.language import Language
from kledger.contract.seal_mark import MARK
from projections.search.asked_differently import MOST_QUERIES, Rewritten, has_words, stays_with
from projections.search.asking import shortened
from projections.vectors.tokens import normalise

Way = Literal["rewrite", "hyde"]
WAYS: tuple[Way, ...] = ("rewrite", "hyde")

PATIENCE = 2.0
"""Seconds that a recall waits for both, asked at once."""
MOST_ASKED, MOST_QUERY, MOST_TEXT = 1_000, 200, 1_200
"""Characters of the question as a model is given it, of a query, and of a text that it writes."""
MOST_KEPT, KEPT_SECONDS = 1_000, 300.0
"""What is kept: so many answers, each for so long."""


class Queries(Structured):
    """What a model makes of a question."""

    queries: list[str]


class Hypothetical(Structured):
    """What a model thinks an answer might say."""

    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """What of a model's answer can be used, or why none of it can."""

    texts: tuple[str, ...]
    reason: str | None = None


class Rewriting:
    """The tasks `rewrite` and `hyde` of a node; a task without a model is left out."""

    def __init__(
        self, model: ChatModel, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Written]] = OrderedDict()
        self.ways: dict[Way, Awaited[Written]] = {
            way: Awaited(f"the model {model.settings.model_for(way)} of {way}", patience)
            for way in WAYS
            if model.settings.has(way)
        }
        self._changing = threading.Lock()
        self._forgotten = 0
        self.from_memory = 0
        """Answers that were kept and not asked for again."""

    async def asked_differently(self, query: str, language: Language, whose: str) -> Rewritten:
        """The question in other words, within PATIENCE; `whose` says for which caller answers are kept.

        Never raises: without an answer there are no further queries, and `reason` says why.
        """
        asked = shortened(query, MOST_ASKED)
        if not has_words(asked):
            return Rewritten(reason="the question holds no word to stay with")
        if not self.ways:
            return Rewritten(reason="this node has no model to rewrite with: set KLEDGER_MODEL_REWRITE")
        answers = await asyncio.gather(*(self._written(way, asked, language, whose) for way in self.ways))
        by_way = dict(zip(self.ways, answers, strict=True))
        empty = Written(())
        reasons = [written.reason for written in answers if written.reason]
        return Rewritten(
            queries=by_way.get("rewrite", empty).texts,
            hypothetical=next(iter(by_way.get("hyde", empty).texts), None),
            reason="; ".join(reasons) or None,
        )

    async def _written(self, way: Way, query: str, language: Language, whose: str) -> Written:
        rules = prompt(way, _material(query, language))
        key = _key(whose, way, self._model.settings.model_for(way), rules.version, language, query)
        if (kept := self._remembered(key)) is not None:
            self.from_memory += 1
            return kept

        began = self._forgotten

        async def call() -> Written:
            written = await self._asked(way, rules, query)
            self._remember(key, written, began)  # also where its reader has gone
            return written

        written, reason = await self.ways[way].answer(key, _with_faults(call))
        return Written((), reason) if written is None else written

    async def _asked(self, way: Way, rules: Prompt, query: str) -> Written:
        call = f"{way}-{uuid.uuid4().hex}"
        if way == "rewrite":
            answer = await self._model.ask("rewrite", rules, Queries, key=call)
            texts = _queries(answer.value.queries, query)
        else:
            text = await self._model.ask("hyde", rules, Hypothetical, key=call)
            texts = tuple(filter(None, [_line(text.value.text, MOST_TEXT)]))
        if not texts:
            return Written((), f"the model of {way} wrote nothing that can be searched for")
        if not stays_with(query, texts):
            return Written((), f"what the model of {way} wrote is not about the question")
        return Written(texts)

    def _remembered(self, key: bytes) -> Written | None:
        until, written = self._kept.get(key, (0.0, None))
        return written if until > self._clock() else None

    def _remember(self, key: bytes, written: Written, began: int) -> None:
        """Keep an answer, unless somebody was forgotten since its call began."""
        with self._changing:
            if began != self._forgotten:
                return
            self._kept[key] = (self._clock() + KEPT_SECONDS, written)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def forget(self) -> None:
        """Drop all that is kept: it may hold words of a person who is being forgotten. On any thread."""
        with self._changing:
            self._forgotten += 1  # what is under way is not kept
            self._kept.clear()

    async def close(self) -> None:
        """Cancel what is under way."""
        await asyncio.gather(*(awaited.close() for awaited in self.ways.values()))


def _with_faults(call: Callable[[], Awaitable[Written]]) -> Callable[[], Awaitable[Written]]:
    async def told() -> Written:
        try:
            return await call()
        except LedgerError as error:  # a question that it declines, or a budget, says nothing about the endpoint
            raise NoAnswer(error.message, blamed=isinstance(error, ModelFailed)) from error

    return told


def _material(query: str, language: Language) -> str:
    """The question between tags that it cannot close itself."""
    return f'<question language="{language}">\n{query.replace("<", "‹")}\n</question>'


def _key(*parts: str) -> bytes:
    """A key that holds no word of the question."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()


def _queries(written: list[str], query: str) -> tuple[str, ...]:
    """The first queries that can be asked: others than the question, each once."""
    seen, kept = {normalise(" ".join(query.split()))}, []
    for text in written[: 4 * MOST_QUERIES]:
        line = _line(text, len(text)) if len(text) <= 4 * MOST_QUERY else ""  # what is too long is none, not its start
        same = normalise(line)
        if line and len(line) <= MOST_QUERY and same not in seen:
            seen.add(same)
            kept.append(line)
    return tuple(kept[:MOST_QUERIES])


def _line(text: str, most: int) -> str:
    """A model's words on one bounded line, without characters that no text may hold; empty where they look sealed."""
    line = one_line(text, most).strip()
    return "" if MARK in line else line

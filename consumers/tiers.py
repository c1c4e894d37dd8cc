"""The models of a node by work: what is set for each, and whether it answers when it is called once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import get_args
from urllib.parse import urlsplit, urlunsplit

from consumers.model import ChatModel, Prompt
from consumers.model_settings import TASKS
from consumers.recall.awaited import NoAnswer
from consumers.recall.reranker import TRY_QUERY, TRY_TEXTS, Reranker
from consumers.recall.rewriting import Rewriting
from consumers.structured import Structured
from kledger.answers.models import ModelSet, ModelTried
from kledger.contract.errors import LedgerError, NotAvailable
from kledger.contract.words import ModelTask, ModelWork
from projections.vectors.embedding.embeddings import PROBE, OpenAIEmbedder
from projections.vectors.wire import EmbeddingModel

TRY_SECONDS = 10.0
"""How long one model may take to answer."""
MOST_TOLD = 300
"""Characters of an error."""
_TRY = Prompt("try-1", "Answer with the word yes, in `word`.", "Do you answer?")


class Yes(Structured):
    """What a chat model is asked for."""

    word: str


class NodeTiers:
    """The models of one node; `embedding_trouble` says what is wrong with the embeddings at the moment."""

    def __init__(
        self,
        model: ChatModel,
        rewriting: Rewriting,
        reranker: Reranker | None,
        embedding: EmbeddingModel | None,
        embedding_trouble: Callable[[], str | None],
    ) -> None:
        self._model = model
        self._rewriting = rewriting
        self._reranker = reranker
        self._embedding = embedding
        self._embedding_trouble = embedding_trouble

    def told(self) -> dict[ModelWork, ModelSet]:
        """See producers.operations.available_models.Tiers."""
        told: dict[ModelWork, ModelSet] = {task: self._chat(task) for task in TASKS}
        nothing = ModelSet(model=None, url=None, trouble=None)
        told["embed"] = told["rerank"] = nothing
        if (embedding := self._embedding) is not None:
            told["embed"] = ModelSet(
                model=embedding.model, url=_shown(embedding.base_url), trouble=self._embedding_trouble()
            )
        if (reranker := self._reranker) is not None:
            settings = reranker.settings
            trouble = reranker.awaited.breaker.reason
            told["rerank"] = ModelSet(model=settings.model or "unnamed", url=_shown(settings.address), trouble=trouble)
        return {work: told[work] for work in get_args(ModelWork)}

    def _chat(self, task: ModelTask) -> ModelSet:
        name = self._model.settings.chosen(task)
        if not name:
            return ModelSet(model=None, url=None, trouble=None)
        trouble = None
        if (task == "rewrite" or task == "hyde") and (awaited := self._rewriting.ways.get(task)) is not None:
            trouble = awaited.breaker.reason
        try:
            self._model.named(task)
        except NotAvailable as error:
            trouble = error.message
        return ModelSet(model=name, url=_shown(self._model.settings.url), trouble=trouble)

    async def tried(self) -> dict[ModelWork, ModelTried]:
        """See producers.operations.available_models.Tiers."""
        by_model: dict[str, list[ModelTask]] = {}
        for task in TASKS:
            if name := self._model.settings.chosen(task):
                by_model.setdefault(name, []).append(task)
        calls: list[tuple[list[ModelWork], Callable[[], Awaitable[object]]]] = [
            ([*tasks], _asking(self._model, tasks[0])) for tasks in by_model.values()
        ]
        if (embedding := self._embedding) is not None:
            calls.append((["embed"], lambda: _embedded(embedding)))
        if (reranker := self._reranker) is not None:
            calls.append((["rerank"], lambda: reranker.ask(TRY_QUERY, TRY_TEXTS)))
        answers = await asyncio.gather(*(self._timed(call) for _, call in calls))
        tried = {work: answer for (works, _), answer in zip(calls, answers, strict=True) for work in works}
        return {work: tried[work] for work in get_args(ModelWork) if work in tried}

    async def _timed(self, call: Callable[[], Awaitable[object]]) -> ModelTried:
        began, error = time.perf_counter(), None
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await call()
        except TimeoutError:
            error = f"it did not answer within {TRY_SECONDS:g} s"
        except LedgerError as failure:
            error = failure.message
        except NoAnswer as failure:
            error = failure.reason
        except Exception as failure:  # a wrong address is told by many libraries in many ways
            error = f"it could not be asked ({type(failure).__name__})"
        seconds = round(time.perf_counter() - began, 3)
        return ModelTried(seconds=seconds, error=None if error is None else self._without_keys(error)[:MOST_TOLD])

    def _without_keys(self, text: str) -> str:
        """An error without the keys and addresses of this node: endpoints often repeat them."""
        kept = [self._model.settings.key.get_secret_value(), self._model.settings.url]
        if self._embedding is not None:
            kept += [self._embedding.api_key, self._embedding.base_url]
        if self._reranker is not None:
            kept += [self._reranker.settings.key.get_secret_value(), self._reranker.settings.url]
        for secret in kept:
            if len(secret) > len("none"):
                text = text.replace(secret, "…")
        return text


def _asking(model: ChatModel, task: ModelTask) -> Callable[[], Awaitable[object]]:
    key = f"try-{uuid.uuid4().hex}"
    return lambda: model.ask(task, _TRY, Yes, key=key, timeout=TRY_SECONDS, tried=True)


async def _embedded(embedding: EmbeddingModel) -> None:
    embedder = OpenAIEmbedder(
        base_url=embedding.base_url,
        api_key=embedding.api_key,
        model=embedding.model,
        dimensions=embedding.dimensions,
        timeout=TRY_SECONDS,
        retries=0,
        shorten=embedding.shorten,
    )
    try:
        await embedder.embed([PROBE])
    finally:
        await embedder.close()


def _shown(url: str) -> str:
    """An address without user, password and query, any of which may be a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

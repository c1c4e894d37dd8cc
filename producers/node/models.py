"""Models of a node: configures them for the interfaces, and creates the reactors that call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from consumers.model import ChatModel
from consumers.model_settings import model_settings_from_environment
from consumers.reactors.slim import Slimming
from consumers.reactors.subscription import Reactor
from consumers.reactors.work import Work
from consumers.recall.awaited import Awaited
from consumers.recall.intents import ModelIntents
from consumers.recall.metrics import RecallModelMetrics
from consumers.recall.rerank_settings import rerank_settings_from_environment
from consumers.recall.reranker import Reranker
from consumers.recall.rewriting import Rewriting
from consumers.routing import ModelRouter
from consumers.tiers import NodeTiers
from kledger.contract.words import ModelTask, NodeRole
from producers.operations.available_models import ModelsElsewhere
from producers.operations.desk import Desk
from producers.operations.publish import publish
from projections.engine.view import View
from projections.search.ask import Searcher
from projections.vectors.feed import VectorFeed
from projections.views.processes.ask import spent_since


async def with_models(
    desk: Desk,
    view: View,
    searcher: Searcher,
    feed: VectorFeed,
    roles: frozenset[NodeRole],
    stack: AsyncExitStack,
) -> list[Reactor]:
    """Configure the desk's models; returns the reactors of this node: those for tasks that have a model.

    A request whose task has no model on any node waits until one has. Raises InvalidPayload for invalid settings.
    """
    settings = model_settings_from_environment()

    async def spent_today() -> float:
        now = datetime.now(UTC)
        return await view.ask(spent_since, now - timedelta(hours=now.hour, minutes=now.minute, seconds=now.second))

    model = ChatModel(settings, spent_today)
    stack.push_async_callback(model.close)
    desk.collected = [model.metrics.registry]
    desk.router = ModelRouter(model) if settings.has("route") else None
    desk.routing = settings.routing == "on"
    _with_recall_models(desk, model, feed, stack)
    if "reactors" not in roles:
        desk.models = ModelsElsewhere()
        return []
    desk.models = model
    if settings.named():
        model.get_ready()
    append = partial(publish, desk.ledger, desk.tally)
    work = Work(desk.org, view, searcher, desk.ledger, append, model, desk.sessions, desk.lifetimes)
    # Without a model, slims keep the best item of each group.
    return [*(_reactors(work) if settings.named() else ()), Slimming(work)]


def _reactors(work: Work) -> Iterator[Reactor]:
    """Those for tasks that have a model, and loaded only where there is one."""
    from consumers.reactors.abstracts import Abstracting
    from consumers.reactors.evolve import Evolving
    from consumers.reactors.extract import Extracting
    from consumers.reactors.summarise import Summarising

    known: list[tuple[ModelTask, Callable[[Work], Reactor]]] = [
        ("evolve", Evolving),
        ("extract", Extracting),
        ("summarise", Summarising),
        ("summarise", Abstracting),
    ]
    return (reactor(work) for task, reactor in known if work.model.settings.has(task))


def _with_recall_models(desk: Desk, model: ChatModel, feed: VectorFeed, stack: AsyncExitStack) -> None:
    """Configure the models that recalls wait for, and what tells of all models."""
    reranking = rerank_settings_from_environment()
    reranker = None if reranking is None else Reranker(reranking)
    rewriting = Rewriting(model)
    awaited: dict[str, Awaited[Any]] = dict(rewriting.ways.items())
    if rewriting.ways:
        model.get_ready()
        desk.rewriter = rewriting
        stack.push_async_callback(rewriting.close)
    if model.settings.has("intent"):
        model.get_ready()
        intents = ModelIntents(model)
        awaited["intent"] = intents.awaited
        desk.intents = intents
        stack.push_async_callback(intents.awaited.close)
    if reranker is not None:
        awaited["rerank"] = reranker.awaited
        desk.reranker = reranker
        stack.push_async_callback(reranker.close)
    if awaited:
        desk.collected = [*desk.collected, RecallModelMetrics(awaited, rewriting)]
    embedding = feed.settings.embedding
    desk.tiers = NodeTiers(model, rewriting, reranker, embedding, lambda: feed.backlog.state.trouble)

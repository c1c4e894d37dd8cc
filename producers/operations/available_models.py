"""Models: which model does a task, and those that are asked while a reader waits (router, rewriter, reranker).

All other tasks are the reactors': an interface publishes a request and waits for its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

from kledger.answers.models import ModelSet, ModelTried
from kledger.contract.errors import NotAvailable
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.words import ModelTask, ModelWork
from ledger.event import JsonObject
from projections.search.asked_differently import Rewritten

Reflected = Literal["task", "verdict"]
"""After what extraction is asked by itself, where that is switched on."""


class Models(Protocol):
    """The models of a node by task."""

    def named(self, task: ModelTask, model: str | None = None) -> str:
        """The model for a task. Raises NotAvailable where there is none."""


def is_set(models: Models, task: ModelTask) -> bool:
    """Whether there is a model for a task."""
    try:
        models.named(task)
    except NotAvailable:
        return False
    return True


class Router(Protocol):
    """Picks the candidates that may answer a query."""

    async def pick(self, query: str, candidates: Sequence[JsonObject], most: int) -> list[str]:
        """Up to `most` ids out of the candidates (`id`, `types`, `task`). Raises NotAvailable, ModelFailed, …"""


class Reranker(Protocol):
    """Scores texts by how well they answer a query."""

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[list[float] | None, str | None]:
        """A score from 0 to 1 for each of the first texts, or None and why; within a deadline, never raises."""


class Rewriter(Protocol):
    """Puts a question in other words."""

    async def asked_differently(self, query: str, language: Language, whose: str) -> Rewritten:
        """Further queries and a hypothetical answer; within a deadline, never raises. `whose`: kept for this caller."""

    def forget(self) -> None:
        """Drop what is kept of earlier questions; on any thread."""


class Intents(Protocol):
    """Tells what a message is after."""

    async def intent(self, message: str) -> tuple[Intent | None, str | None]:
        """The intent, or None and why; within a deadline, never raises."""


class Tiers(Protocol):
    """The models of a node by work."""

    def told(self) -> dict[ModelWork, ModelSet]:
        """What is set, without any key."""

    async def tried(self) -> dict[ModelWork, ModelTried]:
        """Each model that is set, called once; works that share one share its answer."""


class NoTiers:
    """A node without models of any kind."""

    def told(self) -> dict[ModelWork, ModelSet]:
        """See Tiers."""
        return {work: ModelSet(model=None, url=None, trouble=None) for work in get_args(ModelWork)}

    async def tried(self) -> dict[ModelWork, ModelTried]:
        """See Tiers."""
        return {}


class NoModels:
    """A node without models."""

    def named(self, task: ModelTask, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        raise NotAvailable(f"to {task} is a model's work, and this node has none: set KLEDGER_MODEL where it runs")


class ModelsElsewhere:
    """A node that only accepts requests: nodes with the role `reactors` have the models."""

    def named(self, task: ModelTask, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        return model or ""

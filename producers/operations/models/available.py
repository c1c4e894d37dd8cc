"""What may an operation expect of models? That this node knows one for a task, and, for a search, somebody who picks.

Models are asked by the reactors; a door states a request and waits for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from kledger.contract.errors import NotAvailable
from ledger.event import JsonObject

Task = Literal["evolve", "extract", "slim", "route"]


class Models(Protocol):
    """Which model does a task."""

    def named(self, task: Task, model: str | None = None) -> str:
        """The model that would be asked. Raises NotAvailable where there is none."""
        ...


class Router(Protocol):
    """Picks what may help out of many."""

    async def pick(self, query: str, candidates: Sequence[JsonObject], most: int) -> list[str]:
        """Up to `most` ids out of the candidates (`id`, `types`, `task`). Raises NotAvailable, ModelFailed, …"""
        ...


class NoModels:
    """A node without any."""

    def named(self, task: Task, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        """See Models.named."""
        raise NotAvailable(f"to {task} is a model's work, and this node has none: set KLEDGER_MODEL where it runs")


class ModelsElsewhere:
    """A node that only takes requests: those with the role `reactors` have the models, or wait until they do."""

    def named(self, task: Task, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        """See Models.named."""
        return model or ""

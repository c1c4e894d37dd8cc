"""Models: which model does a task, and the router of a search.

Only the reactors call models; an interface publishes a request and waits for its outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kledger.contract.errors import NotAvailable
from kledger.contract.words import ModelTask
from ledger.event import JsonObject


class Models(Protocol):
    """The models of a node by task."""

    def named(self, task: ModelTask, model: str | None = None) -> str:
        """The model for a task. Raises NotAvailable where there is none."""


class Router(Protocol):
    """Picks the candidates that may answer a query."""

    async def pick(self, query: str, candidates: Sequence[JsonObject], most: int) -> list[str]:
        """Up to `most` ids out of the candidates (`id`, `types`, `task`). Raises NotAvailable, ModelFailed, …"""


class NoModels:
    """A node without models."""

    def named(self, task: ModelTask, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        raise NotAvailable(f"to {task} is a model's work, and this node has none: set KLEDGER_MODEL where it runs")


class ModelsElsewhere:
    """A node that only accepts requests: nodes with the role `reactors` have the models."""

    def named(self, task: ModelTask, model: str | None = None) -> str:  # noqa: ARG002 - as the protocol has it
        return model or ""

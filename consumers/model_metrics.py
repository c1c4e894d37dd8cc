"""Prometheus metrics of a node's model calls and their cost; /metrics has them together with the HTTP metrics.

Labels are tasks, outcomes, and models that the settings name (any other is `other`).
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)


class ModelMetrics:
    """The metrics, in a registry of their own that the node's registry collects."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "kledger_model_calls", "Calls of a model, by outcome", ["task", "model", "outcome"], registry=self.registry
        )
        self.retries = Counter("kledger_model_retries", "Calls made again", ["task"], registry=self.registry)
        self.tokens = Counter(
            "kledger_model_tokens",
            "Tokens billed, by direction (input, output)",
            ["task", "model", "direction"],
            registry=self.registry,
        )
        self.cost = Counter(
            "kledger_model_cost_usd", "US dollars, by the prices in the settings", ["task", "model"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "kledger_model_seconds", "Time until a model answered", ["task"], buckets=SECONDS, registry=self.registry
        )

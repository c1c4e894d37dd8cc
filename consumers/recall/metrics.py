"""Prometheus metrics of what recalls wait for: the reranker, and the models that read and rewrite a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from consumers.recall.awaited import Awaited
from consumers.recall.rewriting import Rewriting


class RecallModelMetrics(Collector):
    """Gauges and counters by work (intent, rewrite, hyde, rerank)."""

    def __init__(self, awaited: Mapping[str, Awaited[Any]], rewriting: Rewriting) -> None:
        self._awaited = awaited
        self._rewriting = rewriting

    def collect(self) -> Iterator[Metric]:
        """The current metrics."""
        available = GaugeMetricFamily(
            "kledger_recall_model_available", "1 while the endpoint answers in time", labels=["work"]
        )
        calls = CounterMetricFamily("kledger_recall_model_calls", "Calls of the endpoint", labels=["work"])
        missed = CounterMetricFamily("kledger_recall_model_missed", "Recalls answered without it", labels=["work"])
        seconds = CounterMetricFamily("kledger_recall_model_seconds", "Time that calls took", labels=["work"])
        for work, each in self._awaited.items():
            available.add_metric([work], int(each.breaker.reason is None))
            calls.add_metric([work], each.calls)
            missed.add_metric([work], each.missed)
            seconds.add_metric([work], each.seconds)
        yield from (available, calls, missed, seconds)
        yield CounterMetricFamily(
            "kledger_rewritten_from_memory",
            "Questions put in other words without a call",
            value=self._rewriting.from_memory,
        )

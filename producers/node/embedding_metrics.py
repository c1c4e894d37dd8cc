"""Prometheus metrics of the embeddings of this node's model."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from projections.vectors.backlog import Embeddings


class EmbeddingMetrics(Collector):
    """Gauges and counters over the state of the backlog."""

    def __init__(self, state: Embeddings) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """The current metrics."""
        state = self._state
        yield GaugeMetricFamily(
            "kledger_embeddings_available", "1 while the embedding endpoint answers", value=int(state.trouble is None)
        )
        yield GaugeMetricFamily(
            "kledger_embeddings_awaiting", "Versions found by words alone until embedded", value=state.awaiting
        )
        yield CounterMetricFamily("kledger_embedding_calls", "Calls of the embedding endpoint", value=state.calls)
        yield CounterMetricFamily("kledger_embeddings_refused", "Texts that the endpoint refused", value=state.refused)
        yield CounterMetricFamily(
            "kledger_searches_without_embedding", "Searches answered without their embedding", value=state.missed
        )

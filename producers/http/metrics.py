"""What does the node count? Every metric of the HTTP door, declared here; /metrics tells them to Prometheus.

Labels are route templates and event names, never ids.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from ledger.errors import LedgerError
from producers.operations.desk import Desk
from projections.lineage.ask import refused_count

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one app, in a registry of its own."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "kledger_http_requests",
            "Requests answered, by route and status",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "kledger_http_request_seconds",
            "Time to answer, by route",
            ["method", "route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.turned_away = Counter(
            "kledger_http_turned_away",
            "Requests refused for their token, by code",
            ["code"],
            registry=self.registry,
        )
        self.rate_limited = Counter(
            "kledger_http_rate_limited", "Requests refused because one principal made too many", registry=self.registry
        )
        self.position = Gauge("kledger_view_position", "Log position the view has", registry=self.registry)
        self.head = Gauge("kledger_log_head", "Last position of the log", registry=self.registry)
        self.lag = Gauge("kledger_view_lag_events", "Events the view is behind", registry=self.registry)
        self.refused = Gauge("kledger_refused_events", "Events that do not count", registry=self.registry)
        self.broker_up = Gauge("kledger_broker_up", "1 when the log's broker answers", registry=self.registry)
        self.registry.register(_Tallied(desk))

    async def measured(self, desk: Desk) -> bytes:
        """Everything, as Prometheus reads it, with the gauges as they stand now."""
        position = desk.view.position
        self.position.set(position)
        self.refused.set(await desk.view.ask(refused_count))
        try:
            head = (await desk.ledger.head()).position
        except LedgerError:
            self.broker_up.set(0)
        else:
            self.broker_up.set(1)
            self.head.set(head)
            self.lag.set(max(0, head - position))
        return generate_latest(self.registry)


class _Tallied(Collector):
    """What the operations counted."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def collect(self) -> Iterator[Metric]:
        tally = self.desk.tally
        appended = CounterMetricFamily("kledger_events_appended", "Events appended, by type", labels=["type"])
        for name, count in sorted(tally.appended.items()):
            appended.add_metric([name], count)
        yield appended
        yield CounterMetricFamily("kledger_searches", "Searches answered", value=tally.searches)
        yield CounterMetricFamily(
            "kledger_recalls_lost", "Searches whose recall was not recorded", value=tally.recalls_lost
        )


def routes(desk: Desk, metrics: Metrics) -> APIRouter:
    """The one route of this file."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response)
    async def tell() -> Response:
        """Metrics in Prometheus' text format."""
        return Response(await metrics.measured(desk), media_type=CONTENT_TYPE_LATEST)

    return router

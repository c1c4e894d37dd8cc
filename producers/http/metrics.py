"""Metrics of the HTTP interface: all are declared here, and /metrics gives them to Prometheus.

Labels are route templates, event names, views and codes, never ids or subjects.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

from fastapi import APIRouter
from fastapi.routing import APIRoute
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from kledger.contract.errors import LedgerError
from ledger.installed import PRODUCT, version
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from projections.views.refused.ask import refused_by_code

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one app, in a registry of its own."""

    def __init__(self, desk: Desk) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each one, which nobody asks for; for the whole process
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.build = Info("kledger_build", "What runs here, always 1", registry=self.registry)
        self.build.info(
            {
                "version": version(PRODUCT),
                "python": platform.python_version(),
                "duckdb": version("duckdb"),
                "qdrant_edge": version("qdrant-edge-py"),
            }
        )
        self.requests = self._counter(
            "kledger_http_requests", "Requests answered, by route and status", "method", "route", "status"
        )
        self.seconds = self._histogram("kledger_http_request_seconds", "Time to answer, by route", "method", "route")
        self._answers: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}  # the library looks for each anew
        self.turned_away = self._counter(
            "kledger_http_turned_away", "Requests refused for their token, by code", "code"
        )
        self.rate_limited = self._counter(
            "kledger_http_rate_limited", "Requests refused because one principal made too many"
        )
        about_tools = "Tools called over MCP at this node, by tool and outcome: ok, or the code of the error"
        self.tool_calls = self._counter("kledger_mcp_tool_calls", about_tools, "tool", "outcome")
        self.append_seconds = self._histogram("kledger_append_seconds", "Time until the log has kept what is appended")
        self.search_seconds = self._histogram("kledger_search_seconds", "Time of a search, without its record")
        self.fold_batch_seconds = self._histogram("kledger_fold_batch_seconds", "Time to fold one batch of events")
        self._measured = {"append": self.append_seconds, "search": self.search_seconds, "fold": self.fold_batch_seconds}
        self.refused_by = self._gauge("kledger_refused_events_by_code", "Events that do not count, by code", "code")
        self.lag_seconds = self._gauge(
            "kledger_view_lag_seconds", "At least how long an event has waited, by view", "view"
        )
        self.healthy = self._gauge("kledger_healthy", "1 when nothing is wrong, as /health says")
        self.ready = self._gauge("kledger_ready", "1 when the node may be asked, as /health/ready")
        self.position = self._gauge("kledger_view_position", "Log position the view has")
        self.head = self._gauge("kledger_log_head", "Last position of the log")
        self.lag = self._gauge("kledger_view_lag_events", "Events the view is behind")
        self.refused = self._gauge("kledger_refused_events", "Events that do not count")
        self.bytes = self._gauge("kledger_bytes", "Bytes on disk, by part of the node", "part")
        self.event_bytes = self._gauge("kledger_event_bytes", "Bytes that the log's events say, by entity", "entity")
        self.broker_up = self._gauge("kledger_broker_up", "1 when the log's broker answers")
        self.registry.register(_Tallied(desk))
        for collector in () if desk is None else desk.collected:
            self.registry.register(collector)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, buckets=BUCKETS, registry=self.registry)

    def answered(self, method: str, route: str, status: str, seconds: float) -> None:
        """Note an answer, and how long it took."""
        of = (method, route, status)
        kept = self._answers.get(of)
        if kept is None:
            kept = self._answers[of] = (self.requests.labels(*of), self.seconds.labels(method, route))
        count, duration = kept
        count.inc()
        duration.observe(seconds)

    def took(self, what: str, seconds: float) -> None:
        """Note how long an append, a search or a fold took."""
        self._measured[what].observe(seconds)

    def called(self, tool: str, outcome: str) -> None:
        """Note a tool call, and `ok` or the code of its error."""
        self.tool_calls.labels(tool, outcome).inc()

    async def measured(self, desk: Desk) -> bytes:
        """Everything, as Prometheus reads it, with the gauges as they stand now."""
        position = desk.view.position
        self.position.set(position)
        refused = await desk.view.ask(refused_by_code)
        self.refused.set(sum(refused.values()))
        self.refused_by.clear()
        for code, count in refused.items():
            self.refused_by.labels(code).set(count)
        health = await desk.admin.health()
        self.healthy.set(health.healthy)
        self.ready.set(not health.waits_for)
        for view, seconds in health.lag_seconds.items():
            self.lag_seconds.labels(view).set(seconds)
        if desk.sizes is not None:
            sizes = await desk.sizes.now()
            for part, size in sizes["parts"].items():
                self.bytes.labels(part).set(size)
            for entity, size in sizes["events"].items():
                self.event_bytes.labels(entity).set(size)
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
        yield CounterMetricFamily("kledger_events_folded", "Events that the view took up", value=tally.folded)
        yield CounterMetricFamily("kledger_searches", "Searches answered", value=tally.searches)
        yield CounterMetricFamily(
            "kledger_recalls_kept",
            "Recalls by a message that were answered from what was kept",
            value=self.desk.recalled.hits,
        )
        yield CounterMetricFamily(
            "kledger_recalls_found",
            "Recalls by a message that were not kept and looked up",
            value=self.desk.recalled.misses,
        )
        yield CounterMetricFamily(
            "kledger_recalls_lost", "Searches whose recall was not recorded", value=tally.recalls_lost
        )


def routes(desk: Desk, metrics: Metrics) -> APIRouter:
    """The one route of this file."""
    router = new_router("health", route_class=APIRoute)

    @router.get("/metrics", response_class=Response)
    async def tell() -> Response:
        """Metrics in Prometheus' text format."""
        return Response(await metrics.measured(desk), media_type=CONTENT_TYPE_LATEST)

    return router

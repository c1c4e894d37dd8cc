"""One event is followed from the door over the log to the view, by a collector that speaks OTLP; and at no cost
where there is none."""

from __future__ import annotations

import json
import logging
import shlex
import sys
import threading
import time
import timeit
import tomllib
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from packaging.requirements import Requirement
from structlog.testing import capture_logs

from ledger.event import StoredEvent
from ledger.runtime import tracing
from producers.node.otel import is_asked_for, traced
from tests.doors.http_door import ALICE, http_door
from tests.house.project import ROOT
from tests.journeys import running_node
from tests.journeys.running_node import running, until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Collector:
    """What an OTLP collector was sent, over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def take(self, request: ExportTraceServiceRequest) -> None:
        for part in request.resource_spans:
            self.services |= {one.value.string_value for one in part.resource.attributes if one.key == "service.name"}
            for scope in part.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def test_a_collector_sees_one_event_from_the_door_to_the_view(collector: Collector, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(running_node.ENVIRONMENT, "OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        patched.setitem(running_node.ENVIRONMENT, "OTEL_BSP_SCHEDULE_DELAY", "50")
        with running(tmp_path / "data", "--quack", "off") as node, node.client() as ledger:
            traced = ledger.within(traceparent=PARENT, trace_id="trace-1")
            saved = traced.save("Follow an event", "From door to view.", ["tool"], scopes=["public"])
            assert ledger.seeing(saved["position"]).get(saved["id"])["position"] == saved["position"]
            kept = ledger.sql(f"SELECT traceparent FROM events WHERE position = {saved['position']}")["rows"][0][0]
            until(lambda: collector.named("visible in duckdb"), "the collector has the last span")
            until(lambda: collector.named("POST /api/knowledge"), "and the first")
    (door,) = collector.named("POST /api/knowledge")
    (append,) = collector.named("append")
    (visible,) = collector.named("visible in duckdb")
    fold = next(span for span in collector.named("fold duckdb") if span.links)
    assert door.trace_id.hex() == append.trace_id.hex() == visible.trace_id.hex() == TRACE
    assert door.parent_span_id.hex() == PARENT.split("-")[2]
    assert append.parent_span_id == visible.parent_span_id == door.span_id
    assert kept == f"00-{TRACE}-{door.span_id.hex()}-01", "the event names the door's span"
    assert [link.span_id for link in fold.links] == [door.span_id]
    assert [link.span_id for link in visible.links] == [fold.span_id]
    assert fold.trace_id != door.trace_id
    assert door.start_time_unix_nano <= append.start_time_unix_nano <= visible.end_time_unix_nano
    said = {one.key: one.value for one in door.attributes}
    assert said["http.response.status_code"].int_value == 201
    assert said["http.route"].string_value == "/api/knowledge"
    assert collector.services == {"kledger"}


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Spans made in this process."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.begin(provider.get_tracer("test"))
    yield exporter
    tracing.begin(None)
    provider.shutdown()


def called(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


async def test_a_request_without_a_trace_begins_one_and_a_bad_one_is_ignored(spans: InMemorySpanExporter) -> None:
    async with http_door() as door:
        for stated in ({}, {"traceparent": "not-a-trace"}, {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"}):
            assert (await door.get("/api/knowledge", headers={**ALICE, **stated})).status_code == 200
        assert (await door.get("/api/knowledge/nothing", headers=ALICE)).status_code == 404
    listed = called(spans, "GET /api/knowledge")
    assert len({span.context.trace_id for span in listed}) == 3
    assert all(span.parent is None for span in listed)
    (missing,) = called(spans, "GET /api/knowledge/{item_id}")
    assert missing.attributes is not None
    assert missing.attributes["http.response.status_code"] == 404
    assert missing.status.status_code.name == "UNSET", "what the caller did wrong is no failure of the node"


async def test_a_search_is_a_span_of_its_request(spans: InMemorySpanExporter) -> None:
    async with http_door() as door:
        await door.get("/api/knowledge/search", params={"q": "x"}, headers=ALICE)
    (search,) = called(spans, "search")
    (request,) = called(spans, "GET /api/knowledge/search")
    assert search.parent is not None
    assert search.parent.span_id == request.context.span_id
    for span in spans.get_finished_spans():
        assert "alice" not in json.dumps(dict(span.attributes or {})), "no id of anybody is in an attribute"


def events(count: int) -> list[StoredEvent]:
    body = json.dumps({"traceparent": PARENT, "data": {}}, separators=(",", ":")).encode()
    return [StoredEvent(n, time.time_ns(), "ledger.x", body) for n in range(1, count + 1)]


def test_a_large_batch_is_one_span_with_as_many_links_as_are_kept(spans: InMemorySpanExporter) -> None:
    tracing.folded("duckdb", events(1000), 0.01)
    (fold,) = spans.get_finished_spans()
    assert len(fold.links) == tracing.MAX_LINKS
    tracing.folded("duckdb", [StoredEvent(1, 0, "ledger.x", b"\xff{}"), StoredEvent(2, 0, "ledger.x", b"")], 0.01)
    assert [len(span.links) for span in called(spans, "fold duckdb")] == [tracing.MAX_LINKS, 0]


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_the_standard_environment_turns_tracing_on(environment: dict[str, str], asked: bool) -> None:
    assert is_asked_for(environment) is asked


def test_without_a_collector_a_span_costs_next_to_nothing() -> None:
    assert not tracing.under_way()

    def request() -> None:
        """Everything that tracing does in a write."""
        with tracing.door("POST", None) as span:
            tracing.traceparent()
            with tracing.span("append", kledger__type="knowledge.saved", kledger__events=1):
                pass
            tracing.answered(span, "POST /api/knowledge", 201)

    a_time = min(timeit.repeat(request, number=2000, repeat=5)) / 2000
    assert a_time < 10e-6, f"{a_time * 1e6:.2f} µs: the quickest request takes some 500"


async def test_without_a_collector_the_callers_traceparent_is_what_the_event_carries() -> None:
    async with http_door() as door:
        await door.saved({**ALICE, "traceparent": PARENT})
        (event,) = [event async for batch in door.desk.ledger.read() for event in batch]
        assert json.loads(event.body)["traceparent"] == PARENT


def test_a_node_that_cannot_send_says_how_and_runs_without() -> None:
    with pytest.MonkeyPatch.context() as patched, capture_logs() as logs:
        patched.setenv("OTEL_TRACES_EXPORTER", "otlp")
        patched.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
        with traced("0") as is_traced:
            assert is_traced is False
            assert not tracing.under_way()
    assert f"{shlex.quote(sys.executable)} -m pip install '.[otel]'" in logs[0]["event"]


def test_a_collector_that_is_gone_is_told_once_a_minute_and_not_with_every_batch(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector.close()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")  # seconds for all tries of one batch
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    with caplog.at_level(logging.WARNING), traced("1"):
        for _ in range(4):
            tracing.folded("duckdb", events(1), 0.01)
    lines = Counter((record.pathname, record.lineno) for record in caplog.records)
    assert set(lines.values()) == {1}, lines


def test_what_sends_traces_is_in_the_python_that_make_setup_makes() -> None:
    """As the page on observing says; of another one's, the extra of the same name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    senders = [Requirement(each).name for each in extras["otel"]]
    assert set(senders) <= {Requirement(each).name for each in extras["dev"]}
    assert all(f"\n{sender}==" in locked for sender in senders)

"""OpenTelemetry: sends the node's traces to a collector, where the OTEL_ environment names one.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/: an endpoint of the OTLP exporter, or
OTEL_TRACES_EXPORTER=otlp, turns tracing on; OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none turn it off. Sending
needs the optional extra `otel`.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog

from ledger.event import StoredEvent
from ledger.runtime import tracing
from ledger.runtime.log_once import SELDOM
from producers.operations.publish import Tally

log = structlog.get_logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTER = "OTEL_TRACES_EXPORTER"


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names a collector of traces."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get(_EXPORTER, "").strip().lower()
    if exporter:
        return exporter == "otlp"
    return any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def traced(version: str) -> Iterator[bool]:
    """Send traces while the block runs, where that is enabled and possible; flushes at its end."""
    if not is_asked_for():
        yield False
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning(
            "traces are asked for and cannot be sent: install the extra otel into the Python that runs the node, in "
            f"the project's folder with {shlex.quote(sys.executable)} -m pip install '.[otel]'",
            missing=error.name,
        )
        yield False
        return
    attributes = {"service.version": version}
    if "OTEL_SERVICE_NAME" not in os.environ:
        attributes["service.name"] = "kledger"
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracing.begin(provider.get_tracer("kledger", version))
    with _told_seldom(OTLPSpanExporter.__module__):
        try:
            yield True
        finally:
            tracing.begin(None)
            provider.shutdown()


@contextmanager
def _told_seldom(logger_name: str) -> Iterator[None]:
    """Each line of this logger once a minute: of a collector that is gone the library says five with every batch."""
    told: dict[tuple[str, int], float] = {}

    def is_due(record: logging.LogRecord) -> bool:
        line, now = (record.pathname, record.lineno), time.monotonic()
        if now - told.get(line, -SELDOM) < SELDOM:
            return False
        told[line] = now
        return True

    logger = logging.getLogger(logger_name)
    logger.addFilter(is_due)
    try:
        yield
    finally:
        logger.removeFilter(is_due)


def of_folding(tally: Tally) -> Callable[[Sequence[StoredEvent], float], None]:
    """The projector's callback after each batch: updates counters and traces."""

    def folded(events: Sequence[StoredEvent], seconds: float) -> None:
        tally.folded += len(events)
        tally.took("fold", seconds)
        tracing.folded("duckdb", events, seconds)

    return folded

"""OpenTelemetry spans of an event: from the interface over the log to the view.

The event's `traceparent` names the span of its request, so that a fold on any node can be linked to it. No spans are
made before `begin`; every function here then costs one comparison.
https://opentelemetry.io/docs/specs/otel/trace/api/, https://www.w3.org/TR/trace-context/
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ledger.event import StoredEvent

if TYPE_CHECKING:  # it loads slowly, and most nodes do not need it
    from opentelemetry.trace import Link, Span, SpanContext, Tracer

MAX_LINKS = 128
"""OpenTelemetry's default limit of links for each span."""
MAX_FOLLOWED = 32
"""Largest batch whose events get spans in their own traces; a larger one is an import or a rebuild."""

_NOTHING: nullcontext[None] = nullcontext()
_TRACEPARENT = re.compile(rb'"traceparent"\s*:\s*"(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})"')
_tracer: Tracer | None = None


def begin(tracer: Tracer | None) -> None:
    """Make spans with this tracer from now on; None turns them off."""
    global _tracer
    _tracer = tracer


def under_way() -> bool:
    """Whether spans are made."""
    return _tracer is not None


def span(name: str, **attributes: str | int | float) -> AbstractContextManager[Any]:
    """A span around a block, as a child of the current one. An exception marks it as failed."""
    if _tracer is None:
        return _NOTHING
    return _tracer.start_as_current_span(name, attributes=_named(attributes))


def door(name: str, traceparent: str | None, **attributes: str | int | float) -> AbstractContextManager[Any]:
    """The server span of one request, in the caller's trace if it names one."""
    if _tracer is None:
        return _NOTHING
    from opentelemetry.trace import SpanKind

    return _tracer.start_as_current_span(
        name, context=_context(traceparent), kind=SpanKind.SERVER, attributes=_named(attributes)
    )


def answered(open_span: Any, route: str, status: int) -> None:
    """Set route and status of a request's span, with the names of OpenTelemetry's HTTP conventions."""
    if open_span is None:
        return
    from opentelemetry.trace import StatusCode

    one: Span = open_span
    one.update_name(route)
    one.set_attributes({"http.route": route.partition(" ")[2], "http.response.status_code": status})
    if status >= 500:
        one.set_status(StatusCode.ERROR)


def traceparent() -> str | None:
    """The current span as a traceparent; None when there is none."""
    if _tracer is None:
        return None
    from opentelemetry.trace import get_current_span

    current = get_current_span().get_span_context()
    if not current.is_valid:
        return None
    return f"00-{current.trace_id:032x}-{current.span_id:016x}-{current.trace_flags:02x}"


def folded(view: str, events: Sequence[StoredEvent], seconds: float) -> None:
    """Record that these events are in a view now: one span for the batch, linked to the origin of each event.

    In a small batch each event also gets a span in its own trace, from when it was stored to when it became visible.
    """
    if _tracer is None or not events:
        return
    from opentelemetry.trace import Link

    origins = [(event, origin) for event in events if (origin := _origin(event.body)) is not None]
    ended = time.time_ns()
    batch = _tracer.start_span(
        f"fold {view}",
        context=_context(None),
        links=[Link(origin) for _, origin in origins[:MAX_LINKS]],
        start_time=ended - int(seconds * 1e9),
        attributes={
            "kledger.events": len(events),
            "kledger.first_position": events[0].position,
            "kledger.last_position": events[-1].position,
        },
    )
    if len(origins) <= MAX_FOLLOWED:
        _follow(_tracer, view, origins, [Link(batch.get_span_context())], ended)
    batch.end(ended)


def _follow(
    tracer: Tracer, view: str, origins: Iterable[tuple[StoredEvent, SpanContext]], links: list[Link], ended: int
) -> None:
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    for event, origin in origins:
        tracer.start_span(
            f"visible in {view}",
            context=set_span_in_context(NonRecordingSpan(origin)),
            links=links,
            start_time=min(event.stored_ns, ended),
            attributes={"kledger.position": event.position},
        ).end(ended)


def _named(attributes: dict[str, str | int | float]) -> dict[str, str | int | float]:
    return {name.replace("__", "."): value for name, value in attributes.items()}


def _context(traceparent: str | None) -> Any:
    """The context of a traceparent; an empty one for None or an invalid traceparent."""
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    origin = _parsed(traceparent) if traceparent is not None else None
    return Context() if origin is None else set_span_in_context(NonRecordingSpan(origin), Context())


def _origin(body: bytes) -> SpanContext | None:
    match = _TRACEPARENT.search(body)
    return None if match is None else _parsed(match[1].decode())


def _parsed(traceparent: str) -> SpanContext | None:
    from opentelemetry.trace import SpanContext, TraceFlags

    parts = traceparent.split("-")
    try:
        trace_id, span_id, flags = int(parts[1], 16), int(parts[2], 16), int(parts[3], 16)
    except (IndexError, ValueError):
        return None
    origin = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags & 1))
    return origin if origin.is_valid else None

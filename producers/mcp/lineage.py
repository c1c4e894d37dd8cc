"""Lineage of a tool call, from its `_meta`.

`traceparent` is the key that MCP keeps for W3C trace context; its trace is the trace of the call unless `trace_id`
names another. `trace_id`, `message_id`, `causation_id` and `correlation_id` stand under their own names or after
`kledger/`, the form that MCP recommends for keys of one server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kledger.client.wire import Lineage

PREFIX = "kledger/"
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


def lineage_of(meta: Mapping[str, Any] | None, known: Lineage) -> Lineage:
    """The lineage of a call: values from its `_meta`, the rest from `known`."""
    named = {name: value for name in _NAMES if (value := _named(meta or {}, name))}
    if "trace_id" not in named and (trace := _TRACE.fullmatch(named.get("traceparent", ""))):
        named["trace_id"] = trace[1]
    return replace(known, **named)


_NAMES = [field.name for field in fields(Lineage)]


def _named(meta: Mapping[str, Any], name: str) -> str | None:
    value = meta.get(PREFIX + name, meta.get(name))
    return value if isinstance(value, str) and value else None

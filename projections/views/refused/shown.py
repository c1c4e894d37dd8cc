"""Redaction of refused events: an operator may read all of one except the secret of a resource.

A foreign client may publish a secret in clear: the fold refuses the event, and this module keeps the secret out of the
views. A body that cannot be parsed and may hold one is not shown at all.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from ledger.event import StoredEvent
from ledger.events.resource import SEALED_PATTERN, ResourceSaved
from ledger.wire.subjects import ROOT

WITHHELD = "[withheld: it may be a secret]"
_SECRET = "secure_body"
_DEEPEST = 100
_SEALED = re.compile(SEALED_PATTERN)
_OF_RESOURCE = re.compile(rf"{ROOT}\.[^.]*\.resource\.")
_KNOWN_FIELDS = frozenset({*ResourceSaved.model_fields, "reason"})


def body_of(event: StoredEvent, document: object) -> str:
    """The redacted body for `refused_events`; `document` is its parsed JSON, None when it is not JSON."""
    of_resource = _OF_RESOURCE.match(event.subject) is not None or b'"resource.' in event.body
    if isinstance(document, dict) and (of_resource or _mentions(document)):
        return orjson.dumps(_without(document, of_resource)).decode()
    if of_resource or _SECRET.encode() in event.body:
        return f"{WITHHELD} {len(event.body)} bytes that are no JSON object"
    return event.body.decode(errors="backslashreplace")


def _mentions(document: object) -> bool:
    stack = [document]  # not recursive, as JSON may be nested a thousand levels deep
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if _SECRET in part:
                return True
            stack += part.values()
        elif isinstance(part, list):
            stack += part
    return False


def _without(document: dict[str, Any], of_resource: bool) -> dict[str, Any]:
    """The document without possible secrets: the secret's field anywhere; in a resource's data, all unknown fields."""
    shown: dict[str, Any] = _cleared(document)
    if of_resource and "data" in shown:
        data = shown["data"]
        named = isinstance(data, dict)
        shown["data"] = {k: v if k in _KNOWN_FIELDS else WITHHELD for k, v in data.items()} if named else WITHHELD
    return shown


def _cleared(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict | list) and depth == _DEEPEST:
        return WITHHELD
    if isinstance(value, dict):
        return {name: _secret(part) if name == _SECRET else _cleared(part, depth + 1) for name, part in value.items()}
    return [_cleared(part, depth + 1) for part in value] if isinstance(value, list) else value


def _secret(value: object) -> object:
    sealed = value is None or (isinstance(value, str) and _SEALED.fullmatch(value) is not None)
    return value if sealed else WITHHELD

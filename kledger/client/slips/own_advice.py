"""What to do, as a program in Python does it: a node's advice names headers and routes, a client has functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kledger.contract.scopes import ENTITY_TYPES

_HEADERS = ", in the X-Ledger headers"
_ASK_AS = re.compile(rf"ask as (?P<kind>[\w-]+):(?P<name>.+?){re.escape(_HEADERS)}")
_ACTING_AS = re.compile(r""", with acting_as\(\w+=(?:'[^']*'|"[^"]*"|\[[^\]]*\])\)""")
SEND_A_TOKEN = (
    "send Authorization: Bearer with a token of this node (kledger token create; KLEDGER_TOKEN for our programs)"
)
"""What a node says of a token to whoever writes headers."""
_PHRASES = (
    (
        SEND_A_TOKEN,
        "give the client one of this node, as token=… or in KLEDGER_TOKEN (kledger token create makes one)",
    ),
    ("ask without an identity", "ask through a client that acts as nobody, as acting_as() makes one"),
    ("revise it with PUT", "revise it with revise()"),
    ("PUT it to use it again", "set it whole with profiles.put() to use it again"),
    ("POST /api/v1/memories begins it", "profiles.register() begins it"),
    ("POST /api/scope_types, kledger scope-type add", "register_scope_type(), kledger scope-type add"),
    ("send X-Ledger-User", "name one with acting_as(user=…)"),
    ("named whole, as an entity, in X-Ledger-Scope", "named whole, as an entity, with acting_as(scopes=[…])"),
)


def in_python(message: str) -> str:
    """A node's message with the functions of a client in place of headers and routes."""
    for stated, here in _PHRASES:
        message = message.replace(stated, here)
    return _ASK_AS.sub(_with_acting_as, message)


def as_stated(message: str) -> str:
    """The message as the node stated it, for a program that has words of its own."""
    for stated, here in _PHRASES:
        message = message.replace(here, stated)
    return _ACTING_AS.sub(_HEADERS, message)


def row_in_python(row: Any) -> Any:
    """The refusal of one entry of many, with its message in these words."""
    error = row.get("error") if isinstance(row, Mapping) else None
    if not isinstance(error, Mapping) or "message" not in error:
        return row
    return {**row, "error": {**error, "message": in_python(str(error["message"]))}}


def _with_acting_as(match: re.Match[str]) -> str:
    kind, name = match["kind"], match["name"]
    named = f"{kind}={name!r}" if kind in ENTITY_TYPES else f"scopes=[{f'{kind}:{name}'!r}]"
    return f"ask as {kind}:{name}, with acting_as({named})"

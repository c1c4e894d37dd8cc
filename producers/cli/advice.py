"""Error messages of a node in terms of this command: options instead of HTTP headers and routes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

_OPTIONS = {
    "user": "--user",
    "agent": "--agent",
    "project": "--project",
    "team": "--team",
    "org": "--org",
    "scope": "--entity",
    "trace-id": "--trace",
    "message-id": "--message",
}
_ASK_AS = re.compile(r"ask as (?P<kind>[\w-]+):(?P<name>.+?), in the X-Ledger headers")
_HEADER = re.compile(rf"x-ledger-(?P<name>{'|'.join(_OPTIONS)})", re.IGNORECASE)
_ADDRESS = re.compile(r"check the address(?=$|, or start one|: it is http| and the certificate)")
"""What is said of the node's own address: that of an endpoint or a store which the node asks is another one."""
_PLACE = re.compile(r"^items\[\d+\] (?=does not fit)")
"""Where an entry stands in a request that the command made; a reader has its line or its id."""
_PHRASES = (
    ("send X-Ledger-User", "give --user ID"),
    ("named whole, as an entity, in X-Ledger-Scope", "named whole, as an entity, with --entity"),
    ("the request's address and headers have more than", "what was asked has more than"),
    ("send long texts in the body", "make the query, the ids or the trace shorter"),
    (" bytes with its headers, the broker", " bytes, the broker"),
    ("the body has more than", "what was said has more than"),
    ("ask without an identity", "ask without --user, --agent and the like (KLEDGER_USER too)"),
    ("as whom you ask", "for whom you ask (--user, --agent, --project, --team, --org, --entity)"),
    (
        "send Authorization: Bearer with a token of this node (kledger token create; KLEDGER_TOKEN for our programs)",
        "give a token of this node with --token-file or KLEDGER_TOKEN (kledger token create makes one)",
    ),
    ("the Authorization header is not of the form Bearer TOKEN", "the token is not of the form of one"),
    ("POST /api/scope_types, kledger scope-type add", "kledger scope-type add"),
    ("POST /api/v1/memories begins it", "kledger profile register begins it"),
    ("revise it with PUT", "revise it (kledger revise)"),
    ("PUT it to use it again", "set it whole with kledger profile set to use it again"),
)


def advised(message: str) -> str:
    """An error message with the options of this command in place of HTTP terms."""
    from kledger.client.slips.own_advice import as_stated  # kledger --help loads no client

    message = _ASK_AS.sub(_as_option, as_stated(message))
    message = _ADDRESS.sub("check the address, in KLEDGER_URL or --url", message)
    for phrase, replacement in _PHRASES:
        message = message.replace(phrase, replacement)
    return _HEADER.sub(lambda match: _OPTIONS[match["name"].lower()], message)


def advised_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The refusal of one entry of many, with its message translated."""
    return {**row, "message": _PLACE.sub("it ", advised(str(row["message"])))}


def advised_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details of an error, with the names of its fields translated."""
    errors = details.get("errors")
    if not isinstance(errors, list):
        return dict(details)
    return {**details, "errors": [_advised_field(each) for each in errors]}


def _advised_field(error: Any) -> Any:
    if isinstance(error, dict) and isinstance(error.get("field"), str):
        return {**error, "field": _HEADER.sub(lambda match: _OPTIONS[match["name"].lower()], error["field"])}
    return error


def _as_option(match: re.Match[str]) -> str:
    kind, name = match["kind"], match["name"]
    if kind in _OPTIONS and kind != "scope":
        return f"ask with {_OPTIONS[kind]} {shlex.quote(name)}"
    return f"ask with --entity {shlex.quote(f'{kind}:{name}')}"

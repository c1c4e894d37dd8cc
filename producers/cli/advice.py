"""How does the advice of an error read at a command? A node speaks of headers; here they are options."""

from __future__ import annotations

import re
import shlex

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
_PHRASES = (
    ("send X-Ledger-User", "give --user ID"),
    (
        "ask without identity headers",
        "ask without --user, --agent and the like (KLEDGER_USER too)",
    ),
    ("your identity headers", "for whom you ask (--user, --agent, --project, --team, --org, --entity)"),
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
    """The message of an error with the options of this command in the place of what only HTTP has."""
    message = _ASK_AS.sub(_as_option, message)
    for phrase, ours in _PHRASES:
        message = message.replace(phrase, ours)
    return _HEADER.sub(lambda found: _OPTIONS[found["name"].lower()], message)


def _as_option(found: re.Match[str]) -> str:
    kind, name = found["kind"], found["name"]
    if kind in _OPTIONS and kind != "scope":
        return f"ask with {_OPTIONS[kind]} {shlex.quote(name)}"
    return f"ask with --entity {shlex.quote(f'{kind}:{name}')}"

"""What never stands in a log line? Values whose name says that they are secret, however deep they lie."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

HIDDEN = "[hidden]"
SECRET = frozenset(
    {
        "secure_body",
        "token",
        "tokens",
        "access_token",
        "refresh_token",
        "authorization",
        "cookie",
        "set_cookie",
        "password",
        "passwords",
        "secret",
        "api_key",
        "qdrant_api_key",
        "private_key",
        "master",
        "master_key",
        "credentials",
    }
)
"""Names in lower case with `_` for `-`."""


def hide_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The structlog processor: a log entry with `[hidden]` in the place of each secret."""
    return {name: _hidden(name, value) for name, value in event.items()}


def _hidden(name: object, value: Any) -> Any:
    if isinstance(name, str) and name.lower().replace("-", "_") in SECRET:
        return HIDDEN
    if isinstance(value, dict):
        return {inner: _hidden(inner, each) for inner, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_hidden(None, each) for each in value]
    return value

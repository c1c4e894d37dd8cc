"""Exceptions of error answers: the class of `kledger.contract.errors` with the same code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from kledger.contract import errors
from kledger.contract.addresses import told_address
from kledger.contract.errors import LedgerError, NodeUnreachable, ServiceFailed

BY_CODE: dict[str, type[LedgerError]] = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LedgerError)
}
_SHOWN = 200  # characters of an address in a message


def error_of(stated: Mapping[str, Any]) -> LedgerError:
    """The exception for `{"code","message","details"}`; a code unknown here is kept on a LedgerError."""
    code = str(stated.get("code", "internal_error"))
    details = stated.get("details")
    message = str(stated.get("message", code))
    error = BY_CODE.get(code, LedgerError)(message)
    error.code = code
    error.details = {str(key): value for key, value in details.items()} if isinstance(details, dict) else {}
    return error


def document_of_body(status: int, body: bytes, url: str) -> Any:
    """The JSON document of an answer below 400. Raises NodeUnreachable where it has none, as that of another server."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _of_another(status, body, url) from error


def error_of_body(status: int, body: bytes, url: str) -> LedgerError:
    """The exception for an HTTP answer of 400 or above, also when its body is not of our form.

    What stands before a node, or the node in its last breath, may say 500, 502, 503 or 504 in words of its own: that is
    a ServiceFailed. Whatever else is not of our form is not of a node.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        return error_of(document["error"])
    if status not in _FAILURES:
        return _of_another(status, body, url)
    return ServiceFailed(
        f"{_shown(url)} answered with status {status} and no error of the ledger: what stands before the node says so, "
        "or the node itself fails: look into its log",
        status=status,
        body=_begun(body),
    )


_FAILURES = (500, 502, 503, 504)


def _of_another(status: int, body: bytes, url: str) -> NodeUnreachable:
    return NodeUnreachable(
        f"something else than a node answers at {_shown(url)}, with status {status} and nothing of the ledger: "
        "check the address: it is http://HOST:PORT of a node",
        url=told_address(url),
        status=status,
        body=_begun(body),
    )


def _shown(url: str) -> str:
    told = told_address(url)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def _begun(body: bytes) -> str:
    return body[:500].decode("utf-8", "replace")

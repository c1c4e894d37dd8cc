"""Exceptions of error answers: the class of `kledger.contract.errors` with the same code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from kledger.contract import errors
from kledger.contract.errors import LedgerError, ServiceFailed

BY_CODE: dict[str, type[LedgerError]] = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LedgerError)
}


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
    """The JSON document of an answer below 400. Raises ServiceFailed where it has none, as that of another server."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _of_another(status, body, url, "nothing") from error


def error_of_body(status: int, body: bytes, url: str) -> LedgerError:
    """The exception for an HTTP answer of 400 or above, also when its body is not of our form."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        return error_of(document["error"])
    return _of_another(status, body, url, "no error")


def _of_another(status: int, body: bytes, url: str, without: str) -> ServiceFailed:
    return ServiceFailed(
        f"{url} answered with status {status} and {without} of the ledger: check the address: "
        "it is http://HOST:PORT of a node",
        status=status,
        body=body[:500].decode("utf-8", "replace"),
    )

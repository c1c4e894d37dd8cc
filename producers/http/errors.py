"""HTTP errors: one body and one status for each code, whatever raised it.

`{"error": {"code", "message", "details"}}`, for routes that do not exist and for what fails inside as well.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from kledger.contract.errors import InvalidPayload, LedgerError, ServiceFailed, ViewBehind
from ledger.runtime.gc_tuning import let_go
from producers.http.answers import Json
from producers.http.meant import methods_of, near, other_method
from producers.operations.updated import error_body
from producers.requests.reading import FieldsAt, fields_in, refusal, unknown_fields

_CODES = {
    400: ("bad_json", "bad_request", "illegal_query"),
    401: ("unauthenticated", "token_expired", "token_revoked"),
    403: ("not_owner", "not_reader", "forbidden"),
    404: (
        "unknown_knowledge",
        "unknown_profile",
        "unknown_process",
        "unknown_resource",
        "unknown_document",
        "unknown_reference",
        "unknown_goal",
        "unknown_session",
        "unknown_prompt",
        "unknown_route",
        "no_backup",
    ),
    405: ("method_not_allowed",),
    408: ("request_too_slow",),
    409: (
        "knowledge_exists",
        "message_exists",
        "version_conflict",
        "illegal_state",
        "backup_mismatch",
        "restore_refused",
        "not_repairable",
        "chain_contradicted",
    ),
    410: ("erased", "subject_forgotten", "past_retention"),
    413: ("payload_too_large",),
    422: (
        *("secret_in_clear", "invalid_payload", "idempotency_mismatch", "illegal_scope", "illegal_subject"),
        "unreadable_document",
    ),
    429: ("rate_limited", "budget_spent"),
    431: ("head_too_large",),
    501: ("not_available",),
    502: ("interrupted", "model_failed", "model_refused", "object_store_failed"),
    503: (
        "log_replaced",
        "restore_unfinished",
        "view_behind",
        "not_certified",
        "broker_unavailable",
        "broker_misconfigured",
        "node_misconfigured",
    ),
}
STATUS = {code: status for status, codes in _CODES.items() for code in codes}
"""A code that is not listed is the node's own fault: 500."""

Handler = Callable[[Request, Exception], Awaitable[Response]]
HUNG_UP = 499
"""What proxies call a request whose client went away: counted, and no fault of the node."""

_log = structlog.get_logger()


class UnknownRoute(LedgerError):
    """No such path."""


class MethodNotAllowed(LedgerError):
    """The path is there, and does not take this method."""


class UnreadableRequest(LedgerError):
    """What came is no HTTP request."""

    code = "bad_request"


class HeadTooLarge(LedgerError):
    """The request's address and headers have more bytes than the node takes before it knows who asks."""


class RequestTooSlow(LedgerError):
    """The request did not come in the time that the node waits for one."""


def answer(error: LedgerError) -> Json:
    """An error as a response, with the header that its status asks for (RFC 9110, RFC 6585)."""
    status = STATUS.get(error.code, 500)
    headers = None
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    elif status in (429, 503):
        wait = error.details.get("retry_after", 1)
        headers = {"Retry-After": str(max(1, math.ceil(wait)) if isinstance(wait, int | float) else 1)}
    return Json({"error": error_body(error)}, status, headers)


def failed(error: BaseException, request_line: str) -> Json:
    """What nobody foresaw: the cause goes to the node's log, the caller is told where to look."""
    # Formatted here: renderers for terminals take seconds and show local values, which may be secret.
    cause = "".join(traceback.format_exception(error))
    _log.error("a request failed", request=request_line, cause=cause)
    return answer(ServiceFailed("something inside the node failed: its log has the cause; try again"))


async def _ours(request: Request, error: Exception) -> Json:
    assert isinstance(error, LedgerError)  # registered for it alone
    return of_route(request, error)


def of_route(request: Request, error: LedgerError) -> Json:
    """The error of a route as a response; what is not there may be what the view does not have yet."""
    lacks = getattr(request.state, "degraded", None)
    if lacks and STATUS.get(error.code) == 404:  # perhaps it is what was written a moment ago
        return answer(ViewBehind(f"{error.message}; but {lacks[0]['reason']}", position=lacks[0]["position"]))
    if STATUS.get(error.code) == 404 and not _named_plainly(request) and (other := other_method(request)):
        return answer(type(error)(f"{error.message}; or is {other} meant?", **error.details))
    return answer(error)


def _named_plainly(request: Request) -> bool:
    """Whether the route that was asked is the one of just this path, which takes none of its parts for an id."""
    return bool(getattr(request.scope.get("route"), "path", None) == request.scope["path"])


async def _unfit(request: Request, error: Exception) -> Json:
    assert isinstance(error, RequestValidationError)  # registered for it alone
    if any(fault["loc"] == ("body",) and fault["type"] == "missing" for fault in error.errors()):
        return answer(_empty(request))
    faults, left_out = [_placed(fault) for fault in error.errors()], getattr(request.state, "left_out", 0)
    return answer(refusal(faults, _part(error), _fields_of_body(request), left_out))


def _empty(request: Request) -> InvalidPayload:
    """The error for a body without anything in it, or `null`, with what it needs."""
    model = model_of_body(request)
    fields = {} if model is None else model.model_fields
    needs = [name for name, info in fields.items() if info.is_required()] or [*fields]
    reason = "is empty: send a JSON object as application/json" + (f", with {', '.join(needs)}" if needs else "")
    return InvalidPayload(f"the body {reason}", errors=[{"field": "", "reason": reason}])


def _fields_of_body(request: Request) -> FieldsAt:
    """The fields that the body of this route may have; none where it is of no one model."""
    model = model_of_body(request)
    return unknown_fields if model is None else fields_in(model)


def model_of_body(request: Request) -> type[BaseModel] | None:
    """The model of the body of this route; None where it is of no one model."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = None if body is None else body.field_info.annotation
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _part(error: RequestValidationError) -> str:
    parts = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    return "the body" if parts == {"body"} else "the request"


def _placed(fault: Any) -> dict[str, Any]:
    """A fault without the part of the request in its place: `limit`, not `query.limit`."""
    return {**fault, "loc": fault["loc"][1:]}


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # registered for it alone
    if isinstance(error.__cause__, ClientDisconnect):
        return Response(status_code=HUNG_UP)  # nobody gets it
    if isinstance(error.__cause__, LedgerError):  # FastAPI wraps what reading a body raises
        return answer(error.__cause__)
    if error.status_code == 404:
        meant = f"is {found} meant? " if (found := near(request)) else ""
        return answer(UnknownRoute(f"there is no {request.url.path}: {meant}/openapi.json lists what there is"))
    if error.status_code == 405:
        taken = ", ".join(sorted(methods_of(request)))
        response = answer(MethodNotAllowed(f"{request.url.path} does not take {request.method}: it takes {taken}"))
        response.headers["Allow"] = taken
        return response
    return failed(error, f"{request.method} {request.url.path}")


def _answered(answer_to: Handler) -> Handler:
    """The handler of an error that holds nothing once it is answered, however large what was refused."""

    async def answered(request: Request, error: Exception) -> Response:
        response = await answer_to(request, error)
        let_go(error)
        return response

    return answered


def install(app: FastAPI) -> None:
    """Make every error of the app answer in this form."""
    app.add_exception_handler(LedgerError, _answered(_ours))
    app.add_exception_handler(RequestValidationError, _answered(_unfit))
    app.add_exception_handler(HTTPException, _answered(_http))

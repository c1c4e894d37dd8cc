"""Who asks, where the request came from, and which request it repeats: all of it out of headers.

Every value is percent-encoded UTF-8, so that any id is legal. A misspelt or empty identity would otherwise
make the caller the operator of the node: both are refused.
"""

from __future__ import annotations

import re
import uuid
from urllib.parse import unquote

from starlette.requests import Request

from kledger.answers.admin import WhoAmI
from kledger.contract.errors import Forbidden, IllegalScope, InvalidPayload
from kledger.contract.json_text import MOST_POSITION
from kledger.contract.scopes import MOST_ENTITIES, Caller, check_entity, check_name, require_somebody
from ledger.event import NO_LINEAGE, Lineage
from ledger.runtime import tracing
from producers.access.principal import ADMITTED_KEY, SCOPE_KEY, Principal
from producers.http.bodies import header_of
from producers.http.repeated import Repeated
from producers.operations.admin.scope_types import require_types
from producers.operations.own_writes import Writer, speaks
from producers.operations.publish import MAX_REFERENCE, NAMESPACE
from projections.engine.threads.turns import asks

IDENTITIES = {f"x-ledger-{kind}": kind for kind in ("user", "agent", "project", "team", "org")}
FURTHER = "x-ledger-scope"
"""Entities that the caller is as well, whole (`department:finance`) and separated by commas."""
LINEAGE = {
    "x-ledger-trace-id": "trace_id",
    "x-ledger-message-id": "message_id",
    "x-ledger-causation-id": "causation_id",
    "x-ledger-correlation-id": "correlation_id",
}
SEEN = "x-ledger-position"
"""A position that somebody was told, for this read to see; the same header that answers of writes have."""
IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY = IDEMPOTENCY_KEY.lower().encode()
OURS = (b"x-ledger-", b"x-kledger-")
"""What headers begin with that are the ledger's, or mean to be, by the name of its command: none is read over."""
NEARLY = {
    f"{begins}{kind}{ends}".encode(): f"X-Ledger-{kind.capitalize()}"
    for kind in IDENTITIES.values()
    for begins in ("x-", "ledger-", "kledger-")
    for ends in ("", "-id")
}
"""What names somebody to other servers, and the header that does here."""
_NAMING = frozenset(name.encode() for name in (*IDENTITIES, FURTHER))
# https://www.w3.org/TR/trace-context/#traceparent-header; one that is not of this form is to be ignored.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


async def caller_of(request: Request) -> Caller:
    """Who asks: what the request names, out of what its token is bound to; with neither it is the operator.

    Raises IllegalScope, InvalidPayload, Forbidden, ViewBehind.
    """
    principal: Principal | None = request.scope.get(SCOPE_KEY)
    caller = await _caller_of(request, principal)
    writer = writer_of(request, caller)
    speaks(writer)
    asks(writer)
    return caller


async def who(request: Request) -> WhoAmI:
    """As whom a request is taken. Raises as caller_of, but for a token that has to name somebody and does not."""
    principal: Principal | None = request.scope.get(SCOPE_KEY)
    names_somebody = any(raw in _NAMING for raw, _ in request.headers.raw)
    try:
        caller = await _caller_of(request, principal)
    except Forbidden:
        if names_somebody:
            raise
        caller = None
    return WhoAmI(
        entities=[] if caller is None or caller.is_operator else caller.entities(),
        operator=caller is not None and caller.is_operator and (principal is None or principal.role == "operator"),
        token=None if principal is None else principal.id,
        role=None if principal is None else principal.role,
        bound=[] if principal is None else sorted(principal.entities()),
    )


def writer_of(request: Request, caller: Caller) -> Writer:
    """Under whom the writes of a request are remembered, for the reads that follow."""
    principal: Principal | None = request.scope.get(SCOPE_KEY)
    return Writer(None if principal is None else principal.id, tuple(caller.entities()))


def seen_by(request: Request) -> int:
    """The position that a request says it has to see, 0 without one. Raises InvalidPayload."""
    stated = request.headers.getlist(SEEN)
    if not stated:
        return 0
    one = stated[0]
    position = int(one) if len(stated) == 1 and one.isascii() and one.isdecimal() and len(one) < 20 else None
    if position is None or position > MOST_POSITION:
        raise InvalidPayload(
            f"{SEEN} has to be one log position, as an answer of a write states it: send it as it came",
            errors=[{"field": SEEN, "reason": "is not a log position"}],
        )
    return position


async def _caller_of(request: Request, principal: Principal | None) -> Caller:
    named, further = _named_in(request)
    if principal is not None:
        caller = principal.caller(named, request.scope["path"], further)
    elif named or further:
        caller = Caller.of(named, further=further)
    else:
        _refuse_nearly_named(request)
        return WHO_SAYS_NOTHING if request.app.state.on_loopback else OPERATOR
    if len(caller.entities()) > MOST_ENTITIES:
        raise IllegalScope(f"the request names more than {MOST_ENTITIES} entities: name those it is about", errors=[])
    if caller.further:
        await require_types(request.app.state.desk, caller.further)
    return caller


def _refuse_nearly_named(request: Request) -> None:
    """Raise InvalidPayload where a request that names nobody here has a header that names somebody elsewhere."""
    for raw, _ in request.scope["headers"]:
        if (here := NEARLY.get(raw)) is not None:
            header = raw.decode()
            raise InvalidPayload(
                f"the header {header} names nobody here: who asks is named in {here}",
                errors=[{"field": header, "reason": f"is not read: here it is {here}"}],
            )


def _named_in(request: Request) -> tuple[dict[str, str], list[str]]:
    """The identities that a request names, by kind, and the further entities."""
    named: dict[str, str] = {}
    further: list[str] | None = None
    for raw, value in request.scope["headers"]:
        if not raw.startswith(OURS):
            continue
        header = raw.decode("latin-1")
        if (kind := IDENTITIES.get(header)) is not None:
            if kind in named:
                raise IllegalScope(f"{header} is there twice: name one {kind}", errors=[])
            named[kind] = _identity(header, value)
            if ADMITTED_KEY not in request.scope:  # what the node asks itself is what its own interface took
                check_name(kind, named[kind])
        elif header == FURTHER:
            if further is not None:
                raise IllegalScope(f"{header} is there twice: name all in one, separated by commas", errors=[])
            further = [check_entity(_identity(header, part)) for part in value.split(b",")]
        elif header not in LINEAGE and header != SEEN:
            known = ", ".join([*IDENTITIES, FURTHER, *LINEAGE, SEEN])
            raise InvalidPayload(f"the header {header} is not known; known are {known}", errors=[])
    return named, further or []


OPERATOR = Caller()
WHO_SAYS_NOTHING = Caller(reads_all=True)
"""Without tokens, on the machine of the node alone: everybody there could name anybody."""


def _identity(header: str, value: bytes) -> str:
    return require_somebody(header, _decoded(header, value))


def _decoded(header: str, value: bytes) -> str:
    try:
        return unquote(value.decode("ascii"), errors="strict").strip()
    except UnicodeDecodeError as error:
        raise IllegalScope(
            f"{header} is not percent-encoded UTF-8: encode every byte outside ASCII as %XX", errors=[]
        ) from error


async def lineage_of(request: Request) -> Lineage:
    """Where the request says it came from. Raises InvalidPayload."""
    named: dict[str, str] = {}
    for raw, value in request.scope["headers"]:
        if raw == b"traceparent":
            text = value.decode("latin-1")
            if _TRACEPARENT.fullmatch(text) and len(text) <= MAX_REFERENCE:
                named["traceparent"] = text
        elif raw.startswith(OURS) and (name := LINEAGE.get(header := raw.decode("latin-1"))):
            if name in named:
                raise _twice(header)
            named[name] = _reference(header, _decoded(header, value))
    if (own := tracing.traceparent()) is not None:  # the interface's span, in the trace that the caller named
        named["traceparent"] = own
    return Lineage(**named) if named else NO_LINEAGE


def _reference(header: str, value: str) -> str:
    if not value or len(value) > MAX_REFERENCE or not value.isprintable():
        raise InvalidPayload(
            f"{header} has to be 1 to {MAX_REFERENCE} printable characters: shorten it or leave it out",
            errors=[{"field": header, "reason": "is empty, too long, or not printable"}],
        )
    return value


def _twice(header: str) -> InvalidPayload:
    return InvalidPayload(
        f"{header} is there twice: send one", errors=[{"field": header, "reason": "is there more than once"}]
    )


async def retry_of(request: Request) -> uuid.UUID | None:
    """What the ids of the request's events are made of when it has an Idempotency-Key: the endpoint, the
    caller and the key. Raises InvalidPayload, IllegalScope, IdempotencyMismatch."""
    key = header_of(request.scope, _KEY)
    if key is None:
        return None
    if sum(raw == _KEY for raw, _ in request.scope["headers"]) > 1:
        raise _twice(IDEMPOTENCY_KEY)
    if not 1 <= len(key) <= 255:
        raise InvalidPayload(
            f"{IDEMPOTENCY_KEY} has to be 1 to 255 characters: a random UUID does",
            errors=[{"field": IDEMPOTENCY_KEY, "reason": "is empty or too long"}],
        )
    caller = await caller_of(request)
    made = uuid.uuid5(NAMESPACE, "\n".join([request.method, request.scope["path"], *caller.entities(), key]))
    repeated: Repeated = request.app.state.repeated
    if repeated.check(made, request.url.query, getattr(request, "document", None)):
        request.state.first_sent_as = made
    return made

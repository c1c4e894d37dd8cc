"""What a request says beside its own question: who asks, in which trace, and how fresh the answer has to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from kledger.client.connection import IDEMPOTENCY_KEY, Connection
from kledger.client.refusals import document_of_body
from kledger.client.transport.exchange import POSITION, Reply
from kledger.contract.errors import InvalidPayload
from kledger.contract.json_text import MOST_POSITION
from kledger.contract.lists import join_words
from kledger.contract.scopes import ENTITY_TYPES, Caller


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where what is written comes from; each value is sent as a header when it is set."""

    trace_id: str | None = None
    message_id: str | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None

    def headers(self) -> dict[str, str]:
        """`X-Ledger-Trace-Id` and so on; `traceparent` keeps the name that W3C gave it."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name if name == "traceparent" else f"X-Ledger-{name.replace('_', '-').title()}": quote(value)
            for name, value in named.items()
            if value
        }


_LEGAL_IN_A_KEY = "!#$&'()*+,/:;<=>?@[]^`{|} "
THE_OPERATOR = Caller()
NO_LINEAGE = Lineage()


def caller_headers(caller: Caller) -> dict[str, str]:
    """`X-Ledger-User` and so on: bare ids, percent-encoded, so that any id is legal in a header.

    What the caller is beside the five identities goes whole into `X-Ledger-Scope`, separated by commas.
    """
    identities = {kind: getattr(caller, kind) for kind in ENTITY_TYPES}
    named = {f"X-Ledger-{kind.title()}": quote(name, safe="") for kind, name in identities.items() if name is not None}
    if caller.further:
        named["X-Ledger-Scope"] = ",".join(quote(entity, safe=":") for entity in caller.further)
    return named


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection as one caller in one trace uses it; every endpoint speaks through one."""

    connection: Connection
    caller: Caller = THE_OPERATOR
    lineage: Lineage = NO_LINEAGE
    at_least: int = 0  # reads wait until the view has this position
    wait: float | None = None  # seconds a read waits for it; None leaves it to the node (10 s)
    language: str | None = None  # of the texts that are answered; None leaves it to the node
    session_id: str = ""  # of `client.session(…)`, whose calls are about one session

    def told(self) -> str:
        """Which node is asked, as whom, and in which session."""
        nobody = "the operator or the token's" if self.connection.token else "the operator"
        session = f" in session:{self.session_id}" if self.session_id else ""
        return f"{self.connection.told_address} as {', '.join(self.caller.entities()) or nobody}{session}"

    def _headers(self) -> dict[str, str]:
        wanted = {} if self.language is None else {"Accept-Language": self.language}
        return {**caller_headers(self.caller), **self.lineage.headers(), **wanted}

    def freshness(self) -> dict[str, Any]:
        """What a question has to see or fail: the position that it was told."""
        position = {"min_position": self.at_least} if self.at_least else {}
        return position | ({} if self.wait is None else {"wait": self.wait})

    def _seen(self) -> dict[str, str]:
        """What a question sees, or says that it does not: what this client wrote, through whichever node."""
        written = self.connection.written if self.connection.read_your_writes else 0
        return {POSITION: str(written)} if written > self.at_least else {}

    async def read(
        self, path: str, params: Mapping[str, Any] | None = None, *, method: str = "GET", body: object = None
    ) -> Any:
        """Ask, wait for what this client wrote, and return the JSON document of the answer."""
        answer = await self.connection.send(
            method,
            path,
            params={**without_none(**params or {}), **self.freshness()},
            headers={**self._headers(), **self._seen()},
            body=body,
            repeatable=True,
        )
        return _document(answer)

    async def write(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """State something, once however often it is sent, and return the JSON document of the answer."""
        answer = await self.connection.send(
            method,
            path,
            params=without_none(**params or {}),
            headers={**self._headers(), IDEMPOTENCY_KEY: _key(idempotency_key)},
            body=body,
            repeatable=True,
        )
        document = _document(answer) if answer.content else None
        if isinstance(document, dict):
            self.connection.saw(document.get("position"))
        self.connection.saw(_position(answer.position))
        return document

    async def order(self, path: str, body: object) -> Any:
        """Have the node do something that is not safe to ask twice (start a job)."""
        answer = await self.connection.send(
            "POST", path, params={}, headers=self._headers(), body=body, repeatable=False
        )
        return _document(answer)

    async def look(self, path: str, params: Mapping[str, Any] | None = None, *, also: int | None = None) -> Any:
        """Ask for what waits for no position, such as the node itself; the status `also` is an answer too."""
        answer = await self.connection.send(
            "GET", path, params=without_none(**params or {}), headers=self._headers(), repeatable=True, also=also
        )
        return _document(answer)


def segment(value: str) -> str:
    """An id as one segment of a path."""
    if not value:
        raise InvalidPayload("an empty id names nothing: give the id of an item, a job or a reference")
    quoted = quote(value, safe="")
    # A segment of dots alone would be resolved as one of a relative path.
    return quoted.replace(".", "%2E") if quoted in (".", "..") else quoted


def comma_joined(values: Sequence[str] | None) -> str | None:
    """A filter of several values as the query string wants it: `a,b`; None when there is none."""
    return join_words(values) if values else None


def _position(header: str) -> int | None:
    """The position in a header; None where it has none that a log can have."""
    return int(header) if header.isdecimal() and len(header) <= len(str(MOST_POSITION)) else None


def _document(answer: Reply) -> Any:
    return document_of_body(answer.status, answer.content, answer.url)


def _key(stated: str | None) -> str:
    """A key of the caller's own as a header can hold it, or a random one."""
    return quote(stated, safe=_LEGAL_IN_A_KEY) if stated else uuid4().hex


def without_none(**fields: object) -> dict[str, Any]:
    """The fields that have a value: what is None is not sent."""
    return {name: value for name, value in fields.items() if value is not None}

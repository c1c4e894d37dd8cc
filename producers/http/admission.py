"""Admission of requests: by the name they were sent to, the page they come from, their token, and their number.

A node on loopback without tokens takes everybody on its machine, so a web page must not reach it through the
browser of whoever runs it: names that are not loopback's (DNS rebinding) are refused. Where a token is needed no
page has one, and the node may stand behind a proxy with a name. Requests that another site's page makes are refused in
any case: by `Origin`, and by `Sec-Fetch-Site`, which browsers send where they send no origin (images, scripts).
A link to a page for people may be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import structlog
from starlette.types import Scope

from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import InvalidPayload, LedgerError, NotOwner, RateLimited
from ledger.runtime.log_once import Seldom
from producers.access.book import TokenBook
from producers.access.limits import Buckets, Limits
from producers.access.principal import ADMITTED_KEY, SCOPE_KEY, Principal
from producers.http.bodies import LIMITS_KEY
from producers.http.metrics import Metrics
from producers.web.addresses import is_page, wants_page

_seldom = Seldom(structlog.get_logger(__name__))
# What a supervisor and a load balancer ask, who have no token. Nothing of what the ledger knows is in the answers.
OPEN = frozenset({"/health", "/health/live", "/health/ready"})
PAGES = frozenset({"/", "/docs"})
"""Pages for people, beside those of the web interface: a link on another site may lead here."""
_OWN_SITE = frozenset({b"same-origin", b"none"})  # none: typed into the address bar, or no browser at all
_NAVIGATION = {b"sec-fetch-mode": [b"navigate"], b"sec-fetch-dest": [b"document"]}
_CONDITIONS = (b"if-match", b"if-none-match", b"if-unmodified-since")
_LOOKED_AT = frozenset({b"host", b"origin", b"authorization", b"accept", b"sec-fetch-site", *_NAVIGATION, *_CONDITIONS})


class Admission:
    """What every request of one node has to pass."""

    def __init__(self, tokens: TokenBook, limits: Limits, metrics: Metrics, on_loopback: bool) -> None:
        self._tokens = tokens
        self._limits = limits
        self._buckets = Buckets(limits)
        self._metrics = metrics
        self._on_loopback = on_loopback

    def let_in(self, scope: Scope) -> None:
        """Note in the scope who asks and what the limits are.

        Raises NotOwner (name or origin), InvalidPayload (a condition), Unauthenticated, TokenExpired, TokenRevoked,
        Forbidden, RateLimited.
        """
        scope[LIMITS_KEY] = self._limits
        path, headers = scope["path"], _looked_at(scope["headers"])
        self._check_address(headers.get(b"host", []), headers.get(b"origin", []))
        if b"sec-fetch-site" in headers:
            _check_site(headers, scope["method"], path)
        _check_conditions(headers, scope["method"])
        # Pages have sessions of their own, and ask with the token of the person.
        if path in OPEN or is_page(path) or (path == "/" and wants_page(_accept(headers))):
            return
        principal = scope[SCOPE_KEY] = self._principal(scope, headers.get(b"authorization", []))
        if scope.get(ADMITTED_KEY):
            return
        try:
            self._buckets.take(None if principal is None else principal.id)
        except RateLimited:
            self._metrics.rate_limited.inc()
            raise

    def _principal(self, scope: Scope, authorization: list[bytes]) -> Principal | None:
        """Whom the token of a request binds it to; None on a node without tokens."""
        path = scope["path"]
        try:
            principal = self._tokens.principal_of(authorization)
            if principal is not None:
                principal.require_path(path)
        except LedgerError as error:
            self._metrics.turned_away.labels(error.code).inc()
            client = scope.get("client") or ("unknown", 0)
            _seldom.warning("a token is refused", kind=error.code, code=error.code, path=path[:200], client=client[0])
            raise
        return principal

    def _check_address(self, hosts: list[bytes], origins: list[bytes]) -> None:
        if len(hosts) > 1 or len(origins) > 1:
            raise NotOwner("the request has several Host or Origin headers, and could mean another node: send one")
        at = hosts[0].decode("latin-1").lower() if hosts else ""
        if self._on_loopback and _name(f"//{at}") not in LOOPBACK and not self._tokens.required:
            raise NotOwner(
                f"this node serves its own machine alone, and was asked as {at!r}: use http://127.0.0.1 with its port"
            )
        if origins and _netloc(origins[0].decode("latin-1").lower()) != at:
            raise _of_another_site()


def _looked_at(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    """The values of the headers by which a request is let in."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        if name in _LOOKED_AT:
            found.setdefault(name, []).append(value)
    return found


def _accept(headers: Mapping[bytes, list[bytes]]) -> str:
    return headers[b"accept"][-1].decode("latin-1") if b"accept" in headers else ""


def _check_site(headers: Mapping[bytes, list[bytes]], method: str, path: str) -> None:
    """Refuse what a page of another site makes a browser ask, by the headers that no page can set."""

    def said(name: bytes) -> list[bytes]:
        return [value.strip().lower() for value in headers.get(name, ())]

    if _OWN_SITE.issuperset(said(b"sec-fetch-site")):
        return
    follows_link = method == "GET" and all(said(name) == value for name, value in _NAVIGATION.items())
    if follows_link and (path in PAGES or is_page(path)):
        return
    raise _of_another_site()


def _check_conditions(headers: Mapping[bytes, list[bytes]], method: str) -> None:
    """Refuse a change on a condition that nobody would look at: it would be done though the condition does not hold."""
    for name in _CONDITIONS:
        if name in headers and method not in ("GET", "HEAD"):
            header = name.decode().title()
            raise InvalidPayload(
                f"{header} is no condition here: state expected_version in the body, where the endpoint has it",
                errors=[{"field": header, "reason": "is not read here"}],
            )


def _of_another_site() -> NotOwner:
    return NotOwner("a page of another site may not use this node: ask it from a program of your own")


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None

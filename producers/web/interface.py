"""The web interface of one node: it finds the page, the session and the person, and asks the node in process.

What a page shows comes from the node's own HTTP interface, asked in the name of the person, so that identity, rights,
limits and errors are those of every other interface. A change is a form of the person's own session: the guard refuses
what comes from another site, and the form has to state the session's token.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import parse_qs, quote

import httpx
import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kledger.client.clients import AsyncLedgerClient
from kledger.client.connection import Connection
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.wire import Wire
from kledger.contract.errors import (
    InvalidPayload,
    LedgerError,
    PayloadTooLarge,
    ServiceFailed,
    Unauthenticated,
)
from kledger.contract.language import Language, accepted_language, known_language
from kledger.contract.scopes import Caller
from producers.web.addresses import HOME
from producers.web.cookies import FORM, LANGUAGE, THEME, session_cookie
from producers.web.errors.again import came_from, sent
from producers.web.errors.own import StaleForm
from producers.web.headers import OF_A_PAGE
from producers.web.live.followers import Followers, Moves
from producers.web.pages import PAGES
from producers.web.rendering import page
from producers.web.sessions import ENDS, Sessions
from producers.web.site import Page, Site
from producers.web.visit import Theme, Visit

log = structlog.get_logger(__name__)
_INSIDE = "http://127.0.0.1"  # a host that every node accepts as its own; no socket is opened to it
MOST_FORM = 2 * 1024 * 1024
_FORM = "application/x-www-form-urlencoded"


class WebInterface:
    """The pages of one app, as an ASGI app. `status_of` gives the HTTP status of an error's code."""

    def __init__(self, app: ASGIApp, status_of: Callable[[str], int], language: Language, view: Moves) -> None:
        self._status_of = status_of
        self._routes = [Route(each.path, endpoint=_never, methods=[*each.methods]) for each in PAGES]
        self._language = language
        self._view = view
        sessions = Sessions()
        self.site = Site(sessions, _client_of(app), Followers(view, sessions))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        request = Request(scope, receive)
        found = self._found(scope)
        visit = self._visit(request, renewed=found is None or not found.watches)
        try:
            response = await self._answer(request, visit, found)
        except LedgerError as error:
            response = self._failed(visit, error)
        except Exception:  # a page for a person all the same, with the headers of one
            log.exception("a page failed", path=scope["path"][:200])
            response = self._failed(visit, ServiceFailed("something went wrong here: the log of the node says what"))
        await response(scope, receive, send)

    async def _answer(self, request: Request, visit: Visit, found: Page | None) -> Response:
        if found is None:
            return page(visit, "missing.html", 404)
        if visit.signed_in is None and not found.open:
            if request.method in ("GET", "HEAD"):
                return RedirectResponse(f"{HOME}/sign-in?next={quote(visit.address, safe='')}", 303, headers=OF_A_PAGE)
            if _of_our_page(request):
                visit.form = await _form_of(request)  # shown again, and nothing else
            raise Unauthenticated("you are signed out: sign in, and send it again")
        if request.method == "POST":
            visit.form = await _form_of(request)
            _check_csrf(visit, request)
        return await found.handle(self.site, visit)

    def _found(self, scope: Scope) -> Page | None:
        # HEAD is answered as GET; the server leaves the body out.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        for route, each in zip(self._routes, PAGES, strict=True):
            match, child = route.matches(asked)
            if match is Match.FULL:
                scope["route"], scope["path_params"] = route, child["path_params"]
                return each
        return None

    def _visit(self, request: Request, *, renewed: bool) -> Visit:
        cookies = request.cookies
        theme = cookies.get(THEME, "auto")
        stated = known_language(cookies.get(LANGUAGE, ""))
        accepted = accepted_language(request.headers.get("accept-language", ""))
        return Visit(
            request,
            self.site.sessions.of(cookies.get(session_cookie(request.scope)), renewed=renewed),
            stated or accepted or self._language,
            cast(Theme, theme if theme in ("light", "dark") else "auto"),
            request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"),
            self._view.position,
        )

    def _failed(self, visit: Visit, error: LedgerError) -> Response:
        """An error as a page; a session whose token ended ends with it."""
        if visit.signed_in is not None and visit.signed_in.with_token and error.code in ENDS:
            self.site.sessions.end(visit.request.cookies.get(session_cookie(visit.request.scope)))
            visit.signed_in = None
        # Only what came with the session's token may be sent again, and only that or what the browser says that a page
        # of ours sent is shown: another site's form is not.
        again = visit.signed_in is not None and not isinstance(error, StaleForm)
        fields = sent(visit) if again or _of_our_page(visit.request) else []
        status = self._status_of(error.code)
        return page(visit, "error.html", status, error=error, sent=fields, again=again, back=came_from(visit))


async def _never(_: Request) -> Response:
    """Routes match addresses here; the interface itself calls what they lead to."""
    raise AssertionError


def _of_our_page(request: Request) -> bool:
    """Whether the browser says that a page of this node sent the request; no page can say so for itself."""
    return request.headers.get("sec-fetch-site") == "same-origin"


def _client_of(app: ASGIApp) -> Callable[[Caller, str], AsyncLedgerClient]:
    transport = httpx.ASGITransport(app)

    def client(caller: Caller, token: str) -> AsyncLedgerClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        http = httpx.AsyncClient(transport=transport, base_url=_INSIDE, headers=headers, trust_env=False, timeout=120)
        return AsyncLedgerClient.over(
            Wire(Connection(_INSIDE, token="", retries=1, transport=HttpxTransport.over(http)), caller)
        )

    return client


async def _form_of(request: Request) -> Mapping[str, list[str]]:
    """The fields of a form. Raises PayloadTooLarge, InvalidPayload."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise InvalidPayload(f"a change comes as a form ({_FORM})", errors=[])
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_FORM:
            raise PayloadTooLarge(f"the form has more than {MOST_FORM:,} bytes: shorten its texts")
        chunks.append(chunk)
    try:
        return parse_qs(b"".join(chunks).decode("utf-8"), keep_blank_values=True, max_num_fields=5_000, errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidPayload("the form is no UTF-8 text that can be read", errors=[]) from error


def _check_csrf(visit: Visit, request: Request) -> None:
    """Refuse a change that no page of this session asked for. Raises StaleForm."""
    expected = request.cookies.get(FORM, "") if visit.signed_in is None else visit.signed_in.csrf
    stated = visit.said("csrf") or request.headers.get("x-csrf-token", "")
    if not expected or not secrets.compare_digest(expected.encode(), stated.encode()):
        raise StaleForm("this form is not from the page that you are signed in to: open the page again, and repeat it")

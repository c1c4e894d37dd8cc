"""Cookies of the pages: who is signed in, and how a person likes to read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from producers.web.addresses import HOME

LANGUAGE = "kledger-language"
THEME = "kledger-theme"
FORM = "kledger-form"
"""What the form of signing in has to repeat, before there is a session."""
_A_YEAR = 365 * 24 * 3600


def session_cookie(scope: Scope) -> str:
    """The name of the session's cookie. A browser gives a cookie to every port of a machine: each node has its own."""
    server = scope.get("server") or ("", 0)
    return f"kledger-session-{server[1] or 0}"


def sign_in(response: Response, request: Request, named: str) -> None:
    """Have the browser keep a session: no script reads it, and no other site has it sent but by a link."""
    response.set_cookie(
        session_cookie(request.scope), named, httponly=True, samesite="lax", secure=_is_secure(request), path="/"
    )
    response.delete_cookie(FORM, path=HOME)


def sign_out(response: Response, request: Request) -> None:
    """Have the browser forget the session."""
    response.delete_cookie(session_cookie(request.scope), path="/")


def keep_form(response: Response, request: Request, value: str) -> None:
    """What the form of signing in has to repeat."""
    response.set_cookie(FORM, value, httponly=True, samesite="strict", secure=_is_secure(request), path=HOME)


def keep_liking(response: Response, request: Request, name: str, value: str) -> None:
    """How a person likes to read, for a year."""
    response.set_cookie(
        name, value, max_age=_A_YEAR, httponly=True, samesite="lax", secure=_is_secure(request), path="/"
    )


def _is_secure(request: Request) -> bool:
    """Whether the browser came over TLS: its own form says so, also where a proxy ends it."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")

"""Signing in: with a token where the node has some, else by saying who one is; and signing out."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from starlette.responses import RedirectResponse, Response

from kledger.contract.errors import Forbidden, IllegalScope, LedgerError, Unauthenticated
from kledger.contract.lists import split_words
from kledger.contract.scopes import ENTITY_TYPES, Caller, check_entity, check_name
from producers.web import cookies
from producers.web.addresses import HOME, local
from producers.web.errors.own import NobodyNamed, NotANameAlone
from producers.web.headers import OF_A_PAGE
from producers.web.rendering import page
from producers.web.sessions import Notice, Session
from producers.web.site import Page, Site
from producers.web.visit import Visit

_MOST_TOKEN = 500


async def form(site: Site, visit: Visit) -> Response:
    """The form; with who one is now, where somebody is signed in."""
    return await _form(site, visit, local(visit.text("next")))


async def _form(site: Site, visit: Visit, onward: str, error: LedgerError | None = None) -> Response:
    asks_token = await _asks_token(site)
    stated = {kind: visit.said(kind) for kind in (*ENTITY_TYPES, "scopes")}
    value = visit.request.cookies.get(cookies.FORM) or secrets.token_urlsafe(24)
    response = page(
        visit,
        "sign_in.html",
        200 if error is None else 403,
        asks_token=asks_token,
        onward=onward,
        error=error,
        kinds=ENTITY_TYPES,
        stated=stated,
        form=visit.signed_in.csrf if visit.signed_in else value,
    )
    if visit.signed_in is None:
        cookies.keep_form(response, visit.request, value)
    return response


async def enter(site: Site, visit: Visit) -> Response:
    """Begin a session for whom the form names, where the node lets them in."""
    onward = local(visit.said("next"))
    try:
        session = await _session(site, visit)
    except LedgerError as error:
        return await _form(site, visit, onward, error)
    site.sessions.end(visit.request.cookies.get(cookies.session_cookie(visit.request.scope)))
    response = RedirectResponse(onward if session.reads else f"{HOME}/sql", 303, headers=OF_A_PAGE)
    cookies.sign_in(response, visit.request, site.sessions.begin(session))
    return response


async def leave(site: Site, visit: Visit) -> Response:
    """End the session."""
    site.sessions.end(visit.request.cookies.get(cookies.session_cookie(visit.request.scope)))
    response = RedirectResponse(f"{HOME}/sign-in", 303, headers=OF_A_PAGE)
    cookies.sign_out(response, visit.request)
    return response


async def _session(site: Site, visit: Visit) -> Session:
    """The session that the form asks for. Raises IllegalScope, Unauthenticated, Forbidden."""
    token = visit.said("token")
    if len(token) > _MOST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise Unauthenticated("the token has characters that no token has: copy it whole, as it was printed")
    caller = _named(visit)
    who = await site.client(caller, token).whoami()
    caller = caller_of(who["entities"])
    ledger = site.client(caller, token)
    analyst = who["operator"] or who["role"] == "analyst"
    reads = True
    try:
        await ledger.list(limit=1)
    except Forbidden:
        if not analyst:
            raise
        reads = False
    of = f"token {who['token']}" if who["token"] else " ".join(who["entities"])
    session = Session(caller, ledger, bool(token), operator=who["operator"], analyst=analyst, reads=reads, of=of)
    if not token:
        await _tell_if_unknown(visit, session)
    return session


async def _tell_if_unknown(visit: Visit, session: Session) -> None:
    """Without tokens every name is taken: say so where nothing is known of one, which may be a slip of the pen."""
    who = session.who()[:1]
    if who and not (await session.ledger.list(owner=who[0], status="all", limit=1))["total"]:
        text = visit.words("{who} owns nothing here yet. If you expected something, check the name.", who=who[0])
        session.tell(Notice(text))


def caller_of(entities: Sequence[str]) -> Caller:
    """The caller that is all of these."""
    named = {kind: name for kind, _, name in (entity.partition(":") for entity in entities) if kind in ENTITY_TYPES}
    return Caller.of(named, further=[entity for entity in entities if entity.partition(":")[0] not in ENTITY_TYPES])


def _named(visit: Visit) -> Caller:
    """Whom the form names; nobody is the operator, or whoever the token is bound to."""
    if visit.said("as") == "operator":
        return Caller()
    named = {kind: _name(kind, name) for kind in ENTITY_TYPES if (name := visit.said(kind))}
    further = [check_entity(part) for part in split_words(visit.said("scopes"))]
    if not named and not further and not visit.said("token"):
        raise NobodyNamed("nobody is named: say who you are, or look as the operator", errors=[])
    return Caller.of(named, further=further)


def _name(kind: str, name: str) -> str:
    """What the field of a kind names. Raises NotANameAlone."""
    try:
        return check_name(kind, name)
    except IllegalScope as error:
        raise NotANameAlone(error.message, **error.details) from error


async def _asks_token(site: Site) -> bool:
    """Whether the node asks for tokens."""
    try:
        await site.client(Caller(), "").list(limit=1)
    except Unauthenticated:
        return True
    except LedgerError:  # it is not ready: it asks for nothing more than who one is
        return False
    return False


PAGES = (
    Page(f"{HOME}/sign-in", form, open=True),
    Page(f"{HOME}/sign-in", enter, ("POST",), open=True),
    Page(f"{HOME}/sign-out", leave, ("POST",)),
)

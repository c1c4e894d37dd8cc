"""What is remembered of a user: their two memories as agents are handed them, and a form that puts them right."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from kledger.answers.profiles import ProfileVersion
from kledger.contract.errors import InvalidPayload, LedgerError, PayloadTooLarge, UnknownProfile
from kledger.contract.json_text import loads
from kledger.contract.words import ProfileType
from producers.web.addresses import HOME
from producers.web.once import fresh, key_of
from producers.web.rendering import back_to, page
from producers.web.site import Page, Site, change
from producers.web.visit import Visit

KINDS: Final[tuple[ProfileType, ...]] = ("user", "work")
MOST_VERSIONS = 20
"""Versions of each memory that are listed, the latest."""
_TO_BE_MENDED = (InvalidPayload, PayloadTooLarge)
Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """One memory on the page: `content` is None while it is not used; `prompt` is what an agent is handed of it."""

    kind: ProfileType
    content: Content | None
    prompt: str | None
    versions: list[ProfileVersion]
    text: str | None = None
    """What somebody wrote that was refused."""
    before: str | None = None
    """The text that they changed."""
    error: LedgerError | None = None


def difference(before: Content, after: Content) -> dict[str, Any]:
    """The merge patch (RFC 7396) that makes one document the other."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        known = before.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            if inner := difference(known, value):
                patch[name] = inner
        elif name not in before or value != known:
            patch[name] = value
    return patch


async def profiles(_: Site, visit: Visit) -> Response:
    """Both memories of the person who looks."""
    return await _page(visit)


async def revise(_: Site, visit: Visit) -> Response:
    """State anew what the person changed; what others changed meanwhile beside it stays."""
    kind, text, before = _kind(visit), visit.said("content"), visit.said("before")
    try:
        stated = difference(_document(before), _document(text))
        if not stated:
            visit.notify(visit.words("It says so already: nothing was changed."))
            return back_to(visit, f"{HOME}/profiles")
        await visit.ledger.profiles.patch(kind, stated, idempotency_key=key_of(visit))
    except _TO_BE_MENDED as error:
        return await _page(visit, kind, text, before, error)
    visit.notify(visit.words("Revised."), undo=f"{HOME}/profiles/{kind}", content=before, before=text)
    return back_to(visit, f"{HOME}/profiles")


async def disable(_: Site, visit: Visit) -> Response:
    """Hand a memory to no agent any more."""
    kind = _kind(visit)
    await visit.ledger.profiles.disable(kind, idempotency_key=key_of(visit))
    visit.notify(visit.words("Agents are not handed it any more."), undo=f"{HOME}/profiles/{kind}/use")
    return back_to(visit, f"{HOME}/profiles")


async def use(_: Site, visit: Visit) -> Response:
    """Hand a memory to agents again, as it was."""
    kind = _kind(visit)
    last = (await visit.ledger.profiles.history(kind))["versions"][-1]
    await visit.ledger.profiles.put(kind, last["content"], idempotency_key=key_of(visit))
    visit.notify(visit.words("Agents are handed it again."))
    return back_to(visit, f"{HOME}/profiles")


async def _page(
    visit: Visit, kind: ProfileType | None = None, text: str = "", before: str = "", error: LedgerError | None = None
) -> Response:
    session = visit.session
    if not session.operator and session.caller.user is None:
        return page(visit, "profiles.html", shown=[], once=fresh())
    refused = {kind: (text, before, error)}
    both = await visit.ledger.profiles.both()
    shown = await asyncio.gather(
        *(
            _shown(visit, each, both["user_memory"] if each == "user" else both["work_memory"], *refused.get(each, ()))
            for each in KINDS
        )
    )
    return page(visit, "profiles.html", 422 if error else 200, shown=shown, once=fresh())


async def _shown(visit: Visit, kind: ProfileType, content: Content | None, *refused: Any) -> Shown:
    ledger = visit.ledger
    prompt = await ledger.profiles.prompt(kind)
    try:
        versions = (await ledger.profiles.history(kind))["versions"]
    except UnknownProfile:  # nothing was ever said
        versions = []
    return Shown(kind, content, prompt, versions[: -MOST_VERSIONS - 1 : -1], *refused)


def _kind(visit: Visit) -> ProfileType:
    """The memory that the address names. Raises UnknownProfile."""
    stated = visit.part("kind")
    for each in KINDS:
        if stated == each:
            return each
    raise UnknownProfile(f"there is no memory {stated[:80]!r}: there are user and work")


def _document(text: str) -> Content:
    """A memory as a form has it. Raises InvalidPayload."""
    try:
        document = loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidPayload(f"the content is no JSON that can be read: {error}", errors=[]) from error
    if not isinstance(document, dict):
        raise InvalidPayload("the content is a JSON object, such as {}", errors=[])
    return document


PAGES = (
    Page(f"{HOME}/profiles", profiles),
    change(f"{HOME}/profiles/{{kind}}/disable", disable),
    change(f"{HOME}/profiles/{{kind}}/use", use),
    change(f"{HOME}/profiles/{{kind}}", revise),
)

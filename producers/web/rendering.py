"""Pages as HTML: templates, and what they may call.

Everything is escaped; only what the figures make is taken as markup. Templates state no style and no script of their
own, since a browser is told to run none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kledger.contract.lists import join_words
from ledger.installed import PRODUCT, version
from ledger.new_item import helped_and_harmed
from producers.web.addresses import DOTS, HOME, NAMED_BESIDE, local
from producers.web.errors.telling import told
from producers.web.files import address_of
from producers.web.headers import OF_A_PAGE
from producers.web.tags import tags_of
from producers.web.turned import in_sight
from producers.web.visit import Visit
from producers.web.words import Words
from projections.search.prompt.steps import without_number

_STEPS = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "segment": segment,
        "percent": percent,
        "moment": moment,
        "short": short,
        "tojson_text": _json_text,
        "tags": tags_of,
        "told": told,
        "listed": _listed,
        "without_number": without_number,
        "verdicts": helped_and_harmed,
    }
    environment.globals |= {"file": address_of, "home": HOME, "with_query": with_query}
    environment.globals |= {"item_page": item_page, "page_of": page_of}
    return environment


def page(visit: Visit, template: str, code: int = 200, **context: object) -> HTMLResponse:
    """A page made of a template; it shows what the session has to say once."""
    words = visit.words
    session = visit.signed_in
    text = (
        _templates()
        .get_template(template)
        .render(
            _=words,
            visit=visit,
            session=session,
            notices=session.take_notices() if session else [],
            lacking=_lacking(context),
            ago=lambda value: ago(value, words),
            lasting=lambda seconds: lasting(seconds, words),
            version=version(PRODUCT),
            **context,
        )
    )
    return HTMLResponse(in_sight(text), code, headers=OF_A_PAGE)


def _lacking(context: Mapping[str, object]) -> list[Mapping[str, str]]:
    """What the answers that a page is made of lack, each part once."""
    answers = [value for value in context.values() if isinstance(value, dict)]
    return list({each["part"]: each for answer in answers for each in answer.get("degraded") or ()}.values())


def back_to(visit: Visit, address: str | None = None) -> Response:
    """After a change: the page that the form names, or `address`; a page of ours in any case."""
    return RedirectResponse(local(address or visit.said("back")), 303, headers=OF_A_PAGE)


def segment(value: object) -> str:
    """An id as a part of a path."""
    # Two dots stand encoded, so that no address of ours looks as if it led up.
    return quote(str(value), safe="").replace("..", "%2E%2E")


def page_of(kind: str, named: str, part: str = "", **query: object) -> str:
    """The address of the page of an item, a trace, …, or of a part of it."""
    if named in DOTS:  # a browser resolves a part of dots alone, also where it is encoded
        return with_query(f"{HOME}/{kind}/{NAMED_BESIDE}{part and '/' + part}", {"id": named}, **query)
    return with_query(f"{HOME}/{kind}/{segment(named)}{part and '/' + part}", query)


def item_page(item_id: str, part: str = "", **query: object) -> str:
    """The address of an item's page."""
    return page_of("items", item_id, part, **query)


def with_query(path: str, stated: Mapping[str, object], **changed: object) -> str:
    """A path with these parameters; those that are None or empty are left out, lists are repeated."""
    merged = {**stated, **changed}
    pairs = [
        (name, str(each))
        for name, value in merged.items()
        for each in (value if isinstance(value, list | tuple) else [value])
        if each not in (None, "", False)
    ]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def percent(share: float | None) -> str:
    """A share as whole percent."""
    return "–" if share is None else f"{round(share * 100)}%"


def short(text: str, most: int = 240) -> str:
    """The beginning of a text, for a card."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _listed(words: str | Sequence[str]) -> str:
    """One word or several as a filter takes them."""
    return join_words([words] if isinstance(words, str) else words)


def _json_text(value: object) -> str:
    """A document as text, for a person to read."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def moment(value: str | None) -> str:
    """A time as people read it, in UTC."""
    at = _time(value)
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(value: str | None, words: Words) -> str:
    """How long ago a time was."""
    at = _time(value)
    if at is None:
        return ""
    seconds = (datetime.now(UTC) - at).total_seconds()
    for size, unit in _STEPS:
        if seconds >= size:
            count = int(seconds // size)
            return words(f"{{n}} {unit} ago" if count == 1 else f"{{n}} {unit}s ago", n=count)
    return words("just now")


def lasting(seconds: float, words: Words) -> str:
    """How long something takes by now."""
    for size, unit in _STEPS:
        if seconds >= size:
            return words(f"{{n}} {unit}s", n=int(seconds // size))
    return words("less than a minute")


def _time(value: str | None) -> datetime | None:
    if not value:
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # an author's own date; in UTC it may be in the year 0 or 10000
        return None

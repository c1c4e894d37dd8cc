"""The body of a request in JSON, and where in it stands what JSON cannot say."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import orjson

from kledger.contract.errors import InvalidPayload

_Place = tuple[Any, str | int] | None
"""Where a part stands: the place of what it is in, and its name or number there; None for the whole."""


def encoded(body: object) -> bytes | None:
    """The body in JSON; None without one. Raises InvalidPayload, which names the part that JSON cannot say."""
    if body is None:
        return None
    try:
        content = orjson.dumps(body)
    except (TypeError, ValueError) as error:
        found = ((place, why) for place, part in _parts(body) if (why := _unsayable(part)))
        raise _not_json(*next(found, (None, str(error)))) from error
    if b"null" in content:  # which is what is written of what is no number
        for place, part in _parts(body):
            if isinstance(part, float) and not math.isfinite(part):
                raise _not_json(place, f"{part} is no number there")
    return content


def _not_json(place: _Place, reason: str) -> InvalidPayload:
    name = _named(place)
    errors = [{"field": name, "reason": reason}] if name else []
    return InvalidPayload(f"{name or 'this'} cannot be said in JSON: {reason}", errors=errors)


def _named(place: _Place) -> str:
    """`tags.since`, `items[3].task`."""
    if place is None:
        return ""
    above, at = _named(place[0]), place[1]
    return f"{above}[{at}]" if isinstance(at, int) else f"{above}.{at}".lstrip(".")


def _parts(body: object) -> Iterator[tuple[_Place, object]]:
    """A body and all parts of it, each with its place, which is named only where it is told: most bodies are large."""
    waiting: deque[tuple[_Place, object]] = deque([(None, body)])
    opened: set[int] = set()  # one may hold itself
    while waiting:
        place, part = waiting.popleft()
        yield place, part
        if isinstance(part, dict | list | tuple) and id(part) not in opened:
            opened.add(id(part))
            if isinstance(part, dict):
                waiting += (((place, str(key)), value) for key, value in part.items())
            else:
                waiting += (((place, number), value) for number, value in enumerate(part))


def _unsayable(part: object) -> str | None:
    """Why a part of a body alone cannot be said in JSON; None where it can."""
    if isinstance(part, dict):
        return next((f"{str(key)[:40]} is a name in it, and no text" for key in part if not isinstance(key, str)), None)
    if isinstance(part, list | tuple):
        return None
    try:
        orjson.dumps(part)
    except (TypeError, ValueError) as error:
        return str(error)
    return None

"""Which endpoint a request may have meant that asks for one that is not there, or for another than its path names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route

_ALIKE = 0.7  # memories and memory, recal and recall; not rate and restore


def methods_of(request: Request) -> set[str]:
    """The methods that the path takes: the framework tells those of one route alone, and not HEAD, which is a GET."""
    methods: set[str] = set()
    for route in _routes(request.app.routes):
        if route.matches(request.scope)[0] is Match.PARTIAL:
            methods |= route.methods or set()
    return methods | {"HEAD"} if "GET" in methods else methods


def other_method(request: Request) -> str | None:
    """The endpoint with just this path and another method, where the one that was asked takes the path for an id."""
    path = request.scope["path"]
    for route in _routes(request.app.routes):
        if route.path == path and request.method not in (route.methods or ()):
            return f"{min(route.methods or ('GET',))} {path}"
    return None


def near(request: Request) -> str | None:
    """A path that is there and is nearly the one that was asked: each of its parts is, or it ends as that one does."""
    asked = request.scope["path"].rstrip("/").split("/")
    alike: dict[str, float] = {}
    ending: set[str] = set()
    for route in _routes(request.app.routes):
        parts = route.path.split("/")
        if len(parts) == len(asked) and (found := _alike(asked, parts)) is not None:
            alike[route.path] = found
        if len(asked) > 1 and "{" not in route.path and parts[-1] == asked[-1].lower() and parts[1] == asked[1]:
            ending.add(route.path)
    if alike:
        return max(alike, key=alike.__getitem__)
    return ending.pop() if len(ending) == 1 else None


def _routes(routes: Sequence[BaseRoute]) -> Iterator[Route]:
    yield from (route for route in routes if isinstance(route, Route))


def _alike(asked: Sequence[str], parts: Sequence[str]) -> float | None:
    """How alike two paths are, a parameter being like whatever stands there; None where one part is another word."""
    least = 1.0
    for said, part in zip(asked, parts, strict=True):
        if part.startswith("{"):
            continue
        told = SequenceMatcher(a=said.lower(), b=part)
        # A part of another length is another word, which is known at once, however long it is.
        if told.real_quick_ratio() < _ALIKE or (share := told.ratio()) < _ALIKE:
            return None
        least = min(least, share)
    return least

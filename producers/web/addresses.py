"""Which addresses are pages for people. Imported by the guard of every request, so it imports nothing."""

from __future__ import annotations

HOME = "/ui"
NAMED_BESIDE = "-"
"""Stands in a path for an id that is given beside it, as the parameter `id`: one of dots alone."""
DOTS = (".", "..")
SOURCES = "/org"
"""Addresses of the form /org/ORG/ws/PROJECT/memory name a project's knowledge."""

_LONGEST = 8_000
"""Characters of an address: an id of a trace may have 512, each twelve when it is encoded."""


def is_page(path: str) -> bool:
    """Whether a path belongs to the pages: they have sessions of their own, in place of tokens."""
    return path == HOME or path.startswith((HOME + "/", SOURCES + "/"))


def wants_page(accept: str) -> bool:
    """Whether an `Accept` header is that of somebody who reads pages, and of no program."""
    return "text/html" in accept


def local(address: str | None) -> str:
    """An address of these pages as a link may lead on to it; HOME for anything else, such as another site."""
    if not address or len(address) > _LONGEST or not address.isprintable() or "\\" in address:
        return HOME
    path = address.partition("?")[0].partition("#")[0]
    return address if is_page(path) and "//" not in path and ".." not in path else HOME

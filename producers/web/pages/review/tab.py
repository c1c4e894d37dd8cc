"""One tab of the review: what it counts, what it shows, and the decisions that are made on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.rendering import back_to
from producers.web.site import Page
from producers.web.visit import Visit

REVIEW = f"{HOME}/review"
MOST_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab by its name in addresses, with its title in English. What `shown` gives has the `total` of the list."""

    name: str
    title: str
    shown: Callable[[Visit], Awaitable[Mapping[str, Any]]]
    decisions: tuple[Page, ...]
    for_operators: bool = False


def offset(visit: Visit, name: str = "offset") -> int:
    """Where the page of a list begins."""
    return visit.number(name, 0, most=MOST_OFFSET)


def reason(visit: Visit) -> str | None:
    """The reason that a form states, if it does."""
    return visit.said("reason") or None


def decided(visit: Visit, tab: str) -> Response:
    """After a decision: where its form stood."""
    return back_to(visit, visit.said("back") or f"{REVIEW}?tab={tab}")

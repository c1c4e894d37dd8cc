"""Lineage of an item: what it came from and what it led to, as a figure and as lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from kledger.answers.lineage import Edge, LineageOf
from kledger.client.clients import AsyncLedgerClient
from producers.web.figures.lineage import Box, Texts, lineage_figure
from producers.web.references import RELATIONS, Named, other_end
from producers.web.words import Words

MOST_LISTED = 500
"""Links in one list."""


@dataclass(slots=True)
class Link:
    """One thing at the other end of links: by which relation, how often, and when last."""

    relation: str
    end: Named
    count: int
    position: int
    time: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class LineageShown:
    """The figure, and all of it as two lists, which are bounded; `left_out` counts what is in neither."""

    figure: Markup
    came_from: list[Link]
    led_to: list[Link]
    left_out: int


async def lineage_of(ledger: AsyncLedgerClient, item_id: str, task: str, page: str, words: Words) -> LineageShown:
    """The lineage of an item; `page` is the address at which it is listed."""
    answer = await ledger.lineage(item_id)
    came_from, led_to = (_links(answer, item_id, direction) for direction in ("from", "to"))
    texts = Texts(words("What it came from, and what it led to"), words("{n} more"))
    figure = lineage_figure(
        [_box(link, words) for link in came_from],
        Box(words("this item"), task, None, here=True),
        [_box(link, words) for link in led_to],
        texts,
        f"{page}#all",
    )
    left_out = max(0, len(came_from) - MOST_LISTED) + max(0, len(led_to) - MOST_LISTED)
    return LineageShown(figure, came_from[:MOST_LISTED], led_to[:MOST_LISTED], left_out)


def _links(answer: LineageOf, item_id: str, direction: str) -> list[Link]:
    """Links by what they lead to, what is no recall first, then the latest."""
    found: dict[tuple[str, str, str], Link] = {}
    for edge in _others(answer["edges"], item_id, direction):
        end = other_end(edge)
        key = (edge["relation"], end.kind, end.id)
        if (link := found.get(key)) is None:
            found[key] = Link(edge["relation"], end, 1, edge["position"], edge["time"])
        else:
            link.count, link.position, link.time = link.count + 1, edge["position"], edge["time"]
    return sorted(found.values(), key=lambda link: (link.relation == "served", -link.position))


def _others(edges: Iterable[Edge], item_id: str, direction: str) -> Iterable[Edge]:
    return (edge for edge in edges if edge["direction"] == direction and edge["ref"] != item_id)


def _box(link: Link, words: Words) -> Box:
    what = words(RELATIONS.get(link.relation, link.relation))
    kind = words(link.end.kind)
    name = link.end.id if kind == what else f"{kind} {link.end.id}"
    return Box(what if link.count == 1 else f"{what} ({link.count})", name, link.end.page)

"""Lineage of an item: what it came from and what it led to, as a figure and as lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from kledger.answers.lineage import Edge, LineageEvent, LineageOf
from kledger.client.clients import AsyncLedgerClient
from producers.web.figures.lineage import Box, Texts, lineage_figure
from producers.web.references import RELATIONS, Named, other_end
from producers.web.rendering import page_of
from producers.web.words import Words

SHOWN = "shown"
_ASKED = ("recall",)
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
    title: str | None = None
    """What it says of itself: an item's task, the question of a recall."""

    def named(self, words: Words) -> str:
        """How it is called after its relation, which may say already what it is."""
        if self.title:
            return self.title
        what, kind = words(RELATIONS.get(self.relation, self.relation)), words(self.end.kind)
        return self.end.id if kind in what or self.end.id.startswith(self.end.kind) else f"{kind} {self.end.id}"


@dataclass(frozen=True, slots=True)
class LineageShown:
    """The figure, and all of it as two lists, which are bounded; `left_out` counts what is in neither, and with `more`
    there may be what the answer had no room for.

    `looks` are the looks at pages that showed the item: they are counted, and not listed.
    """

    figure: Markup
    came_from: list[Link]
    led_to: list[Link]
    left_out: int
    looks: int
    more: bool


async def lineage_of(ledger: AsyncLedgerClient, item_id: str, task: str, page: str, words: Words) -> LineageShown:
    """The lineage of an item; `page` is the address at which it is listed."""
    answer = await ledger.lineage(item_id)
    came_from, led_to = (_links(answer, item_id, direction) for direction in ("from", "to"))
    looks = sum(link.count for link in led_to if link.relation == SHOWN)
    led_to = [link for link in led_to if link.relation != SHOWN]
    texts = Texts(words("What it came from, and what it led to"), words("{n} more"))
    figure = lineage_figure(
        [_box(link, words) for link in came_from],
        Box(words("this item"), task, None, here=True),
        [_box(link, words) for link in led_to],
        texts,
        f"{page}#all",
    )
    left_out = max(0, len(came_from) - MOST_LISTED) + max(0, len(led_to) - MOST_LISTED)
    return LineageShown(figure, came_from[:MOST_LISTED], led_to[:MOST_LISTED], left_out, looks, "more" in answer)


def _links(answer: LineageOf, item_id: str, direction: str) -> list[Link]:
    """Links by what they lead to, what is no recall first, then the latest."""
    found: dict[tuple[str, str, str], Link] = {}
    titles = {event["event_id"]: _title(event) for event in answer["events"]}
    tasks = {event["entity_id"]: event["task"] for event in answer["events"] if "task" in event}
    for edge in _others(answer["edges"], item_id, direction):
        end = other_end(edge)
        key = (edge["relation"], end.kind, end.id)
        if (link := found.get(key)) is None:
            title = (
                tasks.get(end.id)
                if end.kind == "item"
                else titles.get(edge["event_id"])
                if end.kind in _ASKED
                else None
            )
            shown = end if end.page else end._replace(page=page_of("events", edge["event_id"]))
            found[key] = Link(edge["relation"], shown, 1, edge["position"], edge["time"], title)
        else:
            link.count, link.position, link.time = link.count + 1, edge["position"], edge["time"]
    return sorted(found.values(), key=lambda link: (link.relation == "served", -link.position))


def _others(edges: Iterable[Edge], item_id: str, direction: str) -> Iterable[Edge]:
    return (edge for edge in edges if edge["direction"] == direction and edge["ref"] != item_id)


def _box(link: Link, words: Words) -> Box:
    what = words(RELATIONS.get(link.relation, link.relation))
    return Box(what if link.count == 1 else f"{what} ({link.count})", link.named(words), link.end.page)


def _title(event: LineageEvent) -> str | None:
    return event.get("query")

"""References in a lineage as pages know them: what each names, and the page that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kledger.answers.lineage import Edge
from producers.web.addresses import HOME
from producers.web.rendering import item_page, page_of

PREFIXES = ("trace", "message", "event", "correlation", "resource")
_PAGES = {"trace": "traces", "message": "messages", "event": "events", "recall": "recalls"}
_OF_ITEMS = frozenset(
    {
        "absorbed",
        "about",
        "chunk",
        "contradicts",
        "injected",
        "merged_into",
        "says_again",
        "served",
        "shown",
        "superseded_by",
        "supersedes",
    }
)
"""Relations whose reference is an item; of the others that have no prefix it is a process."""


class Named(NamedTuple):
    """What a reference names; `page` is None where no page shows it."""

    kind: str
    id: str
    page: str | None


def named(kind: str, its_id: str) -> Named:
    """Something with a kind and an id: an item (`knowledge`), a recall, a trace, …"""
    if kind == "knowledge":
        return Named("item", its_id, item_page(its_id))
    if kind == "session":  # the id of its owner, a slash, and its own
        owner, _, session_id = its_id.partition("/")
        return Named(kind, session_id, page_of("sessions", session_id, owner=owner))
    if kind == "goal":
        owner, _, goal_id = its_id.partition("/")
        return Named(kind, goal_id, page_of("goals", goal_id, owner=owner))
    if kind == "conflict":
        return Named(kind, its_id, f"{HOME}/review?tab=conflicts")
    return Named(kind, its_id, page_of(_PAGES[kind], its_id) if kind in _PAGES else None)


def other_end(edge: Edge) -> Named:
    """What a link leads to, seen from what was asked for."""
    kind, colon, its_id = edge["ref"].partition(":")
    if edge["direction"] == "to" and edge["ref"] == edge["entity_id"]:
        return named(edge["entity"], edge["entity_id"])
    if edge["relation"] in _OF_ITEMS:
        return named("knowledge", edge["ref"])
    if colon and kind in PREFIXES:
        return named(kind, its_id)
    return named(edge["relation"], edge["ref"])


EVENTS: Mapping[str, str] = {
    "conflict.recorded": "a contradiction was found",
    "conflict.resolved": "a contradiction was decided",
    "document.ingested": "a document was taken in",
    "document.removed": "a document was removed",
    "evolution.failed": "a rewrite failed",
    "evolution.proposed": "a rewrite was proposed",
    "evolution.rejected": "a rewrite was declined",
    "evolution.requested": "a rewrite was asked for",
    "evolution.started": "a model was asked to rewrite",
    "extraction.completed": "knowledge was found in messages",
    "extraction.failed": "looking for knowledge failed",
    "extraction.requested": "knowledge was looked for in messages",
    "extraction.started": "a model was asked to find knowledge",
    "goal.focused": "a goal was focused",
    "knowledge.absorbed": "took in what others said",
    "knowledge.approved": "was approved",
    "knowledge.confirmed": "was confirmed",
    "knowledge.evolved": "was rewritten by a model",
    "knowledge.expired": "expired",
    "knowledge.merged": "was merged into another one",
    "knowledge.promoted": "was promoted",
    "knowledge.rated": "was judged",
    "knowledge.rejected": "was declined",
    "knowledge.restored": "was restored",
    "knowledge.retired": "was retired",
    "knowledge.reverted": "was reverted",
    "knowledge.revised": "was revised",
    "knowledge.saved": "was saved",
    "knowledge.scored": "was given a score",
    "knowledge.shared": "was shared",
    "knowledge.superseded": "was superseded",
    "knowledge.unmerged": "was taken apart again",
    "recall.served": "a recall was served",
    "resource.restored": "a resource was restored",
    "resource.retired": "a resource was retired",
    "resource.saved": "a resource was saved",
    "session.closed": "a session was closed",
    "session.opened": "a session was opened",
    "session.removed": "a session was removed",
    "session.summarised": "a part of a session was summed up",
    "slim.applied": "duplicates were merged",
    "slim.proposed": "a merge was proposed",
    "slim.requested": "duplicates were looked for",
    "slim.reverted": "a merge was taken back",
    "statement.dropped": "a held statement was dropped",
    "statement.held": "a statement was held",
    "statement.released": "a held statement was released",
}
"""Types of events in words; of an item, what it did."""
RELATIONS: Mapping[str, str] = {
    "about": "asked to be rewritten",
    "absorbed": "took in",
    "caused": "caused by it",
    "caused_by": "cause",
    "chunk": "part of a document",
    "contradicts": "contradicts",
    "correlation": "belongs together",
    "evolution": "rewrite",
    "injected": "injected into a goal",
    "merged_into": "merged into",
    "message": "message",
    "resource": "resource",
    "says_again": "said again",
    "served": "served by a recall",
    "shown": "looked at on a page",
    "slim": "merge",
    "superseded_by": "superseded by",
    "supersedes": "later version of",
    "trace": "trace",
    "undoes": "takes back",
}
"""Relations of links in words."""

"""References in a lineage as pages know them: what each names, and the page that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kledger.answers.lineage import Edge
from producers.web.addresses import HOME
from producers.web.rendering import item_page, page_of
from projections.views.lineage.roles import is_item

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
    if edge["direction"] == "to" and edge["ref"] == edge["entity_id"]:
        return named(edge["entity"], edge["entity_id"])
    if edge["relation"] in _OF_ITEMS:
        return named("knowledge", edge["ref"])
    kind, _, its_id = edge["ref"].partition(":")
    return named(edge["relation"], edge["ref"]) if is_item(edge["ref"]) else named(kind, its_id)


EVENTS: Mapping[str, str] = {
    "abstract.completed": "a document was summed up",
    "abstract.failed": "a document could not be summed up",
    "abstract.requested": "a document is to be summed up",
    "abstract.started": "a model was asked to sum up a document",
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
    "model.used": "a model was used",
    "profile.created": "what is remembered of somebody was begun",
    "profile.disabled": "what is remembered of somebody is not used any more",
    "profile.patched": "what is remembered of somebody was changed",
    "profile.replaced": "what is remembered of somebody was stated anew",
    "project.member_assigned": "a member of a project was given roles",
    "recall.served": "a recall was served",
    "resource.restored": "a resource was restored",
    "resource.retired": "a resource was retired",
    "resource.saved": "a resource was saved",
    "resource.secret_destroyed": "the secret of a resource was destroyed",
    "scope_type.registered": "a type of scopes was registered",
    "session.closed": "a session was closed",
    "session.opened": "a session was opened",
    "session.removed": "a session was removed",
    "session.summarised": "a part of a session was summed up",
    "slim.applied": "duplicates were merged",
    "slim.approved": "a merge was approved",
    "slim.failed": "merging failed",
    "slim.proposed": "a merge was proposed",
    "slim.rejected": "a merge was declined",
    "slim.reported": "duplicates were found",
    "slim.requested": "duplicates were looked for",
    "slim.reverted": "a merge was taken back",
    "slim.started": "a model was asked to merge",
    "slim.withdrawn": "a merge is to be taken back",
    "statement.dropped": "a held statement was dropped",
    "statement.held": "a statement was held",
    "statement.released": "a held statement was released",
    "subject.forgotten": "a person was forgotten",
    "summary.completed": "a session was summed up",
    "summary.failed": "a session could not be summed up",
    "summary.requested": "a part of a session is to be summed up",
    "summary.started": "a model was asked to sum up a session",
}
"""Types of events in words; of an item, what it did."""
RELATIONS: Mapping[str, str] = {
    "about": "asked to be rewritten",
    "absorbed": "took in",
    "bulk": "change of many items",
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

"""Roles of the events around a reference, found by walking the links up and down.

Roles of events around an item: `origin` is its save, `change` every later event of its own that is no verdict,
`verdict` a rating, confirmation or score, `cause` an event that caused one of its changes, `use` a recall or goal that
served it, `mention` an event of another entity that names it, `effect` an event that one of these caused. Around a
trace, message or event each event has the role that it has for the item that it is about.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kledger.contract.words import LineageRole
from ledger.event import Fact
from ledger.events.knowledge import FACTS, KnowledgeConfirmed, KnowledgeRated, KnowledgeSaved, KnowledgeScored
from projections.views.lineage.links import OF_REFERENCES, SERVING, SHOWN

MAX_STEPS = 64
"""The longest chain of causes that one query follows; a longer one needs another query, from its last event."""

OWN, ABOVE, BELOW = "own", "above", "below"
"""Place of an event: the reference's own, above it (its causes) or below it (what names it)."""

_VERDICTS: tuple[type[Fact], ...] = (KnowledgeRated, KnowledgeConfirmed, KnowledgeScored)
_OF_TYPE: dict[str, LineageRole] = {
    **{fact.name: "change" for fact in FACTS},
    **{fact.name: "verdict" for fact in _VERDICTS},
    **{fact.name: "use" for fact in SERVING},
    KnowledgeSaved.name: "origin",
}
_JUDGES = ", ".join(f"'{fact.name}'" for fact in _VERDICTS)


def is_item(ref: str) -> bool:
    """Whether a reference is an item's id."""
    return not ref.startswith(OF_REFERENCES)


def role_of(ref: str, event_type: str, places: Collection[str], relations: Collection[str]) -> LineageRole:
    """The role around `ref` of one event at `places`; `relations` are those by which it is below."""
    if OWN in places:
        return _OF_TYPE.get(event_type, "change")
    if ABOVE in places:
        return "cause"
    if not is_item(ref):
        return _OF_TYPE.get(event_type, "effect")
    if set(relations) <= {"caused", "caused_by"}:
        return "effect"
    return "use" if _OF_TYPE.get(event_type) == "use" and SHOWN not in relations else "mention"


def around(org: str, ref: str, may: str, may_values: Sequence[str]) -> tuple[str, list[str | int]]:
    """The WITH clause of the events around `ref` (`own`, `judging`, `up` and `down`), and its parameters.

    `judging` are an item's own events that are verdicts: what they name is no origin of the item. `may` is the
    predicate over `events AS e` of those that the caller may know of: no walk begins at, or passes, any other.

    A walk goes from id to id, not from event to event: events of many actors may have one id, and be caused by it.
    """
    own, values = _own(org, ref)
    verdicts = f"type IN ({_JUDGES})" if is_item(ref) else "FALSE"
    above: list[str | int] = [*values, *may_values, org, org, org, MAX_STEPS, *may_values, org, *may_values]
    below: list[str | int] = [org, ref, *may_values, org, MAX_STEPS, *may_values, org, *may_values]
    return (
        f"""
        WITH RECURSIVE own AS ({own} AND {may}),
        judging AS (SELECT position FROM own WHERE {verdicts}),
        causes AS (
            SELECT substr(l.ref, 7) AS event_id, 1 AS step FROM own ANTI JOIN judging USING (position)
                JOIN lineage AS l ON l.position = own.position
            WHERE l.org = ? AND l.relation = 'caused_by'
            UNION
            SELECT substr(l.ref, 7), c.step + 1 FROM causes AS c
                JOIN events AS e ON e.event_id = c.event_id JOIN lineage AS l ON l.position = e.position
            WHERE e.org = ? AND l.org = ? AND l.relation = 'caused_by' AND c.step < ? AND {may}
        ),
        up AS (
            SELECT position, 0 AS step FROM own ANTI JOIN judging USING (position)
            UNION
            SELECT e.position, c.step FROM {_farthest("causes")} AS c JOIN events AS e ON e.event_id = c.event_id
            WHERE e.org = ? AND {may}
        ),
        named AS (
            SELECT l.position, l.event_id, l.relation
            FROM lineage AS l JOIN events AS e ON e.position = l.position
            WHERE l.org = ? AND (l.ref = ? OR l.ref IN (SELECT 'event:' || event_id FROM own)) AND {may}
        ),
        causing AS (
            SELECT event_id, 1 AS step FROM named
            UNION
            SELECT l.event_id, c.step + 1
            FROM lineage AS l JOIN causing AS c ON l.ref = 'event:' || c.event_id
                JOIN events AS e ON e.position = l.position
            WHERE l.org = ? AND l.relation = 'caused_by' AND c.step + 1 < ? AND {may}
        ),
        down AS (
            SELECT position, relation, 1 AS step FROM named
            UNION
            SELECT l.position, 'caused', c.step + 1
            FROM lineage AS l JOIN {_farthest("causing")} AS c ON l.ref = 'event:' || c.event_id
                JOIN events AS e ON e.position = l.position
            WHERE l.org = ? AND l.relation = 'caused_by' AND {may}
        )""",
        above + below,
    )


def _farthest(walked: str) -> str:
    """Each event id of a walk once, at its last step: in a circle of causes it stands there at many."""
    return f"(SELECT event_id, max(step) AS step FROM {walked} GROUP BY event_id)"


def _own(org: str, ref: str) -> tuple[str, list[str]]:
    """The events that `ref` itself refers to: those of an item, one event, or those with a message id."""
    kind, _, name = ref.partition(":")
    select = "SELECT e.position, e.event_id, e.type FROM events AS e"
    if kind == "event":
        return f"{select} WHERE e.org = ? AND e.event_id = ?", [org, name]
    if kind == "message":  # events with this message id also name its trace
        return f"{select} JOIN lineage AS l ON l.position = e.position WHERE l.org = ? AND l.ref = ?", [org, ref]
    if not is_item(ref):
        return f"{select} WHERE FALSE", []
    return f"{select} WHERE e.org = ? AND e.entity = 'knowledge' AND e.entity_id = ?", [org, ref]

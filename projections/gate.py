"""Which events of a batch count? The only order-sensitive step: one plain loop, in stream order.

It checks that the subject is legal and names what the event says, that the actor is the one in the subject,
that the event's id was not seen before, and asks the entity's own rules about the rest (who owns what, which
version is current). It marks each event accepted or refused with a reason, and never raises for bad data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from ledger.errors import IllegalSubject
from ledger.subjects import decode_token, parse_subject
from projections.knowledge.rules import KnowledgeRules
from projections.profiles.rules import ProfileRules
from projections.ruling import ACCEPTED, Candidate, Ruling
from projections.workbench import Facts, Workbench


class Rules(Protocol):
    """The rules of one kind of entity, with the state that the batch's entities are in."""

    def decide(self, org: str, entity_id: str, event: Candidate) -> Ruling:
        """Judge one event and, when it is accepted, move the entity's state on."""
        ...


RULES: dict[str, Callable[[Workbench], Rules]] = {
    "knowledge": KnowledgeRules,
    "profile": ProfileRules,
}

_VERDICTS = pa.schema(
    [
        ("position", pa.int64()),
        ("org", pa.string()),
        ("entity", pa.string()),
        ("entity_id", pa.string()),
        ("item_version", pa.int32()),
        ("closes", pa.int64()),
    ]
)


def gate(bench: Workbench, facts: Facts) -> list[tuple[int, str, str]]:
    """Judge every row of `envelopes`, in position order; fills `verdicts` and `accepted` with what counts.

    Returns (position, code, reason) of each event that does not.
    """
    occurring = {fact.entity() for fact in facts}
    rules = {entity: load(bench) for entity, load in RULES.items() if entity in occurring}
    seen_now: set[str] = set()
    counted: list[tuple[int, str, str, str, int | None, int | None]] = []
    refused: list[tuple[int, str, str]] = []
    orgs: dict[str, str] = {}
    for event in map(Candidate._make, bench.rows(_CANDIDATES)):
        entity, _, entity_id = event.about.partition("/")
        token = event.subject.split(".", 2)[1]
        org = orgs.get(token)
        if org is None:
            org = orgs.setdefault(token, _org(token))
        if not event.plain and (fault := _subject_fault(event, entity, entity_id)):
            ruling = Ruling(IllegalSubject.code, fault)
        elif event.seen or event.event_id in seen_now:
            ruling = Ruling("duplicate_event", f"the event id {event.event_id} was accepted before")
        elif entity in rules:
            ruling = rules[entity].decide(org, entity_id, event)
        else:
            ruling = ACCEPTED
        if ruling.code is None:
            seen_now.add(event.event_id)
            counted.append((event.position, org, entity, entity_id, ruling.version, ruling.closes))
        else:
            refused.append((event.position, ruling.code, ruling.reason or ""))
    if counted:
        verdicts = bench.load("verdicts", zip(*counted, strict=True), _VERDICTS)
        bench.fill("accepted", _ACCEPTED.format(verdicts=verdicts))
    return refused


_ACCEPTED = """
SELECT n.position, n.stream_time, n.type, n.version, n.event_id, n.time, n.source, n.actor, n.trace_id,
    n.message_id, n.causation_id, n.correlation_id, n.traceparent, n.owner,
    v.org, v.entity, v.entity_id, v.item_version, v.closes
FROM envelopes n JOIN {verdicts} v ON v.position = n.position
"""

# Ids are looked up by a 64-bit key, which scans fast; a key that matches is then compared as a whole.
_CANDIDATES = """
SELECT position, subject, type, event_id, actor, about, owner, stated_id, expected_version, plain,
    coalesce(event_id IN (
        SELECT event_id FROM events WHERE position IN (
            SELECT k.position FROM event_keys k
            JOIN (SELECT md5_number_lower(event_id) AS key FROM envelopes) USING (key))), false) AS seen
FROM envelopes ORDER BY position
"""


def _org(token: str) -> str:
    try:
        return decode_token(token)
    except IllegalSubject:
        return token


def _subject_fault(event: Candidate, entity: str, entity_id: str) -> str | None:
    """Why the subject does not name this event, or None when it does."""
    try:
        named = parse_subject(event.subject)
    except IllegalSubject as error:
        return error.message
    if (named.entity, named.entity_id) != (entity, entity_id):
        return f"the subject is about {named.entity}/{named.entity_id}, the event about {event.about}"
    if f"{named.entity}.{named.event}" != event.type:
        return f"the subject says {named.entity}.{named.event}, the event says {event.type}"
    if named.actor != event.actor:
        return f"the subject's actor is {named.actor}, the event names {event.actor}"
    return None

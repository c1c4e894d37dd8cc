"""Which events of a batch count? The only order-sensitive step: one plain loop, in stream order.

It checks that the subject is legal and names what the event says, that the actor is the one in the subject,
that the event's id was not seen before, and asks the entity's own rules about the rest (who owns what, which
version is current). It marks each event accepted or refused with a reason, and never raises for bad data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import duckdb
import pyarrow as pa

from ledger.errors import IllegalSubject
from ledger.subjects import decode_token, parse_subject
from projections.knowledge.rules import KnowledgeRules
from projections.profiles.rules import ProfileRules
from projections.ruling import ACCEPTED, Candidate, Ruling


class Rules(Protocol):
    """The rules of one kind of entity, with the state that the batch's entities are in."""

    def decide(self, org: str, entity_id: str, event: Candidate) -> Ruling:
        """Judge one event and, when it is accepted, move the entity's state on."""
        ...


RULES: dict[str, Callable[[duckdb.DuckDBPyConnection], Rules]] = {
    "knowledge": KnowledgeRules,
    "profile": ProfileRules,
}

VERDICTS = pa.schema(
    [
        ("position", pa.int64()),
        ("org", pa.string()),
        ("entity", pa.string()),
        ("entity_id", pa.string()),
        ("code", pa.string()),
        ("reason", pa.string()),
        ("item_version", pa.int32()),
        ("closes", pa.int64()),
    ]
)


def gate(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Judge every row of `envelopes`, in position order; returns one VERDICTS row an event."""
    rules = {entity: load(con) for entity, load in RULES.items() if _occurs(con, entity)}
    seen_now: set[str] = set()
    rows: list[tuple[int, str, str, str, str | None, str | None, int | None, int | None]] = []
    orgs: dict[str, str] = {}
    for event in map(Candidate._make, con.execute(_CANDIDATES).fetchall()):
        entity, _, entity_id = event.about.partition("/")
        token = event.subject.split(".", 2)[1]
        org = orgs.get(token)
        if org is None:
            org = orgs.setdefault(token, token if event.plain else _org(token))
        if not event.plain and (reason := _subject_fault(event, entity, entity_id)):
            ruling = Ruling(IllegalSubject.code, reason)
        elif event.seen or event.event_id in seen_now:
            ruling = Ruling("duplicate_event", f"the event id {event.event_id} was accepted before")
        elif entity in rules:
            ruling = rules[entity].decide(org, entity_id, event)
        else:
            ruling = ACCEPTED
        if ruling.code is None:
            seen_now.add(event.event_id)
        rows.append((event.position, org, entity, entity_id, *ruling))
    columns = list(zip(*rows, strict=True)) or [()] * len(VERDICTS)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, VERDICTS, strict=True)],
        schema=VERDICTS,
    )


# Ids are looked up by a 64-bit key, which scans fast; a key that matches is then compared as a whole.
_CANDIDATES = """
SELECT position, subject, type, event_id, actor, about, owner, stated_id, expected_version, plain,
    coalesce(event_id IN (
        SELECT event_id FROM events WHERE position IN (
            SELECT k.position FROM event_keys k
            JOIN (SELECT md5_number_lower(event_id) AS key FROM envelopes) USING (key))), false) AS seen
FROM envelopes ORDER BY position
"""


def _occurs(con: duckdb.DuckDBPyConnection, entity: str) -> bool:
    found = con.execute("SELECT 1 FROM envelopes WHERE starts_with(type, ?) LIMIT 1", [f"{entity}."])
    return found.fetchone() is not None


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

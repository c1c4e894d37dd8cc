"""Which events of a batch count? The only order-sensitive step: one plain loop, in stream order.

It checks that the event's id was not seen before, and asks the entity's own rules about the rest (who owns what,
which version is current). It marks each event accepted or refused with a reason, and never raises for bad data.
(That the subject names the event and its actor was checked when the event was decoded.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from projections.knowledge.rules import KnowledgeRules
from projections.profiles.rules import ProfileRules
from projections.ruling import ACCEPTED, Candidate, Ruling
from projections.workbench import Facts, Workbench


class Rules(Protocol):
    """The rules of one kind of entity, with the state that the batch's entities are in."""

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event and, when it is accepted, move the entity's state on."""
        ...

    def write(self, bench: Workbench) -> None:
        """Write down the state that the batch's entities came to."""
        ...


RULES: dict[str, Callable[[Workbench], Rules]] = {
    "knowledge": KnowledgeRules,
    "profile": ProfileRules,
}

_VERDICTS = pa.schema([("position", pa.int64()), ("item_version", pa.int32()), ("closes", pa.int64())])


def gate(bench: Workbench, facts: Facts) -> list[tuple[int, str, str]]:
    """Judge every row of `envelopes`, in position order; fills `accepted` with what counts.

    Returns (position, code, reason) of each event that does not.
    """
    occurring = {fact.name: fact.entity() for fact in facts}
    rules = {entity: load(bench) for entity, load in RULES.items() if entity in occurring.values()}
    rules_of = {name: rules[entity] for name, entity in occurring.items() if entity in rules}
    seen = {event_id for (event_id,) in bench.rows(_SEEN_BEFORE)}
    counted: list[tuple[int, int | None, int | None]] = []
    refused: list[tuple[int, str, str]] = []
    for event in map(Candidate._make, bench.rows(_CANDIDATES)):
        if event.event_id in seen:
            refused.append((event.position, "duplicate_event", f"the event {event.event_id} was accepted before"))
            continue
        decider = rules_of.get(event.type)
        ruling = ACCEPTED if decider is None else decider.decide(event)
        if ruling.code is not None:
            refused.append((event.position, ruling.code, ruling.reason or ""))
            continue
        seen.add(event.event_id)
        counted.append((event.position, ruling.version, ruling.closes))
    if counted:
        verdicts = bench.load("verdicts", zip(*counted, strict=True), _VERDICTS)
        bench.fill("accepted", _ACCEPTED.format(verdicts=verdicts))
        for decider in rules.values():
            decider.write(bench)
    return refused


_CANDIDATES = """
SELECT position, stored_us, type, event_id, actor, org, entity_id, owner, expected_version, helpful, harmful
FROM envelopes ORDER BY position
"""

# Ids are looked up by a 64-bit key, which scans fast; a key that matches is then compared as a whole.
_SEEN_BEFORE = """
SELECT event_id FROM events WHERE position IN (
    SELECT k.position FROM event_keys k
    JOIN (SELECT md5_number_lower(event_id) AS key FROM envelopes) USING (key))
"""

_ACCEPTED = """
SELECT n.position, n.stream_time, n.type, n.version, n.event_id, n.time, n.source, n.actor, n.org, n.entity,
    n.entity_id, n.trace_id, n.message_id, n.causation_id, n.correlation_id, n.traceparent, n.owner,
    v.item_version, v.closes
FROM envelopes n JOIN {verdicts} v ON v.position = n.position
"""

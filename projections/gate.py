"""Which events of a batch count? The only order-sensitive step: one plain loop, in stream order.

It checks that the event's id was not seen before, and asks the entity's own rules about the rest (who owns what,
which version is current). It marks each event accepted or refused with a reason, and never raises for bad data.
(That the subject names the event and its actor was checked when the event was decoded.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa

from projections.knowledge.rules import KnowledgeRules
from projections.profiles.rules import ProfileRules
from projections.ruling import ACCEPTED, Candidate, Ruling
from projections.sql_text import among
from projections.workbench import Facts, Workbench


class Rules(Protocol):
    """The rules of one kind of entity, with the state that the batch's entities are in."""

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event and, when it is accepted, move the entity's state on."""
        ...

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Write down the state that the batch's entities came to."""
        ...


# Each is loaded with the ids that the batch is about: what stands in the parentheses of IN (…).
RULES: dict[str, Callable[[duckdb.DuckDBPyConnection, str], Rules]] = {
    "knowledge": KnowledgeRules,
    "profile": ProfileRules,
}

_VERDICTS = pa.schema([("position", pa.int64()), ("item_version", pa.int32()), ("closes", pa.int64())])


@dataclass(frozen=True, slots=True)
class Judgement:
    """(position, version, closes) of each event that counts; (position, code, reason) of each that does not."""

    counted: list[tuple[int, int | None, int | None]]
    refused: list[tuple[int, str, str]]


def judge(candidates: Iterable[Candidate], rules: dict[str, Rules], seen: set[str]) -> Judgement:
    """Judge events in stream order. `rules` by entity; `seen` are ids accepted before, and grows."""
    judgement = Judgement([], [])
    for event in candidates:
        if event.event_id in seen:
            reason = f"the event {event.event_id} was accepted before"
            judgement.refused.append((event.position, "duplicate_event", reason))
            continue
        decider = rules.get(event.type.partition(".")[0])
        ruling = ACCEPTED if decider is None else decider.decide(event)
        if ruling.code is not None:
            judgement.refused.append((event.position, ruling.code, ruling.reason or ""))
            continue
        seen.add(event.event_id)
        judgement.counted.append((event.position, ruling.version, ruling.closes))
    return judgement


def gate(bench: Workbench, facts: Facts) -> list[tuple[int, str, str]]:
    """Judge every row of `envelopes`; fills `accepted` with what counts.

    Returns (position, code, reason) of each event that does not.
    """
    occurring = {fact.entity() for fact in facts}
    rules = {
        entity: load(bench.con, f"SELECT entity_id FROM envelopes WHERE entity = '{entity}'")
        for entity, load in RULES.items()
        if entity in occurring
    }
    judgement = judge(
        map(Candidate._make, bench.rows(_CANDIDATES)),
        rules,
        seen_before(bench.con, "SELECT md5_number_lower(event_id) FROM envelopes"),
    )
    if judgement.counted:
        verdicts = bench.load("verdicts", zip(*judgement.counted, strict=True), _VERDICTS)
        bench.fill("accepted", _ACCEPTED.format(verdicts=verdicts))
        for decider in rules.values():
            decider.write(bench.con)
    return judgement.refused


def seen_before(con: duckdb.DuckDBPyConnection, keys: str) -> set[str]:
    """The accepted event ids that have one of these keys: what stands in the parentheses of IN (…).

    Ids are looked up by a 64-bit key, which scans fast; the ids themselves are then compared as a whole.
    """
    positions = [at for (at,) in con.execute(f"SELECT position FROM event_keys WHERE key IN ({keys})").fetchall()]
    if not positions:
        return set()
    found = con.execute(f"SELECT event_id FROM events WHERE position IN ({among(positions)})").fetchall()
    return {event_id for (event_id,) in found}


_CANDIDATES = """
SELECT position, stored_us, type, event_id, actor, org, entity_id, owner, expected_version, helpful, harmful
FROM envelopes ORDER BY position
"""

_ACCEPTED = """
SELECT n.position, n.stream_time, n.type, n.version, n.event_id, n.time, n.source, n.actor, n.org, n.entity,
    n.entity_id, n.trace_id, n.message_id, n.causation_id, n.correlation_id, n.traceparent, n.owner,
    v.item_version, v.closes
FROM envelopes n JOIN {verdicts} v ON v.position = n.position
"""

"""Which events of a batch count? The only order-sensitive step: one plain loop, in stream order.

It checks that the event's id was not seen of its actor before, and asks the entity's own rules about the rest (who owns
what, which version is current). It marks each event accepted or refused with a reason, and never raises for bad data.
(That the subject names the event and its actor was checked when the event was decoded.) Most batches of a log need no
loop: see projections/views/knowledge/fast_path.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import duckdb
import numpy as np
import pyarrow as pa

from ledger.event import Fact
from ledger.events import FACTS
from ledger.wire.publication import Identity
from projections.engine.decode import Decoded
from projections.fold_kit.decisions import ACCEPTED, CANDIDATES, Candidate, Ruling, as_candidates
from projections.fold_kit.envelopes import narrow
from projections.fold_kit.sql_text import among
from projections.fold_kit.workbench import Workbench, table_of
from projections.views.goals.rules import GoalRules
from projections.views.knowledge import fast_path
from projections.views.knowledge.rules import KnowledgeRules
from projections.views.processes.rules import KINDS, ProcessRules
from projections.views.processes.usage_rules import ModelRules
from projections.views.profiles.rules import ProfileRules
from projections.views.resources.rules import ResourceRules
from projections.views.scope_types.rules import ScopeTypeRules


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
    "resource": ResourceRules,
    "scope_type": ScopeTypeRules,
    "goal": GoalRules,
    "model": ModelRules,
    **dict.fromkeys(KINDS, ProcessRules),
}

_VERDICT = {"item_version": pa.int32(), "closes": pa.int64()}


@dataclass(frozen=True, slots=True)
class Judgement:
    """(position, version, closes) of each event that counts; (position, code, reason) of each that does not."""

    counted: list[tuple[int, int | None, int | None]]
    refused: list[tuple[int, str, str]]


def judge(candidates: Iterable[Candidate], rules: dict[str, Rules], seen: set[Identity]) -> Judgement:
    """Judge events in stream order. `rules` by entity; `seen` are those accepted before, and grows."""
    judgement = Judgement([], [])
    counted, refused = judgement.counted.append, judgement.refused.append
    deciders = {fact.name: rules[fact.entity()].decide for fact in FACTS.values() if fact.entity() in rules}
    for event in candidates:
        own = event.org, event.actor, event.event_id
        if own in seen:
            refused((event.position, "duplicate_event", f"the event {event.event_id} was accepted before"))
            continue
        decide = deciders.get(event.type)
        code, reason, version, closes = ACCEPTED if decide is None else decide(event)
        if code is not None:
            refused((event.position, code, reason or ""))
            continue
        seen.add(own)
        counted((event.position, version, closes))
    return judgement


def gate(bench: Workbench, decoded: Decoded) -> list[tuple[int, str, str]]:
    """Judge every event that was decoded, and present what counts to the folds.

    Presents a relation for each fact (`table_of`): its parsed rows that count, with two columns more: item_version,
    and closes (the position of the version that the event ends); and `accepted`, the narrow columns of all of them.
    Returns (position, code, reason) of each event that does not count.
    """
    if not decoded.parsed:
        return []
    bench.present({"envelopes": decoded.envelopes, "derived_lineage": decoded.lineage})
    candidates = decoded.candidates
    if candidates is None:
        made = fast_path.versions(bench, decoded.parsed)
        if made is not None:
            makes = {fact: made if fact in fast_path.MAKE_VERSIONS else None for fact in decoded.parsed}
            _present(bench, {fact: _with_versions(rows, makes[fact]) for fact, rows in decoded.parsed.items()})
            fast_path.count(bench, decoded.parsed)
            return []
        candidates = as_candidates(bench.rows(CANDIDATES))
    occurring = {fact.entity() for fact in decoded.parsed}
    rules = {
        entity: load(bench.con, f"SELECT entity_id FROM envelopes WHERE entity = '{entity}'")
        for entity, load in RULES.items()
        if entity in occurring
    }
    judgement = judge(
        candidates,
        rules,
        seen_before(bench.con, "SELECT key FROM envelopes"),
    )
    if judgement.counted:
        _present(bench, _accepted(decoded.parsed, judgement.counted))
        for decider in rules.values():
            decider.write(bench.con)
    return judgement.refused


def _present(bench: Workbench, accepted: dict[type[Fact], pa.Table]) -> None:
    bench.present({table_of(fact): rows for fact, rows in accepted.items()})
    bench.present({"accepted": narrow(accepted.values(), *_VERDICT)})


def _with_versions(rows: pa.Table, made: pa.Table | None) -> pa.Table:
    """Rows of which all count, with the versions that they make; None where they make none."""
    if made is not None:
        made = made.take(pa.array(np.searchsorted(made["position"].to_numpy(), rows["position"].to_numpy())))
    for name, kind in _VERDICT.items():
        rows = rows.append_column(name, pa.nulls(len(rows), kind) if made is None else made[name])
    return rows


def _accepted(
    parsed: dict[type[Fact], pa.Table], counted: list[tuple[int, int | None, int | None]]
) -> dict[type[Fact], pa.Table]:
    """The rows that count, with their verdicts; where all do, nothing is copied."""
    at, versions, closes = zip(*counted, strict=True)
    judged = np.array(at, np.int64)  # in the order of the log
    verdicts = [pa.array(given, kind) for given, kind in zip((versions, closes), _VERDICT.values(), strict=True)]
    accepted = {}
    for fact, rows in parsed.items():
        positions = rows["position"].to_numpy()
        found = np.minimum(np.searchsorted(judged, positions), len(judged) - 1)
        counts = judged[found] == positions
        if not counts.all():
            rows, found = rows.filter(pa.array(counts)), found[counts]
        for name, column in zip(_VERDICT, verdicts, strict=True):
            rows = rows.append_column(name, column.take(pa.array(found)))
        accepted[fact] = rows
    return accepted


def seen_before(con: duckdb.DuckDBPyConnection, keys: str) -> set[Identity]:
    """The accepted events that have one of these keys: what stands in the parentheses of IN (…).

    Ids are looked up by a 64-bit key, which scans fast; the ids themselves are then compared as a whole, with tenant
    and actor: nobody takes an id from another by being the first to use it.
    """
    positions = [at for (at,) in con.execute(f"SELECT position FROM event_keys WHERE key IN ({keys})").fetchall()]
    if not positions:
        return set()
    return set(
        con.execute(f"SELECT org, actor, event_id FROM events WHERE position IN ({among(positions)})").fetchall()
    )

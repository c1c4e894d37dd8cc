"""Gate: accepts or refuses each event of a batch. The only order-sensitive step: a loop, in stream order.

It refuses duplicates (same actor, same event id) and leaves the rest to the rules of the event's entity (who owns what,
which version is current). A refusal has a code and a reason; bad data never raises. That the subject matches the event
and its actor was checked by the decoder. Most events need no loop: see projections/views/as_sets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from ledger.event import Fact
from ledger.events import FACTS
from ledger.wire.publication import Identity
from projections.engine.decode import Decoded
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import ACCEPTED, REST, Candidate, Rules, as_candidates
from projections.fold_kit.sql_text import among
from projections.fold_kit.workbench import Workbench, table_of
from projections.views import as_sets
from projections.views.as_sets import VERDICT
from projections.views.documents.rules import DocumentRules
from projections.views.events.keys import key_of
from projections.views.goals.rules import GoalRules
from projections.views.knowledge import fast_path
from projections.views.knowledge.memory_rules import short_memories_among
from projections.views.knowledge.rules import KnowledgeRules
from projections.views.processes.rules import KINDS, ProcessRules
from projections.views.processes.usage_rules import ModelRules
from projections.views.profiles.rules import ProfileRules
from projections.views.projects.members import Members
from projections.views.projects.rules import ProjectRules
from projections.views.recalls.tables import AS_EVENTS
from projections.views.resources.rules import ResourceRules
from projections.views.scope_types.rules import ScopeTypeRules
from projections.views.sessions.rules import SessionRules

# Each is loaded with the ids of the batch's entities, as the SQL inside the parentheses of IN (…). Those of knowledge,
# which judge recalls as well, and of projects, whose members they ask for, are loaded in `rules_for`.
RULES: dict[str, Callable[[duckdb.DuckDBPyConnection, str], Rules]] = {
    "profile": ProfileRules,
    "resource": ResourceRules,
    "document": DocumentRules,
    "scope_type": ScopeTypeRules,
    "goal": GoalRules,
    "session": SessionRules,
    "model": ModelRules,
    **dict.fromkeys(KINDS, ProcessRules),
}

LEAST = 1_000
"""From so many events on, a mixed batch is judged as sets: its statements cost as much as the loop over these."""
_OF_ALL = ("position", "stream_time", "org", "entity", "entity_id", "event_id", "key", "closes")
# Each column of a relation takes part in the planning of each query over it.
_JUDGED = (*Candidate._fields, "entity", "key")

Accepted = tuple[int, int | None, int | None, str | None]


class Seen(NamedTuple):
    """Identities of events that were accepted: tenant, actor and id, or the short key of an id that is not kept."""

    whole: set[Identity]
    reduced: set[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """(position, version, closes, status) of each event that counts; (position, code, reason) of each that does not."""

    counted: list[Accepted]
    refused: list[tuple[int, str, str]]


def rules_for(
    con: duckdb.DuckDBPyConnection, occurring: set[str], about: Callable[[str], str], served: str
) -> dict[str, Rules]:
    """The rules of the entities that occur in a batch, loaded with the ids that `about` selects for each, if any.

    Recalls are judged by the rules of knowledge: they renew and count for the short memories among the `served` items.
    """
    rules = {entity: load(con, about(entity)) for entity, load in RULES.items() if entity in occurring - {"knowledge"}}
    members = Members(con)
    if "project" in occurring:
        rules["project"] = ProjectRules(members)
    if occurring & {"knowledge", "recall"}:
        ids = [named] if "knowledge" in occurring and (named := about("knowledge")) else []
        if "recall" in occurring and (short := short_memories_among(con, served)):
            ids.append(among(short))
        rules |= dict.fromkeys(occurring & {"knowledge", "recall"}, KnowledgeRules(con, members, *ids))
    return rules


def write(con: duckdb.DuckDBPyConnection, rules: dict[str, Rules]) -> None:
    """Save the state of the batch's entities after its last event."""
    for decider in {id(decider): decider for decider in rules.values()}.values():
        decider.write(con)


def judge(candidates: Iterable[Candidate], rules: dict[str, Rules], before: Seen) -> Judgement:
    """Judge events in stream order. `rules` is by entity; `before` are the identities accepted so far, and grows."""
    seen, reduced = before
    judgement = Judgement([], [])
    counted, refused = judgement.counted.append, judgement.refused.append
    deciders = {fact.name: rules[fact.entity()].decide for fact in FACTS.values() if fact.entity() in rules}
    for event in candidates:
        identity = event.org, event.actor, event.event_id
        if identity in seen or (reduced and (event.org, event.actor, key_of(event.event_id)) in reduced):
            refused((event.position, "duplicate_event", f"the event {event.event_id} was accepted before"))
            continue
        decide = deciders.get(event.type)
        code, reason, version, closes, status = ACCEPTED if decide is None else decide(event)
        if code is not None:
            refused((event.position, code, reason or ""))
            continue
        seen.add(identity)
        counted((event.position, version, closes, status))
    return judgement


def gate(bench: Workbench, decoded: Decoded) -> list[tuple[int, str, str]]:
    """Judge every decoded event, and present the accepted ones to the folds.

    Presents a relation for each fact (`table_of`): its accepted rows with the columns of VERDICT more (`closes` is the
    position of the version that the event ends); `accepted`, the columns _OF_ALL of all of them; and their links, as
    `derived_lineage`.
    Returns (position, code, reason) of each event that is refused.
    """
    if decoded.envelopes is None or decoded.lineage is None:
        return []
    facts, envelopes = tuple(decoded.parsed), decoded.envelopes
    sets = as_sets.ratings_alone(bench, facts, envelopes)
    if sets is None:
        sets = as_sets.new_items_alone(bench, facts, envelopes, decoded.opened.extent.first)
    if sets is None:
        bench.present({"envelopes": envelopes.select(_JUDGED)})
        if decoded.candidates is None and len(envelopes) >= (LEAST if set(facts) - set(fast_path.PLAIN) else 0):
            sets = as_sets.judged(bench, facts, envelopes)
    judgement, rules = Judgement([], []), dict[str, Rules]()
    if sets is None or len(sets.rest):
        rest = (
            envelopes if sets is None else envelopes.filter(pc.is_in(envelopes["position"], sets.rest.combine_chunks()))
        )
        bench.present({"rest": rest.select(_JUDGED)})
        candidates = as_candidates(bench.rows(REST)) if decoded.candidates is None else decoded.candidates
        rules = rules_for(
            bench.con,
            set(pc.unique(rest["entity"]).to_pylist()),
            lambda entity: f"SELECT entity_id FROM rest WHERE entity = '{entity}'",
            "SELECT unnest(served) FROM rest",
        )
        judgement = judge(candidates, rules, seen_before(bench, "SELECT key FROM rest"))
    verdicts = _verdicts(judgement.counted)
    if sets is not None:
        verdicts = pa.concat_tables([sets.counted, verdicts]).sort_by("position")
    if len(verdicts):
        _present(bench, _accepted(decoded.parsed, verdicts), _links_of(decoded.lineage, judgement, verdicts))
        write(bench.con, rules)
        if sets is not None and sets.of_items:
            fast_path.count(bench, sets.of_items)
    return judgement.refused


def _present(bench: Workbench, accepted: dict[type[Fact], pa.Table], lineage: pa.Table) -> None:
    bench.present({table_of(fact): rows for fact, rows in accepted.items()})
    bench.present({"accepted": pa.concat_tables([rows.select(_OF_ALL) for rows in accepted.values()])})
    bench.present({"derived_lineage": lineage})


def _links_of(lineage: pa.Table, judgement: Judgement, verdicts: pa.Table) -> pa.Table:
    """The links in the events that count."""
    if not judgement.refused:
        return lineage
    return lineage.filter(pc.is_in(lineage["position"], verdicts["position"].combine_chunks()))


def _verdicts(counted: list[Accepted]) -> pa.Table:
    columns = zip(*counted, strict=True) if counted else ((),) * (1 + len(VERDICT))
    kinds = {"position": pa.int64(), **VERDICT}
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)]
    return pa.table(arrays, names=list(kinds))


def _accepted(parsed: dict[type[Fact], pa.Table], verdicts: pa.Table) -> dict[type[Fact], pa.Table]:
    """The accepted rows with the columns of VERDICT; where all of a fact are accepted, nothing is copied.

    `verdicts` are in the order of the log, as are the rows of each fact in all but rare batches.
    """
    counted = verdicts["position"].to_numpy()
    accepted = {}
    for fact, rows in parsed.items():
        positions = rows["position"].to_numpy()
        indices = np.minimum(np.searchsorted(counted, positions), len(counted) - 1)
        counts = counted[indices] == positions
        if not counts.all():
            rows, indices = rows.filter(pa.array(counts)), indices[counts]
        own = verdicts.take(pa.array(indices))
        for name in VERDICT:
            rows = rows.append_column(name, own[name])
        accepted[fact] = rows
    return accepted


def seen_before(bench: Workbench, keys: str) -> Seen:
    """Identities of the accepted events that have one of these keys; `keys` is the SQL inside IN (…).

    Ids are looked up by a 64-bit key, which scans fast; then tenant, actor and id are compared as a whole. An identity
    includes the actor, so nobody blocks another's id by using it first. Of a recall past its retention the key is all
    that is left of the id.
    """
    key_at = dict(bench.rows(f"SELECT position, key FROM event_keys WHERE key IN ({keys})"))
    if not key_at:
        return Seen(set(), set())
    identity = f"SELECT org, actor, event_id, position FROM {{}} WHERE position IN ({among(key_at)})"
    accepted = bench.rows_of_lane("log", identity.format("other_events"))
    accepted += bench.rows_of_lane("recalls", identity.format(f"({AS_EVENTS})"))
    return Seen(
        {(org, actor, event_id) for org, actor, event_id, _ in accepted if event_id is not None},
        {(org, actor, key_at[at]) for org, actor, event_id, at in accepted if event_id is None},
    )

"""Judgement of events as sets: which of a batch are sure to count, whatever else is in it.

Events of one entity depend on no other one, but for short memories, which recalls renew and count for, and for ids that
occur twice. So each kind of entity says what it can judge as a set, and only what is odd is left for the gate's loop:
the kinds without such a judgement, and all events of an item or a memory of which one is not sure to count.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from ledger.event import Fact
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved
from ledger.events.profile import FACTS as OF_PROFILES
from ledger.events.recall import RecallServed
from projections.fold_kit import late_compute as pc
from projections.fold_kit.workbench import Workbench
from projections.views.events.keys import key_of
from projections.views.knowledge import fast_path
from projections.views.profiles import fast_path as profiles

VERDICT = {"item_version": pa.int32(), "closes": pa.int64(), "item_status": pa.string()}
AS_SETS = frozenset({*fast_path.PLAIN, RecallServed, GoalFocused, *OF_PROFILES})
MOST_NEW = 2_000
"""Events of a batch whose ids are looked for one by one in what is kept in mind; more are asked for as a set."""
_VERDICTS = pa.schema([("position", pa.int64()), *VERDICT.items()])
_THERE_BEFORE = "SELECT key FROM event_keys SEMI JOIN envelopes USING (key)"
_REPEATED = f"SELECT key FROM envelopes GROUP BY key HAVING count(*) > 1 UNION {_THERE_BEFORE}"
_SHORT = """
SELECT id FROM knowledge_state WHERE lifetime IS NOT NULL AND id IN (
    SELECT unnest(served) FROM envelopes WHERE entity = 'recall')
UNION SELECT entity_id FROM envelopes WHERE entity = 'knowledge' AND lifetime IS NOT NULL
"""
_OF_SHORT = """
SELECT position, item FROM (SELECT position, unnest(served) AS item FROM envelopes WHERE entity = 'recall')
WHERE item IN (SELECT id FROM short)
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """What counts, with VERDICT and in the order of the log; the positions of the rest; the facts of items that count.

    The state of these items is to be updated once all is judged (projections/views/knowledge/fast_path.py:count).
    """

    counted: pa.Table
    rest: pa.ChunkedArray
    of_items: tuple[type[Fact], ...]


def sets_in(facts: Collection[type[Fact]]) -> bool:
    """Whether some of these facts can be judged as a set."""
    return not AS_SETS.isdisjoint(facts)


def ratings_alone(bench: Workbench, facts: Collection[type[Fact]], envelopes: pa.Table) -> Judged | None:
    """The judgement of ratings that all count, which takes one statement; None for any other batch."""
    if set(facts) != {KnowledgeRated} or pc.count_distinct(envelopes["key"]).as_py() < len(envelopes):
        return None
    if not fast_path.ratings_count(bench, envelopes):
        return None
    return Judged(_without_versions(envelopes["position"]), envelopes["position"][:0], (KnowledgeRated,))


def new_items_alone(bench: Workbench, facts: Collection[type[Fact]], envelopes: pa.Table, first: int) -> Judged | None:
    """The judgement of saves of items that the view does not have, of a batch that begins at the position `first`.

    It takes no statement, or one; None for any other batch, and where nobody keeps the ids of the view in mind.
    """
    known = bench.identities
    if known is None or known.upto < first - 1 or set(facts) != {KnowledgeSaved} or len(envelopes) > MOST_NEW:
        return None
    counting = fast_path.all_new(bench, envelopes, known, key_of)
    if counting is None:
        return None
    return Judged(counting.cast(_VERDICTS), envelopes["position"][:0], (KnowledgeSaved,))


def judged(bench: Workbench, facts: Collection[type[Fact]], envelopes: pa.Table) -> Judged:
    """Judge what can be judged as sets, of the relation `envelopes`."""
    each_once = pc.count_distinct(envelopes["key"]).as_py() == len(envelopes)
    bench.present({"repeated": bench.table(_THERE_BEFORE if each_once else _REPEATED)})
    repeated = pc.is_in(envelopes["key"], bench.presented("repeated")["key"].combine_chunks())
    sure = pa.chunked_array([pa.repeat(False, len(envelopes))])
    made: list[pa.Table] = []

    if GoalFocused in facts:
        theirs = pc.fill_null(pc.equal(envelopes["actor"], envelopes["owner"]), False)
        own = pc.and_(_of("goal", envelopes), theirs)
        sure = pc.or_(sure, pc.and_not(own, repeated))
    odd_items = fast_path.odd_items(bench).combine_chunks()
    if RecallServed in facts:
        bench.present({"short": bench.table(_SHORT)})
        odd = repeated
        if len(bench.presented("short")):
            of_short = bench.table(_OF_SHORT)
            odd = pc.or_(odd, pc.is_in(envelopes["position"], of_short["position"].combine_chunks()))
            odd_items = pa.concat_arrays([odd_items, of_short["item"].combine_chunks()])
        sure = pc.or_(sure, pc.and_not(_of("recall", envelopes), odd))
    if not set(OF_PROFILES).isdisjoint(facts):
        versions, odd = profiles.versions(bench)
        made.append(versions)
        known = pc.is_in(envelopes["entity_id"], odd.combine_chunks())
        sure = pc.or_(sure, pc.and_not(_of("profile", envelopes), known))
    of_items = tuple(fact for fact in fast_path.PLAIN if fact in facts)
    if of_items:
        plain = pc.and_not(_of("knowledge", envelopes), pc.is_in(envelopes["entity_id"], odd_items))
        counting, versions = fast_path.versions(bench, of_items, envelopes.filter(plain))
        made.append(versions)
        sure = pc.or_(sure, pc.is_in(envelopes["position"], counting["position"].combine_chunks()))

    versions = pa.concat_tables([each.cast(_VERDICTS) for each in made]) if made else _VERDICTS.empty_table()
    counted = envelopes["position"].filter(sure)
    none = counted.filter(pc.invert(pc.is_in(counted, versions["position"].combine_chunks())))
    verdicts = pa.concat_tables([versions, _without_versions(none)]).sort_by("position")
    return Judged(verdicts, envelopes["position"].filter(pc.invert(sure)), of_items)


def _of(entity: str, envelopes: pa.Table) -> pa.ChunkedArray:
    return pc.equal(envelopes["entity"], entity)


def _without_versions(positions: pa.ChunkedArray) -> pa.Table:
    columns = {name: pa.nulls(len(positions), kind) for name, kind in VERDICT.items()}
    return pa.table({"position": positions, **columns}, schema=_VERDICTS)

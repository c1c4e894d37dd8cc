"""How is a batch of nothing but ratings judged and counted? As a set: thousands come in one request (mission K3).

Where every item is there and no event comes twice, all of them count, in whatever order; where that is not so, each
is judged by itself like everything else (projections/gate.py).
"""

from __future__ import annotations

from collections.abc import Collection

from ledger.event import Fact
from ledger.events.knowledge import KnowledgeRated
from projections.workbench import Workbench

_ALL_COUNT = """
SELECT count(DISTINCT key) = count(*)
    AND NOT EXISTS (FROM event_keys AS k SEMI JOIN envelopes USING (key))
    AND NOT EXISTS (FROM envelopes AS e ANTI JOIN knowledge_state AS s ON s.org = e.org AND s.id = e.entity_id)
FROM envelopes
"""
_COUNT = """
UPDATE knowledge_state SET helpful = knowledge_state.helpful + r.helpful, harmful = knowledge_state.harmful + r.harmful,
    position = r.position, updated_at = make_timestamptz(r.stored_us)
FROM (
    SELECT org, entity_id, sum(helpful)::BIGINT AS helpful, sum(harmful)::BIGINT AS harmful,
        max(position) AS position, arg_max(stored_us, position) AS stored_us
    FROM envelopes GROUP BY org, entity_id
) AS r WHERE knowledge_state.id = r.entity_id AND knowledge_state.org = r.org
"""


def only_ratings(facts: Collection[type[Fact]]) -> bool:
    """Whether these are what the events of a batch of ratings say."""
    return set(facts) == {KnowledgeRated}


def all_count(bench: Workbench) -> bool:
    """Whether each event of the relation `envelopes`, ratings all of them, is accepted."""
    ((whether,),) = bench.rows(_ALL_COUNT)
    return bool(whether)


def count(bench: Workbench) -> None:
    """Count the cases of the relation `envelopes` on their items."""
    bench.run(_COUNT)

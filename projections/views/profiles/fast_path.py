"""Fast path of the gate for profiles: one query judges the events of thousands of memories as a set.

A memory is odd when one of its events is not sure to count, and when it is disabled: its events are judged one by one
(rules.py beside this).
"""

from __future__ import annotations

import pyarrow as pa

from ledger.events.profile import ProfileCreated, ProfileDisabled
from projections.fold_kit import late_compute as pc
from projections.fold_kit.workbench import Workbench

_VERSIONS = f"""
SELECT position, entity_id, item_version::INTEGER AS item_version, closes, NULL::VARCHAR AS item_status,
    key NOT IN (SELECT key FROM repeated) AND actor = owner AND coalesce(active, true)
        AND type <> '{ProfileDisabled.name}' AND (type = '{ProfileCreated.name}') = (item_version = 1) AS counts
FROM (
    SELECT e.position, e.entity_id, e.type, e.actor, e.owner, e.key, v.status = 'active' AS active,
        coalesce(v.version, 0) + row_number() OVER versions AS item_version,
        coalesce(lag(e.position) OVER versions, v.valid_from) AS closes
    FROM envelopes AS e LEFT JOIN (
        FROM profile_versions WHERE valid_to IS NULL AND concat(owner, '/', memory_type) IN (
            SELECT entity_id FROM envelopes WHERE entity = 'profile')
    ) AS v ON v.org = e.org AND concat(v.owner, '/', v.memory_type) = e.entity_id
    WHERE e.entity = 'profile'
    WINDOW versions AS (PARTITION BY e.org, e.entity_id ORDER BY e.position)
)
ORDER BY position
"""


def versions(bench: Workbench) -> tuple[pa.Table, pa.ChunkedArray]:
    """Judge the events of memories in the relation `envelopes`; `repeated` are keys of events.

    Returns position, item_version, closes and item_status of each that counts, and the ids of the odd memories.
    """
    made = bench.table(_VERSIONS)
    odd = made.filter(pc.invert(pc.fill_null(made["counts"], False)))["entity_id"]
    if len(odd):
        made = made.filter(pc.invert(pc.is_in(made["entity_id"], odd.combine_chunks())))
    return made.select(("position", "item_version", "closes", "item_status")), odd

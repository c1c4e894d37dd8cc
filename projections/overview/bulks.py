"""What a bulk did: its events, from the links that name it, with what each item was before and whether it still is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import orjson

from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger.event import JsonObject
from projections.fold_kit.erased import NOTHING, places_of, within
from projections.fold_kit.named_rows import named_rows
from projections.views.access import LISTED, listed, readable_by
from projections.views.knowledge.ask import MOST_TASK, acl_of
from projections.views.times import rfc3339


@dataclass(frozen=True, slots=True)
class Did:
    """One event of a bulk. `by` is who asked for it, as the event says, and `actor` whose event it is. `status` and
    `acl` are what its item had before, `acl_after` what it has by the event.

    `now_position` and so on are of the event that made the item what it is now: this one, where it still stands.
    """

    event_id: str
    type: str
    item_id: str
    position: int
    time: str
    by: str
    actor: str
    reason: str | None
    reason_erased: bool
    status: ItemStatus
    acl: list[JsonObject]
    acl_after: list[JsonObject]
    now_position: int
    now_change: str
    now_event: str

    @property
    def stands(self) -> bool:
        """Whether the item is as the event left it; verdicts do not count."""
        return self.now_position == self.position


def tasks_of(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> dict[str, str]:
    """The tasks, shortened, of those of these items that the caller may read, by id."""
    may, may_values = readable_by(caller)
    rows = cursor.execute(
        f"SELECT id, left(task, {MOST_TASK}) FROM knowledge WHERE org = ? AND id IN ({LISTED}) AND {may}",
        [org, listed(ids), *may_values],
    ).fetchall()
    return dict(rows)


def done_by(cursor: duckdb.DuckDBPyConnection, org: str, bulk_id: str) -> list[Did]:
    """The events of a bulk, in the order of the log."""
    rows = named_rows(
        cursor,
        """WITH of_bulk AS MATERIALIZED (
                SELECT position FROM lineage WHERE relation = 'bulk' AND ref = concat('bulk:', ?) AND org = ?)
            SELECT e.event_id, e.type, e.entity_id AS item_id, e.position, epoch_us(e.stream_time) AS time,
                e.data->>'$.bulk.by' AS by, e.actor, e.data->>'$.reason' AS reason,
                (e.data->'$.acl')::VARCHAR AS acl_after,
                b.status, b.shared_with, b.writers, s.version_position AS now_position, n.change AS now_change,
                n.event_id AS now_event
            FROM of_bulk JOIN other_events AS e USING (position)
            JOIN knowledge_versions AS b ON b.valid_to = e.position AND b.org = e.org AND b.id = e.entity_id
            JOIN knowledge_state AS s ON s.org = e.org AND s.id = e.entity_id
            JOIN knowledge_versions AS n ON n.valid_from = s.version_position
            WHERE e.entity = 'knowledge' ORDER BY e.position""",
        [bulk_id, org],
    )
    erased = places_of(cursor, [row["position"] for row in rows])
    return [_did(row, within(erased.get(row["position"], NOTHING), "reason")) for row in rows]


def _did(row: JsonObject, reason_erased: bool) -> Did:
    before = acl_of(row.pop("shared_with"), row.pop("writers"))
    stated = {"time": rfc3339(row["time"]), "acl": before, "acl_after": orjson.loads(row["acl_after"] or "[]")}
    return Did(**row | stated, reason_erased=reason_erased)

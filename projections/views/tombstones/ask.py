"""Queries of held statements: those that a caller may decide on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb

from kledger.contract.projects import scope_of
from kledger.contract.scopes import Caller
from kledger.contract.words import HeldStatus
from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.erased import erased_at
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, fitting_rows
from projections.fold_kit.sql_text import among_numbers, text
from projections.fold_kit.visibility import readers, shared_by_a_project
from projections.views.access import LIST, listed, readable_by
from projections.views.knowledge.ask import parsed
from projections.views.times import with_times

_PROJECTS = f"list_filter({readers('k.')}, lambda x: starts_with(x, {text(scope_of(''))}))"
_FIELDS: dict[str, type] = {"types": list, "task": str, "content": str, "tags": dict}
"""What is shown of a statement, where it is of that form: a publisher of its own may state anything."""

_MEASURED = Measured("held_statements AS h", "strlen(h.statement::VARCHAR)", "h.requested_position")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which held statements: those of a status, or the one with an id; and which page of them."""

    status: HeldStatus | None = None
    held_id: str | None = None
    limit: int = 20
    offset: int = 0


def held(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, coordinated: Sequence[str], wanted: Wanted
) -> tuple[list[JsonObject], int]:
    """A page of the held statements that the caller may decide on, the latest first, and the total.

    Their owner may; and who reads the statement and may change the item that was retired: its owner, or a coordinator
    of the projects that share it; `coordinated` are the scopes of the projects that the caller coordinates. Of an item
    that the caller does not read, nothing but the id is shown. The page ends early where they are more than fit.
    """
    seeing = caller if caller.is_operator else replace(caller, further=(*caller.further, *coordinated))
    may, values = _may_decide(caller, seeing, coordinated)
    where = ["h.org = ?", may]
    values = [org, *values]
    for column, value in (("status", wanted.status), ("id", wanted.held_id)):
        if value is not None:
            where.append(f"h.{column} = ?")
            values.append(value)
    reads, read_values = readable_by(seeing, "k.")
    source = f"""FROM held_statements AS h LEFT JOIN knowledge AS k ON k.org = h.org AND k.id = h.item_id
        LEFT JOIN tombstones AS t ON t.org = h.org AND t.item_id = h.item_id AND t.position = h.retired_at
        LEFT JOIN other_events AS e ON e.position = t.position
        WHERE {" AND ".join(where)}"""
    order = "ORDER BY h.requested_position DESC"
    found = cursor.execute(
        f"SELECT h.requested_position {source} {order} LIMIT {int(wanted.limit)} OFFSET {int(wanted.offset)}", values
    ).fetchall()
    at = among_numbers("h.requested_position", fitting_rows(cursor, _MEASURED, [position for (position,) in found]))
    rows = named_rows(
        cursor,
        f"""SELECT h.id, h.status, h.owner, h.scopes, h.knowledge_id, h.item_id, coalesce({reads}, FALSE) AS reads,
            t.cause, t.actor AS retired_by, epoch_us(t.time) AS retired_at,
            CASE WHEN {erased_at("t.position", "reason")} THEN NULL ELSE e.data->>'reason' END AS reason,
            h.statement::VARCHAR AS statement, h.decided_by, h.decision, epoch_us(h.held_at) AS held_at,
            epoch_us(h.updated_at) AS updated_at, h.position
            {source} AND {at} {order}""",
        [*read_values, *values],
    )
    ((total,),) = cursor.execute(f"SELECT count(*) {source}", values).fetchall()
    return list(one_answer.fitting([_shown(row) for row in rows])), total


def _may_decide(caller: Caller, seeing: Caller, coordinated: Sequence[str]) -> tuple[str, list[str]]:
    if caller.is_operator:
        return "TRUE", []
    entities = listed(caller.entities())
    decides = f"({shared_by_a_project('k.')} AND list_has_all({LIST}, {_PROJECTS}))"
    may = f"""(list_contains({LIST}, h.owner) OR (list_has_any(h.scopes, {LIST})
        AND coalesce(list_contains({LIST}, k.owner) OR {decides}, FALSE)))"""
    return may, [entities, listed(seeing.visible_scopes()), entities, listed(coordinated)]


def _shown(row: JsonObject) -> JsonObject:
    stated = (parsed(row.pop("statement")) or {}).get("saved")
    saved = stated if isinstance(stated, dict) else {}
    if not row.pop("reads"):
        row |= dict.fromkeys(("cause", "retired_by", "retired_at", "reason"))
    return with_times(row, "retired_at", "held_at", "updated_at") | {
        name: saved[name] if isinstance(saved.get(name), form) else None for name, form in _FIELDS.items()
    }

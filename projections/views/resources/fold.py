"""Fold of resource events: each accepted change appends a version and ends the one that it replaces."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import orjson

from ledger.event import Fact
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from projections.fold_kit.close_versions import end_versions
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Json, Moment, Value, among, insert
from projections.fold_kit.workbench import Facts, Workbench, table_of

# What an event states; what it leaves null stays as in the version before. A save states the whole resource.
_SET: dict[type[Fact], dict[str, str]] = {
    ResourceSaved: {
        "title": "d.title",
        "body": "d.body",
        "secure_body": "coalesce(d.secure_body, '')",
        "content_type": "d.content_type",
        "metadata": "d.metadata",
        "scopes": "d.scopes",
        "owner": "d.owner",
        "shared_with": "d.shared_with",
        "status": "'active'",
        "created_position": "CASE WHEN closes IS NULL THEN position END",
        "created_at": "CASE WHEN closes IS NULL THEN stream_time END",
    },
    ResourceRetired: {"status": "'retired'"},
    ResourceRestored: {"status": "'active'"},
    ResourceSecretDestroyed: {"secure_body": "''"},
}
_CARRIED = dict.fromkeys(_SET[ResourceSaved], "VARCHAR") | {
    "metadata": "JSON",
    "scopes": "VARCHAR[]",
    "shared_with": "VARCHAR[]",
    "created_position": "BIGINT",
    "created_at": "TIMESTAMPTZ",
}
_EVENT = {
    "org": "org",
    "id": "entity_id",
    "version": "item_version",
    "change": "split_part(type, '.', 2)",
    "moment": "stream_time",
    "actor": "actor",
    "trace_id": "trace_id",
    "message_id": "message_id",
    "event_id": "event_id",
}


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's versions and end the ones they replace."""
    changes = tuple(fact for fact in facts if fact in _SET)
    if changes:
        bench.run(_made(changes))
        bench.run(_ENDED)


_ENDED = """
UPDATE resource_versions SET valid_to = a.position, valid_to_time = a.stream_time
FROM accepted a WHERE a.entity = 'resource' AND a.closes IS NOT NULL AND resource_versions.valid_from = a.closes
"""


@cache
def _made(facts: Facts) -> str:
    """The statement that makes versions: each field has its last value, starting from the version before the batch."""
    columns, event_columns = ", ".join(_CARRIED), ", ".join(_EVENT.values())
    changed_fields = " UNION ALL ".join(
        f"SELECT position, {event_columns}, "
        + ", ".join(f"({_SET[fact].get(name, 'NULL')})::{kind}" for name, kind in _CARRIED.items())
        + f" FROM {table_of(fact)}"
        for fact in facts
    )
    no_event = ", ".join(f"NULL AS {name}" for name in _EVENT if name not in ("org", "id"))
    filled = ", ".join(f"last_value({name} IGNORE NULLS) OVER w AS {name}" for name in _CARRIED)
    return f"""
INSERT INTO resource_versions
SELECT org, id, version, change, position, NULL, moment, NULL, actor, trace_id, message_id, event_id, {columns}
FROM (
    SELECT position, {", ".join(_EVENT)}, {filled} FROM (
        SELECT v.valid_from AS position, v.org, v.id, {no_event}, {", ".join(f"v.{name}" for name in _CARRIED)}
        FROM resource_versions v JOIN accepted a ON v.valid_from = a.closes AND a.entity = 'resource'
        UNION ALL
        {changed_fields}
    ) WINDOW w AS (PARTITION BY org, id ORDER BY position ROWS UNBOUNDED PRECEDING)
) WHERE change IS NOT NULL
"""


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    made = [c for c in counted if type(c.fact) in _SET]
    closed = [c for c in made if c.closes is not None]
    known = _versions_at(con, [c.closes for c in closed if c.closes is not None]) if closed else {}
    rows: list[tuple[Value, ...]] = []
    for c in made:
        now = known[c.position] = {**_begun(c), **(known[c.closes] if c.closes is not None else {}), **_said(c.fact)}
        about = (c.org, c.entity_id, c.version, c.fact.verb(), c.position, None, Moment(c.stored_us), None)
        from_event = (c.envelope.actor, c.trace_id, c.message_id, c.envelope.id)
        rows.append((*about, *from_event, *(now[name] for name in _CARRIED)))
    insert(con, "resource_versions", rows)
    end_versions(con, "resource_versions", closed)


def _begun(c: Counted) -> dict[str, Value]:
    """The columns of its creation, if this event creates the resource."""
    return {"created_position": c.position, "created_at": Moment(c.stored_us)} if c.closes is None else {}


def _said(fact: Fact) -> dict[str, Value]:
    match fact:
        case ResourceSaved():
            said: dict[str, Value] = fact.model_dump(exclude={"expected_version"})
            metadata = Json(orjson.dumps(fact.metadata).decode())
            return {**said, "metadata": metadata, "secure_body": fact.secure_body or "", "status": "active"}
        case ResourceRetired():
            return {"status": "retired"}
        case ResourceRestored():
            return {"status": "active"}
        case _:
            return {"secure_body": ""}


def _versions_at(con: duckdb.DuckDBPyConnection, positions: list[int]) -> dict[int, dict[str, Value]]:
    """The carried columns of these versions, by the position that made them."""
    read = {"metadata": "metadata::VARCHAR", "created_at": "epoch_us(created_at)"}
    typed: dict[str, Any] = {"metadata": Json, "created_at": Moment}
    rows = con.execute(
        f"SELECT valid_from, {', '.join(read.get(name, name) for name in _CARRIED)} FROM resource_versions "
        f"WHERE valid_from IN ({among(positions)})"
    ).fetchall()
    return {
        row[0]: {
            name: typed[name](value) if name in typed else value for name, value in zip(_CARRIED, row[1:], strict=True)
        }
        for row in rows
    }

"""Queries of knowledge items and their versions, now and at any position, restricted to what the caller may see.

Every query has the caller's access in its SQL: an item is visible through its scopes or its ACL, to its owner, and (by
id only) to the operator of the node: `seen_by` and `readable_by`. Values are bound, never written into a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import orjson

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeSaved, Source
from projections.views.knowledge.evidence import confidence

ITEM_COLUMNS = """id, task, content, types, tags::VARCHAR, scopes, owner, visibility, resource_ids, source::VARCHAR,
    score, helpful, harmful, confidence, version, position, epoch_us(created_at), epoch_us(updated_at), merged_into,
    shared_with, writers, origin::VARCHAR, status"""

# The same columns of a version as it was made, without the present state of its item.
VERSION_COLUMNS = """id, task, content, types, tags::VARCHAR, scopes, owner, visibility, resource_ids, source::VARCHAR,
    score, first_helpful, first_harmful, confidence, version, valid_from, epoch_us(created_at),
    epoch_us(valid_from_time), NULL, shared_with, writers, origin::VARCHAR, status"""


@dataclass(frozen=True, slots=True)
class Standing:
    """State of an item that a change is checked against.

    `visible`: the caller sees it, and not only as the operator; `writers`: who may revise it beside its owner.
    """

    id: str
    version: int
    owner: str
    status: str
    position: int
    visible: bool
    writers: list[str]
    shared_with: list[str]
    scopes: list[str]


@dataclass(frozen=True, slots=True)
class SavedStatement:
    """Content of an item's first version, without its counts; `acl`: the ACL that was set directly after the save.

    `erased`: the content was erased with a person.
    """

    event_id: str
    position: int
    owner: str
    statement: tuple[Any, ...]
    acl: list[JsonObject]
    erased: bool


# A bound value costs 50 µs in DuckDB's Python client, with the interpreter's lock held: a list is bound as one text.
_LIST = "from_json(?, '[\"VARCHAR\"]')"
LISTED = f"SELECT unnest({_LIST})"
"""The values of a list that is bound as one JSON text; see `listed`."""


def listed(values: Sequence[str]) -> str:
    """The values as the parameter of LISTED."""
    return orjson.dumps(list(values)).decode()


def seen_by(caller: Caller, table: str = "") -> tuple[str, list[str]]:
    """The predicate of rows that the caller sees through scopes, the ACL or as the owner, and its parameters."""
    if caller.reads_all:
        return "TRUE", []
    visible, named = caller.visible_scopes(), caller.reading_as()
    scoped = " OR ".join(f"list_contains({table}scopes, ?)" for _ in visible)  # list_has_any is many times slower
    # Few items have an ACL, and only those are compared with it.
    shared = f"(len({table}shared_with) > 0 AND list_has_any({table}shared_with, {_LIST}))"
    owns = f"{table}owner IN ({', '.join('?' * len(named))})"
    return f"({scoped} OR {owns} OR {shared})", [*visible, *named, listed(named)]


def readable_by(caller: Caller, table: str = "") -> tuple[str, list[str]]:
    """The predicate of rows that the caller may read by id: those that it sees; for the operator all."""
    return ("TRUE", []) if caller.is_operator else seen_by(caller, table)


def standings(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> dict[str, Standing]:
    """The items out of `ids` that the caller may read, by id."""
    seen, seen_values = seen_by(caller)
    may, may_values = readable_by(caller)
    rows = cursor.execute(
        f"""SELECT id, version, owner, status, position, {seen}, writers, shared_with, scopes FROM knowledge
            WHERE org = ? AND id IN ({LISTED}) AND {may}""",
        [*seen_values, org, listed(ids), *may_values],
    ).fetchall()
    return {row[0]: Standing(*row) for row in rows}


def item(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, as_of: int | None = None
) -> JsonObject | None:
    """One item in full (`whole`), with its `created_position`; None when there is none that the caller may read.

    As of a position, it has to be readable both then and now: access that was withdrawn since stays withdrawn.
    """
    may, values = readable_by(caller)
    if as_of is None:
        row = _item_now(cursor, org, item_id, may, values)
    else:
        row = cursor.execute(
            f"""SELECT {ITEM_COLUMNS}, created_position FROM knowledge_at(?) WHERE org = ? AND id = ? AND {may}
                AND EXISTS (FROM knowledge WHERE org = ? AND id = ? AND {may})""",
            [as_of, org, item_id, *values, org, item_id, *values],
        ).fetchone()
    return None if row is None else {**whole(row), "created_position": row[-1]}


def _item_now(
    cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, may: str, values: Sequence[str]
) -> tuple[Any, ...] | None:
    """The item's row of the view `knowledge`, from its two tables: two plain queries take less time than the join."""
    state = cursor.execute(
        """SELECT helpful, harmful, position, epoch_us(created_at), epoch_us(updated_at), created_position,
            version_position, supporting, opposing FROM knowledge_state WHERE org = ? AND id = ?""",
        [org, item_id],
    ).fetchone()
    if state is None:
        return None
    helpful, harmful, position, created, updated, created_position, version_position, *evidence = state
    version = cursor.execute(
        f"""SELECT id, task, content, types, tags, scopes, owner, visibility, resource_ids, source, score, confidence,
                version, merged_into, shared_with, writers, origin, status
            FROM knowledge_versions WHERE valid_from = {version_position} AND {may}""",
        list(values),
    ).fetchone()
    if version is None:
        return None
    *fields, initial_confidence, number, merged_into, shared_with, writers, origin, status = version
    present_confidence = confidence(initial_confidence, *evidence)
    return (
        *(*fields, helpful, harmful, present_confidence, number, position, created, updated),
        *(merged_into if status == "merged" else None, shared_with, writers, origin, status, created_position),
    )


def readable_ids(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> set[str]:
    """The ids out of `ids` that the caller sees now."""
    seen, values = seen_by(caller)
    rows = cursor.execute(
        f"SELECT id FROM knowledge WHERE org = ? AND id IN ({LISTED}) AND {seen}",
        [org, listed(ids), *values],
    ).fetchall()
    return {row[0] for row in rows}


def versions(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str) -> list[JsonObject]:
    """Every version of an item that the caller may read, oldest first; each is checked by the scopes it had then.

    Call `item` first, to check that the caller may read the item itself.
    """
    may, values = readable_by(caller, "v.")
    rows = cursor.execute(
        f"""SELECT version, change, types, task, content, tags::VARCHAR, scopes, owner, visibility, resource_ids,
                source::VARCHAR, score, status, valid_from, valid_to, epoch_us(valid_from_time),
                epoch_us(valid_to_time), actor, trace_id, message_id, event_id, shared_with, writers
            FROM knowledge_versions AS v WHERE org = ? AND id = ? AND {may} ORDER BY valid_from""",
        [org, item_id, *values],
    ).fetchall()
    names = [
        "version",
        "change",
        "types",
        "task",
        "content",
        "tags",
        "scopes",
        "owner",
        "visibility",
        "resource_ids",
        "source",
        "score",
        "status",
        "valid_from",
        "valid_to",
        "valid_from_time",
        "valid_to_time",
        "actor",
        "trace_id",
        "message_id",
        "event_id",
    ]
    result = []
    for row in rows:
        version = dict(zip(names, row[:-2], strict=True)) | _acl(*row[-2:])
        version["tags"], version["source"] = parsed(version["tags"]), _filled_fields(version["source"])
        for name in ("valid_from_time", "valid_to_time"):
            version[name] = None if version[name] is None else rfc3339(version[name])
        result.append(version)
    return result


def owners(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str) -> list[str]:
    """The present and former owners of an item."""
    rows = cursor.execute(
        "SELECT DISTINCT owner FROM knowledge_versions WHERE org = ? AND id = ?", [org, item_id]
    ).fetchall()
    return [owner for (owner,) in rows]


def saved_statements(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str]) -> dict[str, SavedStatement]:
    """The first versions of those of `ids` that exist, without a check of access: an id is taken or free."""
    rows = cursor.execute(
        f"""SELECT v.id, v.event_id, v.valid_from, v.owner, v.types, v.task, v.content, v.tags::VARCHAR, v.scopes,
               v.resource_ids, v.source::VARCHAR, v.score, next.shared_with, next.writers, v.erased
           FROM knowledge_versions AS v
           LEFT JOIN (
               SELECT valid_from, shared_with, writers FROM knowledge_versions
               WHERE org = ? AND change = 'shared' AND version = 2
           ) AS next ON next.valid_from = v.valid_to AND v.valid_to = v.valid_from + 1
           WHERE v.org = ? AND v.change = 'saved' AND v.id IN ({LISTED})""",
        [org, org, listed(ids)],
    ).fetchall()
    return {
        row[0]: SavedStatement(
            event_id=row[1],
            position=row[2],
            owner=row[3],
            statement=(
                *row[4:7],
                parsed(row[7]),
                *row[8:10],
                Source.model_validate(parsed(row[10]), strict=False),
                row[11],
            ),
            acl=acl_of(row[12] or [], row[13] or []),
            erased=row[14],
        )
        for row in rows
    }


def statement_of(fact: KnowledgeSaved) -> tuple[Any, ...]:
    """The content of a save, comparable with SavedStatement.statement."""
    return (
        fact.types,
        fact.task,
        fact.content,
        fact.tags,
        fact.scopes,
        fact.resource_ids,
        Source(**dict(fact.source)),
        fact.score,
    )


def rfc3339(microseconds: int) -> str:
    """RFC 3339 text in UTC of microseconds since 1970."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06d}Z"


def item_of(row: Sequence[Any]) -> JsonObject:
    """An item as lists show it, without its empty fields, from a row that begins with ITEM_COLUMNS.

    `message_id` is that of its origin, else that of its source.
    """
    score, helpful, harmful, confidence = row[10:14]
    source = _filled_fields(row[9])
    message_id = parsed(row[21]).get("message_id") or source.get("message_id")
    return {
        "id": row[0],
        "task": row[1],
        "content": row[2],
        "types": row[3],
        "tags": parsed(row[4]),
        "scopes": row[5],
        "owner": row[6],
        "visibility": row[7],
        "resource_ids": row[8],
        "source": source,
        "eval": {"score": score, "helpful": helpful, "harmful": harmful, "confidence": confidence},
        "quality_score": float(score + helpful - 2 * harmful),
        "version": row[14],
        "position": row[15],
        "created_at": rfc3339(row[16]),
        "updated_at": rfc3339(row[17]),
        **({} if row[18] is None else {"merged_into": row[18]}),
        **_acl(*row[19:21]),
        **({} if message_id is None else {"message_id": message_id}),
    }


_EMPTY_SOURCE: JsonObject = Source().model_dump()


def whole(row: Sequence[Any]) -> JsonObject:
    """An item with every field, null or empty ones included, and its `status`.

    `origin`, from its save, is about the whole item: trace, message, and the dates that it had where it was before.
    """
    item = item_of(row)
    origin = None if row[21] is None else parsed(row[21])
    return {
        **item,
        "message_id": item.get("message_id"),
        "source": _EMPTY_SOURCE | item["source"],
        "origin": origin,
        "status": row[22],
    }


def acl_of(shared_with: Sequence[str], writers: Sequence[str]) -> list[JsonObject]:
    """An ACL as its event has it: entities, each with `read` or `read_write`."""
    return [{"entity": entity, "permission": "read_write" if entity in writers else "read"} for entity in shared_with]


def scopes_of(item: JsonObject) -> list[str]:
    """Every scope and ACL entity that may read an item (given as JSON), beside its owner."""
    return [*item["scopes"], *(entry["entity"] for entry in item.get("acl", ()))]


def _acl(shared_with: Sequence[str], writers: Sequence[str]) -> JsonObject:
    """`acl`, where the item has one."""
    return {"acl": acl_of(shared_with, writers)} if shared_with else {}


def parsed(text: str | None) -> Any:
    """The JSON document in a column's text; `{}` for null."""
    return {} if text is None else orjson.loads(text)


def _filled_fields(text: str | None) -> JsonObject:
    """A source without its null fields."""
    return {name: value for name, value in parsed(text).items() if value is not None}

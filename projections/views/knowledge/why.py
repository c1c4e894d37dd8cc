"""Explanation of access: why the caller may read an item, since when, and who may change it.

A reason holds since the first version of the unbroken series, up to the present one, in which it held.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from kledger.contract.projects import is_shared_kind, projects_among, scope_of
from kledger.contract.scopes import PUBLIC, Caller
from ledger.event import JsonObject
from ledger.readers import readers
from projections.fold_kit.named_rows import named_rows
from projections.views.access import readable_by
from projections.views.projects.ask import coordinators
from projections.views.times import with_times

_SINCE = ("position", "version", "change", "event_id", "by", "time")
_COLUMNS = """version, change, valid_from AS position, epoch_us(valid_from_time) AS time, event_id, actor AS by, scopes,
    shared_with, writers, owner, visibility, kind, status"""


def why_visible(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str) -> JsonObject | None:
    """Every reason for which the caller may read an item; None when there is no such item or no reason.

    `because` has `kind` (scope, acl, owner, operator), `entity` (null for the operator), for an ACL entry its
    `permission`, and `since`, the event from which on it holds. `recalled`: the caller's lists and searches
    show the item, but for a life that is over, which is not looked at here. `also`: other entities that may read it,
    which the caller does not have.
    """
    may, values = readable_by(caller)
    if not cursor.execute(
        f"SELECT 1 FROM knowledge WHERE org = ? AND id = ? AND {may}", [org, item_id, *values]
    ).fetchone():
        return None
    versions = named_rows(
        cursor,
        f"SELECT {_COLUMNS} FROM knowledge_versions WHERE org = ? AND id = ? ORDER BY valid_from DESC",
        [org, item_id],
    )
    now, entities = versions[0], caller.reading_as()
    because = [_scoped(scope, versions) for scope in caller.visible_scopes() if scope in now["scopes"]]
    because += [_shared(entity, versions) for entity in entities if entity in now["shared_with"]]
    if now["owner"] in entities:
        because.append(_reason("owner", now["owner"], versions, lambda v: v["owner"] == now["owner"]))
    projects = projects_among(readers(now["scopes"], now["shared_with"], now["owner"]))
    leads = coordinators(cursor, org, projects) if projects and is_shared_kind(now["kind"]) else []
    told_to = {now["owner"], *leads, *map(scope_of, projects)}
    if not caller.is_operator and told_to.isdisjoint(entities):
        leads = []  # as the list of members
    recalled = now["status"] == "active" and (bool(because) or caller.reads_all)
    if caller.is_operator:
        because.append(_reason("operator", None, versions, lambda _: True))
    return {
        "id": item_id,
        "visibility": now["visibility"],
        "because": because,
        "recalled": recalled,
        "also": [e for e in dict.fromkeys([*now["scopes"], *now["shared_with"]]) if e not in entities and e != PUBLIC],
        "may_change": {
            "owner": now["owner"],
            "writers": now["writers"],
            "coordinators": leads,
            "you": _part(now, leads, caller),
        },
    }


def _scoped(scope: str, versions: list[JsonObject]) -> JsonObject:
    return _reason("scope", scope, versions, lambda version: scope in version["scopes"])


def _shared(entity: str, versions: list[JsonObject]) -> JsonObject:
    writes = entity in versions[0]["writers"]

    def holds(version: JsonObject) -> bool:
        return entity in version["shared_with"] and (entity in version["writers"]) == writes

    reason = _reason("acl", entity, versions, holds)
    return {**reason, "permission": "read_write" if writes else "read"}


def _part(now: JsonObject, coordinators: list[str], caller: Caller) -> str | None:
    """The role in which the caller may change the item: operator, owner, coordinator, writer, or None."""
    if caller.is_operator:
        return "operator"
    if now["owner"] in caller.entities():
        return "owner"
    if not set(coordinators).isdisjoint(caller.entities()):
        return "coordinator"
    return "writer" if set(now["writers"]) & set(caller.entities()) else None


def _reason(
    kind: str, entity: str | None, versions: list[JsonObject], holds: Callable[[JsonObject], bool]
) -> JsonObject:
    """A reason that holds for the present version; `versions` are newest first."""
    since = versions[0]
    for version in versions:
        if not holds(version):
            break
        since = version
    return {
        "kind": kind,
        "entity": entity,
        "since": with_times({name: since[name] for name in _SINCE}, "time"),
    }

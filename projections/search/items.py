"""Items that may be results, out of the view: those of the versions that were found, and the latest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb
import orjson

from kledger.contract.words import EVERYTHING
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among
from projections.fold_kit.visibility import read_by
from projections.search.asked import Asked
from projections.search.known import Known, item_then
from projections.vectors.store.port import Only
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of

_COUNTED_UPTO = 20_000
"""More items than this raise the floor no more."""

Then = Mapping[int, JsonObject]
"""Items that were read whole, as the interfaces return them, by the position that made their version."""


class Items(NamedTuple):
    """Items that may be results; `then` has them whole where the search is as of a position, or by recency."""

    items: Sequence[Known]
    then: Then


def fits(item: Known, asked: Asked) -> bool:
    """Whether an item that the paths did not find has the types and fields that are asked for."""
    only = asked.only or {}
    owners, labels = only.get("owner"), only.get("visibility")
    return (
        (not asked.types or not set(asked.types).isdisjoint(item.types))
        and (not owners or item.standing.owner in owners)
        and (not labels or item.visibility in labels)
    )


def seen_count(cursor: duckdb.DuckDBPyConnection, org: str, visible: list[str]) -> int:
    """The number of active items that these scopes may read, at most _COUNTED_UPTO."""
    seen = "TRUE" if EVERYTHING in visible else read_by("$visible")
    values: dict[str, object] = {"org": org} | ({} if EVERYTHING in visible else {"visible": visible})
    (count,) = cursor.execute(
        f"""SELECT count(*) FROM (
            SELECT 1 FROM knowledge_versions
            WHERE org = $org AND valid_to IS NULL AND status = 'active' AND NOT erased AND {seen} LIMIT {_COUNTED_UPTO}
        )""",
        values,
    ).fetchone() or (0,)
    return int(count)


def items_then(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    visible: list[str],
    types: list[str],
    version_positions: list[int],
    as_of: int | None,
    recent: int,
    only: Only | None = None,
    versions: Sequence[int] | None = None,
) -> Items:
    """The items of these versions, and the `recent` latest items, as of a position (None: now).

    A version that the vector store still finds although the view has a newer one is left out.
    """
    source = "knowledge" if as_of is None else f"knowledge_at({int(as_of)})"
    # One bound value: the driver takes about 0.1 ms for each.
    narrowed = {field: values for field, values in (only or {}).items() if values}
    parameters = orjson.dumps(
        {"tenant": org, "visible": visible, "wanted": types, "versions": list(versions or ())}
        | {f"only_{field}": values for field, values in narrowed.items()}
    ).decode()
    where = f"""org = params.tenant AND status = 'active' AND NOT erased
        AND {"TRUE" if EVERYTHING in visible else read_by("params.visible")}
        AND (len(params.wanted) = 0 OR list_has_any(types, params.wanted))
        {"" if versions is None else "AND version_position IN (SELECT unnest(versions) FROM params)"}
        {"".join(f"AND {field} IN (SELECT unnest(only_{field}) FROM params)" for field in narrowed)}"""
    queries = []
    if version_positions:
        slots = among(version_positions)
        queries.append(f"SELECT {ITEM_COLUMNS} FROM {source}, params WHERE version_position IN ({slots}) AND {where}")
    if recent:
        queries.append(
            f"(SELECT {ITEM_COLUMNS} FROM {source}, params WHERE {where}"
            f" ORDER BY updated_at DESC, version_position DESC LIMIT {int(recent)})"
        )
    if not queries:
        return Items([], {})
    lists = "".join(
        f',"{name}":["VARCHAR"]' for name in ("visible", "wanted", *(f"only_{field}" for field in narrowed))
    )
    statement = f"""WITH params AS (
        SELECT unnest(from_json($1, '{{"tenant":"VARCHAR","versions":["BIGINT"]{lists}}}'))
    ) {" UNION ".join(queries)}"""
    rows = [(row, item_of(row)) for row in named_rows(cursor, statement, [parameters])]
    return Items(
        [item_then(item, row["version_position"], org, row["updated_at"]) for row, item in rows],
        {row["version_position"]: item for row, item in rows},
    )

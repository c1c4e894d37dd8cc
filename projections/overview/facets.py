"""Facets: how many of the items that a caller sees and wants have which type, tag, scope, owner, layer and status."""

from __future__ import annotations

from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from projections.views.knowledge.layers import layer_in
from projections.views.knowledge.listing import Wanted, selected, status_in
from projections.views.knowledge.tags import words_hold, words_in

MOST_VALUES = 50
"""Values of each facet, those of most items first."""
MOST_LETTERS = 100
"""A longer text among the tags is no word to choose by."""
_SHORT = f"WHERE length(value) <= {MOST_LETTERS}"

_OF_ITEMS = "(SELECT {} AS value, 1 AS items FROM matching)"
_OF_LISTS = """(SELECT unnest(list_distinct({0})) AS value, items
    FROM (SELECT {0}, count(*) AS items FROM matching GROUP BY {0}))"""
# JSON is parsed once for all items that have the same tags, and of those alone that have any.
_TAGS = f"""(SELECT unnest({words_in("t.")}) AS value, items
    FROM (SELECT tags, memory, count(*) AS items FROM matching
        WHERE tags <> '{{}}' OR memory IS NOT NULL GROUP BY tags, memory) AS t)"""
_FACETS = {
    "types": _OF_LISTS.format("types"),
    "tags": _TAGS,
    "scopes": _OF_LISTS.format("scopes"),
    "owners": _OF_ITEMS.format("owner"),
    "layers": _OF_ITEMS.format("layer"),
    "statuses": _OF_ITEMS.format("status"),
}


def facets(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    as_of: int | None = None,
    moment: datetime | None = None,
    most: int | None = None,
) -> JsonObject:
    """The values of each facet with their numbers of items, and the `total` of items; of the first `most` items."""
    first = "" if most is None else f"LIMIT {int(most)}"
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    status = status_in(cursor, org, wanted, as_of, moment)
    counted = " UNION ALL ".join(
        f"""(SELECT '{name}' AS facet, value, sum(items)::BIGINT AS items FROM {values}
            {_SHORT if name == "tags" else ""} GROUP BY value ORDER BY items DESC, value LIMIT {MOST_VALUES})"""
        for name, values in _FACETS.items()
    )
    rows = cursor.execute(
        f"""WITH matching AS MATERIALIZED (
                SELECT k.types, k.scopes, k.owner, {status} AS status, {layer_in("k.")} AS layer, k.tags,
                    CASE WHEN k.memory IS NOT NULL AND {words_hold("k.")}
                        THEN json_object('tags', json_extract(k.memory, '$.tags')) END AS memory
                {selection.matching()} {first})
            {counted} UNION ALL SELECT 'total', NULL, count(*) FROM matching""",
        list(selection.values),
    ).fetchall()
    found: JsonObject = {name: [] for name in _FACETS}
    for facet, value, items in sorted(rows, key=lambda row: (-row[2], row[1] or "")):
        if facet == "total":
            found[facet] = items
        else:
            found[facet].append({"value": value, "count": items})
    return found

"""Facets: how many of the items that a caller sees and wants have which type, tag, scope, owner, layer and status."""

from __future__ import annotations

from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from projections.views.knowledge.layers import layer_in
from projections.views.knowledge.listing import Wanted, selected
from projections.views.knowledge.tags import words_in

MOST_VALUES = 50
"""Values of each facet, those of most items first."""
MOST_LETTERS = 100
"""A longer text among the tags is no word to choose by."""
_SHORT = f"WHERE length(value) <= {MOST_LETTERS}"

_FACETS = {
    "types": "unnest(list_distinct(types))",
    "tags": "unnest(words)",
    "scopes": "unnest(list_distinct(scopes))",
    "owners": "owner",
    "layers": "layer",
    "statuses": "status",
}


def facets(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    as_of: int | None = None,
    moment: datetime | None = None,
) -> JsonObject:
    """The values of each facet with their numbers of items, and the `total` of items."""
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    # JSON is parsed of those alone that have tags.
    tagged = "CASE WHEN k.tags <> '{}' OR k.memory IS NOT NULL THEN " + words_in("k.") + " END"
    counted = " UNION ALL ".join(
        f"""(SELECT '{name}' AS facet, value, count(*) AS items FROM (SELECT {values} AS value FROM matching)
            {_SHORT if name == "tags" else ""} GROUP BY value ORDER BY items DESC, value LIMIT {MOST_VALUES})"""
        for name, values in _FACETS.items()
    )
    rows = cursor.execute(
        f"""WITH matching AS MATERIALIZED (
                SELECT k.types, k.scopes, k.owner, k.status, {layer_in("k.")} AS layer,
                    {tagged} AS words {selection.matching()})
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

"""Overview: numbers, days and outstanding items over all knowledge that a caller sees, in one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any, get_args

import duckdb
import orjson

from kledger.contract.scopes import Caller
from kledger.contract.words import ItemLayer
from ledger import one_answer
from ledger.event import JsonObject
from ledger.new_item import HELPFUL
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import one_state
from projections.fold_kit.recalls import counts as no_look
from projections.fold_kit.sql_text import among
from projections.fold_kit.visibility import readers
from projections.views.access import seen_by
from projections.views.knowledge.layers import layer_in
from projections.views.knowledge.lives import alive
from projections.views.knowledge.memory_health import concern, has_groups, numbers, to_look_at
from projections.views.times import with_times

LAYERS: tuple[str, ...] = get_args(ItemLayer)
MOST_SHOWN = 10
"""Items of each kind."""
LAST_VERDICTS = 2
"""So many harmful verdicts one after the other, the last of all, make an item one that turned harmful."""
_REVISED = "('revised', 'evolved', 'reverted', 'absorbed')"
_FIRST_DAY = date(1970, 1, 1)
_DAILY = ("saved", "revised", "recalled", "helpful", "harmful")
_ITEMS = ("most_helpful", "turned_harmful", "never_recalled_items")


def overview(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, moment: datetime, days: int) -> JsonObject:
    """The numbers over the items that the caller sees, the last `days` days, in UTC, up to the moment, and some items
    to look at: those that helped most, those that turned harmful, and the oldest that no recall has served."""
    with one_state(cursor):
        found: dict[str, list[Any]] = {}
        for part, value in _found(cursor, org, caller, moment, days):
            found.setdefault(part, []).append(orjson.loads(value))
        shown = {name: found.get(name, []) for name in _ITEMS}
        by_position = _shown(cursor, [born for each in shown.values() for born in each])
    (counted,) = found["numbers"]
    by_layer = {layer: counted.pop(layer) for layer in LAYERS}
    items = iter(one_answer.with_room([by_position[born] for each in shown.values() for born in each]))
    return {
        "total": counted.pop("total"),
        "by_layer": by_layer,
        **counted,
        "days": _each_day(moment.date(), days, found.get("days", [])),
        **{name: list(islice(items, len(each))) for name, each in shown.items()},
    }


def _found(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, moment: datetime, days: int
) -> list[tuple[str, str]]:
    """The parts of the overview, each with a value as JSON; of an item, the position of its save."""
    earliest = (moment.date() - _FIRST_DAY).days - days + 1
    seen, seen_values = seen_by(caller, "k.")
    conflicting, conflict_values = "FALSE", list[str]()
    if cursor.execute("SELECT 1 FROM conflicts WHERE status = 'recorded' LIMIT 1").fetchone():
        conflicting, conflict_values = concern("conflicting", caller)
    never = to_look_at("m.born NOT IN (SELECT born FROM served WHERE counts)")
    counted = numbers("m.in_recall", "m.is_over", {"conflicting": conflicting, "never_recalled": never}, LAYERS)
    living = alive(cursor, org, "k", moment)
    public = "list_contains(k.scopes, 'public')"
    statement = f"""
        WITH m AS MATERIALIZED (
            SELECT k.org, k.id, k.created_position AS born, k.status, {layer_in("k.")} AS layer, k.confidence,
                k.helpful, k.harmful, k.erased, {_day("k.created_at")} AS day,
                k.status = 'active' AND {living} AS in_recall,
                k.status = 'expired' OR (k.status = 'active' AND NOT {living}) AS is_over,
                CASE WHEN {public} THEN TRUE ELSE {has_groups("k.")} END AS everybody,
                CASE WHEN NOT everybody THEN {readers("k.")} END AS readers
            FROM knowledge AS k WHERE k.org = ? AND {seen}
        ), served AS MATERIALIZED (
            SELECT m.born, r.position, {_day("r.time")} AS day,
                m.everybody OR list_contains(m.readers, r.actor) AS counts
            FROM served_items AS r JOIN m ON m.id = r.item_id WHERE r.org = ? AND {no_look("r.")}
        ), judged AS MATERIALIZED (
            SELECT m.born, f.position, {_day("f.time")} AS day, f.verdict, m.harmful >= {LAST_VERDICTS} AS doubtful
            FROM feedback AS f JOIN m ON m.id = f.knowledge_id WHERE f.org = ? AND f.verdict <> 'confirmed'
        ), turned AS (
            SELECT born FROM judged WHERE doubtful GROUP BY born
            HAVING list_min(max(position, {LAST_VERDICTS}) FILTER (verdict = 'harmful'))
                    > coalesce(max(position) FILTER (verdict = 'helpful'), 0)
                AND count(*) FILTER (verdict = 'harmful') >= {LAST_VERDICTS}
        ), counted AS (SELECT {counted} FROM m),
        daily AS (
            SELECT day, 'saved' AS what FROM m
            UNION ALL SELECT {_day("v.valid_from_time")}, 'revised' FROM knowledge_versions AS v JOIN m USING (org, id)
                WHERE v.change IN {_REVISED}
            UNION ALL SELECT min(day), 'recalled' FROM served WHERE day >= {earliest} GROUP BY position
            UNION ALL SELECT day, verdict FROM judged
        )
        SELECT 'numbers' AS part, to_json(counted) AS value FROM counted
        UNION ALL SELECT 'days', to_json({{day: day, what: what, times: times}}) FROM (
            SELECT day, what, count(*) AS times FROM daily WHERE day >= {earliest} GROUP BY day, what)
        UNION ALL (SELECT 'most_helpful', to_json(born) FROM m WHERE in_recall AND NOT erased AND helpful > {HELPFUL}
            AND helpful > harmful ORDER BY helpful - harmful DESC, born DESC LIMIT {MOST_SHOWN})
        UNION ALL (SELECT 'turned_harmful', to_json(born) FROM m WHERE in_recall AND NOT erased
            AND (harmful > helpful OR born IN (FROM turned))
            ORDER BY harmful - helpful DESC, born DESC LIMIT {MOST_SHOWN})
        UNION ALL (SELECT 'never_recalled_items', to_json(born) FROM m WHERE in_recall AND {never}
            ORDER BY born LIMIT {MOST_SHOWN})"""
    return cursor.execute(statement, [org, *seen_values, org, org, *conflict_values]).fetchall()


def _shown(cursor: duckdb.DuckDBPyConnection, created: Collection[int]) -> dict[int, JsonObject]:
    """What is shown of the items that were saved at these positions."""
    rows = named_rows(
        cursor,
        f"""SELECT created_position, id, task, helpful, harmful, confidence, epoch_us(updated_at) AS updated_at
            FROM knowledge WHERE created_position IN ({among(created)})""",
    )
    return {row.pop("created_position"): with_times(row, "updated_at") for row in rows}


def _each_day(last: date, days: int, counted: Iterable[JsonObject]) -> list[JsonObject]:
    """Each of the last days with its numbers, the earliest first."""
    found = {(each["day"], each["what"]): each["times"] for each in counted}
    numbered = [(last - timedelta(days=back), (last - _FIRST_DAY).days - back) for back in reversed(range(days))]
    return [
        {"day": day.isoformat(), **{what: found.get((number, what), 0) for what in _DAILY}} for day, number in numbered
    ]


def _day(moment: str) -> str:
    """The day of a moment in UTC, counted from the first of 1970: a tenth of the time of a date."""
    return f"epoch_us({moment}) // 86400000000"

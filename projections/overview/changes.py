"""Changes of items after a position, in the order of the log: their versions and the verdicts on them.

A change is told where its reader sees the item now, and saw what it said by that change; so what is no longer theirs to
see is not told of, not even that it was withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from kledger.contract.scopes import Caller
from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, fitting_rows
from projections.fold_kit.sql_text import among, among_numbers
from projections.views.access import LISTED, listed, seen_by
from projections.views.knowledge.listing import as_stated
from projections.views.times import with_times


@dataclass(frozen=True, slots=True)
class Followed:
    """Which changes are told: of which items, as they are now, and which `kinds` of changes; each is any-of."""

    kinds: Sequence[str] = ()
    ids: Sequence[str] = ()
    types: Sequence[str] = ()
    scopes: Sequence[str] = ()
    owner: str | None = None

    def of_items(self) -> tuple[str, list[Any]]:
        """The predicate of the items `k`, with its values."""
        where, values = as_stated(self.types, self.scopes, self.owner)
        if self.ids:
            where.append(f"k.id IN ({LISTED})")
            values.append(listed(self.ids))
        return "".join(f" AND {each}" for each in where), values


ALL = Followed()


def changes(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    after: int,
    until: int,
    limit: int,
    followed: Followed = ALL,
) -> tuple[list[JsonObject], bool]:
    """Up to `limit` changes after a position and up to another one, as many as fit into an answer, oldest first, and
    whether there may be more; `task` is the item's as it is now.
    """
    of_kinds = f" WHERE c.change IN ({among(followed.kinds)})" if followed.kinds else ""
    of_items, items_values = followed.of_items()
    between = f"> {int(after)} AND {{0}} <= {int(until)}"
    now, now_values = seen_by(caller, "k.")
    then, then_values = seen_by(caller, "v.")
    rows = named_rows(
        cursor,
        f"""WITH changed AS MATERIALIZED (
                SELECT v.id, v.change, v.version, v.valid_from AS position, v.valid_from_time AS time, v.actor
                FROM knowledge_versions AS v
                WHERE v.org = ? AND v.valid_from {between.format("v.valid_from")} AND {then}
                UNION ALL
                SELECT f.knowledge_id, CASE WHEN f.verdict = 'confirmed' THEN 'confirmed' ELSE 'rated' END,
                    NULL, f.position, f.time, f.actor
                FROM feedback AS f WHERE f.org = ? AND f.position {between.format("f.position")}
            ), told AS MATERIALIZED (
                SELECT c.*, k.valid_from AS now FROM changed AS c
                JOIN knowledge_versions AS k ON k.org = ? AND k.id = c.id AND k.valid_to IS NULL
                    AND {now}{of_items}{of_kinds}
                ORDER BY c.position LIMIT {int(limit)}
            )
            SELECT t.id, t.now, t.change, coalesce(t.version, v.version) AS version, t.position,
                epoch_us(t.time) AS time, t.actor
            FROM told AS t
            LEFT JOIN knowledge_versions AS v ON t.version IS NULL AND v.org = ? AND v.id = t.id
                AND v.valid_from <= t.position AND (v.valid_to IS NULL OR v.valid_to > t.position)
            ORDER BY t.position""",
        [org, *then_values, org, org, *now_values, *items_values, org],
    )
    named = fitting_rows(cursor, _TASKS, [row["now"] for row in rows])
    tasks = _tasks(cursor, named)
    told = [{"id": row.pop("id"), "task": tasks[row.pop("now")], **row} for row in rows[: len(named)]]
    shown = one_answer.fitting(told)
    return [with_times(row, "time") for row in shown], len(rows) == limit or len(shown) < len(rows)


_TASKS = Measured("knowledge_versions", "strlen(task)", "valid_from")


def _tasks(cursor: duckdb.DuckDBPyConnection, made: Sequence[int]) -> dict[int, str]:
    """The task of each of these versions, by the position that made it."""
    at = among_numbers("valid_from", sorted(set(made)))
    return dict(cursor.execute(f"SELECT valid_from, task FROM knowledge_versions WHERE {at}").fetchall())

"""Items without their texts: what a search ranks them by, and the questions to the view for it.

That is a tenth of the size of an item, and a search looks at forty items to show five.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import orjson

from kledger.contract.words import ItemLayer
from ledger.event import JsonObject
from projections.search.ranking import Standing
from projections.views.knowledge.ask import ITEM_COLUMNS, ITEM_NAMES, ITEM_VALUES, item_of, parsed, scopes_of
from projections.views.knowledge.evidence import confidence
from projections.views.knowledge.layers import layer_of
from projections.views.knowledge.memory_fields import is_short
from projections.views.knowledge.tables import MADE


class State(NamedTuple):
    """An item's present state, from its row of `knowledge_state`."""

    org: str
    id: str
    at: int
    """The position that made the present version."""
    status: str
    helpful: int
    harmful: int
    position: int
    updated_us: int
    supporting: int
    opposing: int


class Known(NamedTuple):
    """An item without its texts: what it is ranked by, and what its state adds to its version."""

    item_id: str
    at: int
    """The position that made the version."""
    org: str
    status: str
    position: int
    supporting: int
    opposing: int
    standing: Standing
    types: tuple[str, ...]
    visibility: str
    layer: ItemLayer
    is_short: bool
    """Whether it is a short memory, which may be over."""
    trace: str | None
    """The trace that it states in its source."""

    def in_state(self, state: State) -> Known:
        """This version in another state."""
        before = self.standing
        standing = Standing(
            state.id, before.score, state.helpful, state.harmful, before.scopes, _moment(state.updated_us), before.owner
        )
        return self._replace(
            status=state.status,
            position=state.position,
            supporting=state.supporting,
            opposing=state.opposing,
            standing=standing,
        )

    def shown(self, version: JsonObject) -> JsonObject:
        """The item as JSON, as the interfaces return it; `version` is its version as it was made."""
        standing, initial = self.standing, version["eval"]
        evaluation = {
            **initial,
            "helpful": standing.helpful,
            "harmful": standing.harmful,
            "confidence": confidence(initial["confidence"], self.supporting, self.opposing),
        }
        return {
            **version,
            "eval": evaluation,
            "position": self.position,
            "updated_at": f"{standing.updated_at.isoformat(timespec='microseconds').removesuffix(_UTC)}Z",
        }


_STATE = """s.org, s.id, s.version_position, s.status, s.helpful, s.harmful, s.position, epoch_us(s.updated_at),
    s.supporting, s.opposing"""
_VERSION = "v.score, v.scopes, v.shared_with, v.owner, v.types, v.visibility, v.layer, v.kind, v.source"
"""As they are: what is computed of them in SQL costs more to plan than forty items cost here."""
_MADE = f"SELECT {ITEM_COLUMNS} FROM {MADE}"
_UTC = "+00:00"
Shared = dict[Any, Any]
"""Values that many items have, each once."""


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def states(cursor: duckdb.DuckDBPyConnection, where: str) -> list[State]:
    rows = cursor.execute(f"SELECT {_STATE} FROM knowledge_state AS s WHERE {where}").fetchall()
    return list(map(State._make, rows))


def known(cursor: duckdb.DuckDBPyConnection, where: str, shared: Shared) -> list[Known]:
    rows = cursor.execute(
        f"""SELECT {_STATE}, {_VERSION}
            FROM knowledge_state AS s JOIN knowledge_versions AS v ON v.valid_from = s.version_position
            WHERE {where}"""
    ).fetchall()
    return [_item(State._make(row[:10]), row[10:], shared.setdefault) for row in rows]


def _item(state: State, version: tuple[Any, ...], one: Callable[[Any, Any], Any]) -> Known:
    """An item; what it has in common with others is kept once."""
    score, scopes, shared_with, owner, types, visibility, memory, kind, source = version
    readers, kinds = (*scopes, *(shared_with or ())), tuple(types)
    layer = layer_of(
        {"types": types, "scopes": scopes} | ({} if memory is None else {"memory": {"layer": memory, "kind": kind}})
    )
    trace = parsed(source).get("trace_id")
    standing = Standing(
        state.id,
        score,
        state.helpful,
        state.harmful,
        one(readers, readers),
        _moment(state.updated_us),
        one(owner, owner),
    )
    return Known(
        state.id,
        state.at,
        one(state.org, state.org),
        one(state.status, state.status),
        state.position,
        state.supporting,
        state.opposing,
        standing,
        one(kinds, kinds),
        one(visibility, visibility),
        one(layer, layer),
        memory == "short",
        one(trace, trace),
    )


def item_then(item: JsonObject, at: int, org: str, updated_us: int) -> Known:
    """An item that was read whole, given as the interfaces return it; `at` is the position that made its version."""
    evaluation = item["eval"]
    counts = (evaluation["score"], evaluation["helpful"], evaluation["harmful"])
    return Known(
        item["id"],
        at,
        org,
        "active",
        item["position"],
        0,
        0,
        Standing(item["id"], *counts, tuple(scopes_of(item)), _moment(updated_us), item["owner"]),
        tuple(item["types"]),
        item["visibility"],
        layer_of(item),
        is_short(item),
        item["source"].get("trace_id"),
    )


def texts(cursor: duckdb.DuckDBPyConnection, where: str) -> dict[int, bytes]:
    """Versions as they were made, by their positions, as JSON arrays that `version_of` reads.

    DuckDB writes these, so that a thousand take the interpreter little time.
    """
    return _texts(cursor, f"{_MADE} WHERE {where}")


def texts_of_few(cursor: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> dict[int, bytes]:
    """The versions made at these positions, as `texts` has them, in a time that does not grow with the table.

    Five of 100,000 take 5 ms this way and 13 by IN, for which every block of each column is read; of 10,000, 4 and 3.5.
    """
    return _texts(cursor, " UNION ALL ".join(f"{_MADE} WHERE valid_from = {int(at)}" for at in positions))


def _texts(cursor: duckdb.DuckDBPyConnection, statement: str) -> dict[int, bytes]:
    rows = cursor.execute(f"SELECT version_position, json_array({ITEM_VALUES})::VARCHAR FROM ({statement})").fetchall()
    return {position: text.encode() for position, text in rows}


def version_of(text: bytes) -> JsonObject:
    """A version as it was made, as the interfaces return an item."""
    return item_of(dict(zip(ITEM_NAMES, orjson.loads(text), strict=True)))

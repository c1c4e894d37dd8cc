"""Erased values: the places in events whose values were destroyed with a person's key, as a table beside the text.

The text `[erased]` takes the place of such a value, but does not prove an erasure: anybody may save that very text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import duckdb
import pyarrow as pa

from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import among, text

TABLES = """
CREATE TABLE erased_texts (position BIGINT NOT NULL, place VARCHAR NOT NULL);
COMMENT ON TABLE erased_texts IS 'Internal: where in an event words stood whose key is destroyed';
"""
_FEW = 64
_NOW = "erased_now"

Places = frozenset[str]
"""JSON pointers into an event, `/data/content`."""
NOTHING: Places = frozenset()


def keep(con: duckdb.DuckDBPyConnection, erased: Mapping[int, Sequence[str]]) -> None:
    """Record the erased places of a batch, by position, before it is folded."""
    rows = [(position, place) for position, places in erased.items() for place in places]
    if len(rows) <= _FEW:
        insert(con, "erased_texts", rows)
        return
    for name, table in of_batch(erased).items():
        con.register(name, table)
        try:
            con.execute(f"INSERT INTO erased_texts FROM {name}")
        finally:
            con.unregister(name)


def of_batch(erased: Mapping[int, Sequence[str]]) -> dict[str, pa.Table]:
    """The relation of a batch's erased places, with the columns of erased_texts, by its name."""
    positions = [position for position, places in erased.items() for _ in places]
    places = [place for places in erased.values() for place in places]
    return {_NOW: pa.table({"position": pa.array(positions, pa.int64()), "place": pa.array(places, pa.string())})}


def erased_at(position: str, field: str) -> str:
    """The predicate that this field of an event's data was erased; `position` is a SQL expression."""
    return f"{position} IN (SELECT position FROM erased_texts WHERE place = {text(_place(field))})"


def erased_in_batch(field: str) -> str:
    """The predicate that this field of the data of an event of the batch, whose row is read, was erased."""
    return f"position IN (SELECT position FROM {_NOW} WHERE place = {text(_place(field))})"


def positions_of(con: duckdb.DuckDBPyConnection, positions: Collection[int], field: str) -> set[int]:
    """Those of these positions whose event has this field erased."""
    if not positions:
        return set()
    rows = con.execute(
        f"SELECT position FROM erased_texts WHERE position IN ({among(positions)}) AND place = {text(_place(field))}"
    ).fetchall()
    return {position for (position,) in rows}


def places_of(con: duckdb.DuckDBPyConnection, positions: Collection[int]) -> dict[int, Places]:
    """The erased places in the events at these positions, by position; positions without any are left out."""
    if not positions:
        return {}
    erased: dict[int, set[str]] = {}
    for position, place in con.execute(
        f"SELECT position, place FROM erased_texts WHERE position IN ({among(positions)})"
    ).fetchall():
        erased.setdefault(position, set()).add(place)
    return {position: frozenset(places) for position, places in erased.items()}


def within(places: Places, field: str) -> bool:
    """Whether this field of an event's data was erased, as a whole or in part."""
    root = _place(field)
    return any(place == root or place.startswith(f"{root}/") for place in places)


def _place(field: str) -> str:
    return f"/data/{field}"

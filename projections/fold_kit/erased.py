"""Which words of the log were destroyed with their person's key? A fact beside the text, never read off what it says.

`[erased]` stands in the place of such a text, and anybody may state that very text as their own: then it says so, and
nothing was erased.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import duckdb
import pyarrow as pa

from projections.fold_kit.sql_text import among, insert, text

TABLES = """
CREATE TABLE erased_texts (position BIGINT NOT NULL, place VARCHAR NOT NULL);
COMMENT ON TABLE erased_texts IS 'Internal: where in an event words stood whose key is destroyed';
"""
_FEW = 64

Places = frozenset[str]
"""JSON pointers into an event, `/data/content`."""
NOTHING: Places = frozenset()


def keep(con: duckdb.DuckDBPyConnection, erased: Mapping[int, Sequence[str]]) -> None:
    """Note what could not be opened in a batch any more, before it is folded; by position."""
    rows = [(position, place) for position, places in erased.items() for place in places]
    if len(rows) <= _FEW:
        insert(con, "erased_texts", rows)
        return
    positions, places = zip(*rows, strict=True)
    con.register("erased_now", pa.table({"position": pa.array(positions, pa.int64()), "place": pa.array(places)}))
    try:
        con.execute("INSERT INTO erased_texts SELECT position, place FROM erased_now")
    finally:
        con.unregister("erased_now")


def erased_at(position: str, field: str) -> str:
    """The predicate that the words of this field of an event's data were erased; `position` is an SQL expression."""
    return f"{position} IN (SELECT position FROM erased_texts WHERE place = {text(_place(field))})"


def positions_of(con: duckdb.DuckDBPyConnection, positions: Collection[int], field: str) -> set[int]:
    """The positions out of these whose event said something in this field that was erased."""
    if not positions:
        return set()
    found = con.execute(
        f"SELECT position FROM erased_texts WHERE position IN ({among(positions)}) AND place = {text(_place(field))}"
    ).fetchall()
    return {position for (position,) in found}


def places_of(con: duckdb.DuckDBPyConnection, positions: Collection[int]) -> dict[int, Places]:
    """What was erased of the events at these positions, by position; nothing of most."""
    if not positions:
        return {}
    found: dict[int, set[str]] = {}
    for position, place in con.execute(
        f"SELECT position, place FROM erased_texts WHERE position IN ({among(positions)})"
    ).fetchall():
        found.setdefault(position, set()).add(place)
    return {position: frozenset(places) for position, places in found.items()}


def within(places: Places, field: str) -> bool:
    """Whether something was erased in this field of an event's data, as a whole or in part."""
    own = _place(field)
    return any(place == own or place.startswith(f"{own}/") for place in places)


def _place(field: str) -> str:
    return f"/data/{field}"

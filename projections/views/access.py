"""Which rows of a view a caller sees, as a predicate of SQL whose values are bound, never written into a statement.

A row is visible through its scopes or its ACL, to its owner, and (by id only) to the operator of the node.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from kledger.contract.scopes import Caller

# A bound value costs 50 µs in DuckDB's Python client, with the interpreter's lock held: a list is bound as one text.
LIST = "from_json(?, '[\"VARCHAR\"]')"
"""A list of texts that is bound as one JSON text; see `listed`."""
LISTED = f"SELECT unnest({LIST})"
"""Its values."""


def listed(values: Sequence[str]) -> str:
    """The values as the parameter of LIST and LISTED."""
    return orjson.dumps(list(values)).decode()


def seen_by(caller: Caller, table: str = "") -> tuple[str, list[str]]:
    """The predicate of rows that the caller sees through scopes, the ACL or as the owner, and its parameters."""
    if caller.reads_all:
        return "TRUE", []
    visible, named = caller.visible_scopes(), caller.reading_as()
    scoped = " OR ".join(f"list_contains({table}scopes, ?)" for _ in visible)  # list_has_any is many times slower
    # Few items have an ACL, and only those are compared with it.
    shared = f"(len({table}shared_with) > 0 AND list_has_any({table}shared_with, {LIST}))"
    owns = f"{table}owner IN ({', '.join('?' * len(named))})"
    return f"({scoped} OR {owns} OR {shared})", [*visible, *named, listed(named)]


def readable_by(caller: Caller, table: str = "") -> tuple[str, list[str]]:
    """The predicate of rows that the caller may read by id: those that it sees; for the operator all."""
    return ("TRUE", []) if caller.is_operator else seen_by(caller, table)

"""Access rules in SQL: who may read a row, who may judge it, and its visibility label.

They are `ledger.readers` and `kledger.contract.scopes` over the columns scopes, shared_with and owner: a row's readers
are the entities in any of these.
"""

from __future__ import annotations

from kledger.contract.projects import SHARED_KINDS, scope_of
from kledger.contract.scopes import PERSONAL
from projections.fold_kit.sql_text import among, text

EVERYBODY = "CASE WHEN len(shared_with) = 0 THEN scopes ELSE list_distinct(scopes || shared_with) END"
"""Scopes and the entities of an ACL; without the owner, whom the label does not count as a reader."""


def visibility(readers: str = "scopes") -> str:
    """The label of a row with an `owner`; `readers` is the list of who may read it."""
    return f"""CASE WHEN list_contains({readers}, 'public') THEN 'public'
    WHEN len(list_filter({readers}, lambda x: starts_with(x, 'org:'))) > 0 THEN 'org'
    WHEN len({readers}) = 1 AND (({readers})[1] = owner OR starts_with(({readers})[1], 'user:')) THEN 'private'
    ELSE 'shared' END"""


def readers(table: str = "") -> str:
    """The list of all entities that may read a row."""
    return f"list_append({table}scopes || {table}shared_with, {table}owner)"


def shared_by_a_project(table: str = "") -> str:
    """The predicate of rows with a `kind` that a project has to approve."""
    projects = f"list_filter({readers(table)}, lambda x: starts_with(x, {text(scope_of(''))}))"
    return f"(coalesce({table}kind IN ({among(SHARED_KINDS)}), false) AND len({projects}) > 0)"


def read_by(entities: str, table: str = "") -> str:
    """The predicate of rows that any of these scopes may read; `entities` is a SQL list that includes `public`."""
    return (
        f"(list_has_any({table}scopes, {entities}) OR list_contains({entities}, {table}owner) "
        f"OR (len({table}shared_with) > 0 AND list_has_any({table}shared_with, {entities})))"
    )


def shared(readers: str) -> str:
    """The readers that have members, such as teams: neither users nor agents."""
    personal = " OR ".join(f"starts_with(x, {text(kind + ':')})" for kind in PERSONAL)
    return f"list_filter({readers}, lambda x: NOT ({personal}))"


def may_judge(actor: str, through: str, readers: str, shared: str) -> str:
    """The predicate of accepted verdicts on an item that is not public: `ledger.readers.may_judge` in SQL."""
    return (
        f"(list_contains({readers}, {actor}) OR "
        f"CASE WHEN {through} IS NULL THEN len({shared}) > 0 ELSE list_contains({shared}, {through}) END)"
    )

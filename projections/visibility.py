"""How does SQL label who may read something? As `ledger.scopes.visibility_of` does, over columns (mission S3)."""

from __future__ import annotations

EVERYBODY = "CASE WHEN len(shared_with) = 0 THEN scopes ELSE list_distinct(scopes || shared_with) END"
"""Scopes and the entities of an ACL."""


def visibility(readers: str = "scopes") -> str:
    """The label of a row with an `owner`; `readers` is the list of who may read it."""
    return f"""CASE WHEN list_contains({readers}, 'public') THEN 'public'
    WHEN len(list_filter({readers}, lambda x: starts_with(x, 'org:'))) > 0 THEN 'org'
    WHEN len({readers}) = 1 AND (({readers})[1] = owner OR starts_with(({readers})[1], 'user:')) THEN 'private'
    ELSE 'shared' END"""

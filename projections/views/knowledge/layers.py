"""Layer of an item: the layer of a memory, the shared memory of a project, a document, or plain knowledge.

It stands here twice: of an item as the interfaces return it, and of a row of the view `knowledge` in SQL.
"""

from __future__ import annotations

from kledger.contract.documents import ITEM_TYPE
from kledger.contract.projects import SHARED_KINDS, is_shared_kind, projects_among, scope_of
from kledger.contract.words import ItemLayer
from ledger.event import JsonObject
from projections.fold_kit.sql_text import among, text

PROFILE_TYPE = "user_profile"
"""The type of knowledge that says what a user is like or prefers, whatever its layer."""


def layer_of(item: JsonObject) -> ItemLayer:
    """The layer of an item as the interfaces return it."""
    memory = item.get("memory")
    if memory is None:
        return "document" if ITEM_TYPE in item["types"] else "plain"
    if is_shared_kind(memory.get("kind")) and projects_among(item["scopes"]):
        return "shared"
    layer: ItemLayer = memory["layer"]
    return layer


def layer_in(table: str = "") -> str:
    """The layer of a row of the view `knowledge`, in SQL."""
    in_a_project = f"len(list_filter({table}scopes, x -> starts_with(x, {text(scope_of(''))}))) > 0"
    return f"""CASE WHEN {table}layer IS NULL
        THEN CASE WHEN list_contains({table}types, {text(ITEM_TYPE)}) THEN 'document' ELSE 'plain' END
        WHEN {table}kind IN ({among(SHARED_KINDS)}) AND {in_a_project} THEN 'shared' ELSE {table}layer END"""

"""Layer of a result: the layer of a memory, the shared memory of a project, a document, or plain knowledge."""

from __future__ import annotations

from kledger.contract.documents import ITEM_TYPE
from kledger.contract.projects import is_shared_kind, projects_among
from kledger.contract.recall import RecallLayer
from ledger.event import JsonObject


def layer_of(item: JsonObject) -> RecallLayer:
    """The layer of an item as the interfaces return it."""
    memory = item.get("memory")
    if memory is None:
        return "document" if ITEM_TYPE in item["types"] else "plain"
    if is_shared_kind(memory.get("kind")) and projects_among(item["scopes"]):
        return "shared"
    layer: RecallLayer = memory["layer"]
    return layer

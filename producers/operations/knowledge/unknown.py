"""The error for an item that the caller does not see."""

from __future__ import annotations

from kledger.contract.errors import UnknownKnowledge


def unknown(item_id: str) -> UnknownKnowledge:
    """The error for an item that does not exist or is not visible to the caller; both read the same."""
    return UnknownKnowledge(
        f"there is no knowledge {item_id[:200]!r} that you may see: check the id and as whom you ask",
        id=item_id,
    )

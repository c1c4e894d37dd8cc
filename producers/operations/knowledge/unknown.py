"""The error for an item that the caller does not see."""

from __future__ import annotations

import re

from kledger.contract.errors import UnknownKnowledge

_OF_ANOTHER_KIND = re.compile(
    r"(recall|evolution|extraction|conflict|slim|bulk|summary)-(?:[0-9a-f]{16}|[0-9a-f]{32})", re.ASCII
)
"""Ids that the ledger makes for what is no item."""


def unknown(item_id: str) -> UnknownKnowledge:
    """The error for an item that does not exist or is not visible to the caller; both read the same."""
    return UnknownKnowledge(
        f"there is no knowledge {item_id[:200]!r} that you may see: {what_to_check(item_id)}",
        id=item_id,
    )


def what_to_check(item_id: str) -> str:
    """What to do about an id of no item, by its form alone, which says nothing of what is there."""
    if found := _OF_ANOTHER_KIND.fullmatch(item_id):
        article = "an" if found[1][0] in "aeiou" else "a"
        return f"this looks like the id of {article} {found[1]}, and that of an item is meant"
    return "check the id and as whom you ask"

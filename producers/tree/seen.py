"""Items that the caller sees, in pages: all of them, or those of given ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from kledger.contract.errors import Erased, Forbidden, UnknownKnowledge
from ledger.privacy.sealed import ERASED

if TYPE_CHECKING:
    from kledger import LedgerClient

PAGE = 1_000
OVERLAP = 100
SINGLE = 10
"""So many items are read one by one at the least where their page would be one of many: a page costs as much."""


def all_visible(ledger: LedgerClient, position: int) -> Iterator[Any]:
    """Every item visible to the caller, once, as of `position`: later saves do not shift pages.

    Items that are hidden meanwhile shift later pages. So pages overlap; one without an overlap has skipped items, and
    is read again from further back.
    """
    seen: set[str] = set()
    start = 0
    while True:
        answer = ledger.list(limit=PAGE, offset=start, status="all", as_of=position)
        page = answer["results"]
        if start and (not page or page[0]["id"] not in seen):
            start = max(0, start - PAGE)
            continue
        yield from (item for item in page if item["id"] not in seen)
        seen.update(item["id"] for item in page)
        if answer["next"] is None:
            return
        start += len(page) - max(1, min(OVERLAP, len(page) // 10))  # fewer than asked for, where they are large


def visible(ledger: LedgerClient, ids: Collection[str]) -> dict[str, Any]:
    """The items of these ids that the caller sees, read in pages unless they are few among many."""
    if not ids:
        return {}
    first = ledger.list(limit=1, status="all")
    pages = 1 + first["total"] // (PAGE - OVERLAP)
    if len(ids) < SINGLE * pages:
        return {each: item for each in ids if (item := _one(ledger, each)) is not None}
    wanted, found = set(ids), dict[str, Any]()
    for item in all_visible(ledger, first["position"]):
        if item["id"] in wanted:
            wanted.remove(item["id"])
            # A page shows an erased text as a text; a read alone says that it was erased.
            whole = _one(ledger, item["id"]) if item["content"] == ERASED else item
            if whole is not None:
                found[item["id"]] = whole
            if not wanted:
                break
    return found


def _one(ledger: LedgerClient, item_id: str) -> Any:
    try:
        return ledger.get(item_id)
    except (UnknownKnowledge, Forbidden, Erased):
        return None

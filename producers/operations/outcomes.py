"""Answers and refusals of several operations: what was saved, a page of a list, a change that others came before."""

from __future__ import annotations

from collections.abc import Sequence

from kledger.answers.parts import Saved
from kledger.contract.errors import VersionConflict
from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.page import Page

ATTEMPTS = 6
"""How often a change is tried while others write to the same item."""


def others_write_to(entity_id: str) -> VersionConflict:
    """The error for a change that others came before in each of its attempts."""
    return VersionConflict(f"others keep writing to {entity_id}: try again", id=entity_id)


def as_saved(id: str, position: int, version: int, event_id: str, duplicate: bool) -> Saved:
    """A save without warnings. `duplicate`: it was in the log already, and nothing was appended."""
    return Saved(id=id, position=position, version=version, event_id=event_id, duplicate=duplicate, warnings=[])


def listed(page: Page, position: int) -> JsonObject:
    """A page of a list, newest first, as ItemList and ResourceList of kledger.answers have it."""
    count = len(page.results)
    return {"results": page.results, "count": count, "total": page.total, "next": page.next, "position": position}


def part_of_list(found: Sequence[JsonObject], total: int, limit: int, offset: int, position: int) -> JsonObject:
    """A page of a list that goes on at an offset. Where it ended before its limit, as its entries are large, `next` is
    that offset: who counts by the limit would pass over what is between.
    """
    results = list(one_answer.fitting(found))
    following = offset + len(results)
    early = {"next": following} if results and len(results) < limit and following < total else {}
    return {"results": results, "count": len(results), "total": total, **early, "position": position}

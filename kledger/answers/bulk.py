"""Answers about bulks: changes of many items at once, and what became of each item."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Fault, Position, Time
from kledger.contract.words import BulkAction, BulkOutcome


class BulkResult(TypedDict):
    """What became of one item; `error` says why it was refused, or why there was nothing to do."""

    id: str
    task: Annotated[str | None, Field(description="Its task, shortened; null where the caller sees no such item")]
    outcome: BulkOutcome
    position: Annotated[int | None, Field(description="The log position of its event")]
    error: Fault | None


class BulkCounts(TypedDict):
    """How many items were changed (or would be), were so already, and were refused."""

    done: int
    unchanged: int
    refused: int


class Bulk(BulkCounts):
    """What a bulk did, or in a dry run would do; `results` in the order of the ids, `done` counts those of a dry run.

    `bulk_id` names it for its revert; it is null in a dry run, and where nothing was done.
    """

    bulk_id: str | None
    action: BulkAction
    dry_run: bool
    results: list[BulkResult]
    position: Position


class RevertedBulk(BulkCounts):
    """What became of each item of a bulk that was reverted: `done` where it is as before, `unchanged` where it was
    reverted already, `refused` where it was changed since, or may not be changed."""

    bulk_id: str
    action: BulkAction
    results: list[BulkResult]
    position: Position


class BulkItem(TypedDict):
    """An item that a bulk changed and that the caller sees, and whether it still is as the bulk left it."""

    id: str
    task: Annotated[str, Field(description="Its task, shortened")]
    position: int
    stands: bool


class ShownBulk(Answered):
    """A bulk: who asked for what, when, and the items that it changed."""

    bulk_id: str
    action: BulkAction
    by: str
    time: Time
    reason: str | None
    items: list[BulkItem]
    done: int
    standing: int
    position: Position

"""Events of statements that are held: said again although a person had retired or corrected them.

The entity id is the held statement's. Its owner is who would have saved it, the actor of every event about it; `by` says
who decided. What a person retired or corrected is a tombstone of its own (projections/views/tombstones/fold.py).
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import Document, Reason
from kledger.contract.knowledge import Id, Scopes, Version
from kledger.contract.scopes import Entity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, HELD, ITEM, OTHER, TASK, USER
from ledger.events.process import ProcessFact


class StatementHeld(ProcessFact):
    """A statement was not saved: `item_id` said the same, until a person retired or corrected it by the event at
    `retired_at`.

    `statement` is what would have been saved as `knowledge_id`: `saved`, the data of its knowledge.saved, with the
    `acl` and the `cases` that came with it. `scopes` are those of the save.
    """

    name: ClassVar[str] = "statement.held"
    personal: ClassVar[tuple[str, ...]] = ("statement",)
    example: ClassVar[Example] = Example(
        HELD,
        AUTHOR,
        item_id=ITEM,
        retired_at=41,
        knowledge_id=OTHER,
        scopes=[AUTHOR],
        statement={
            "saved": {"types": ["tool"], "task": TASK, "content": "`make db`", "scopes": [AUTHOR], "owner": AUTHOR}
        },
    )

    item_id: Id
    retired_at: Version
    knowledge_id: Id
    scopes: Scopes
    statement: Document


class StatementReleased(ProcessFact):
    """Somebody decided that the statement holds after all: it was saved as it was stated, in the same atomic batch."""

    name: ClassVar[str] = "statement.released"
    follows: ClassVar[tuple[str, ...]] = ("held",)
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(HELD, AUTHOR, by=USER, item_id=ITEM, reason="the container is back")

    by: Entity
    item_id: Id
    reason: Reason | None = None


class StatementDropped(ProcessFact):
    """Somebody decided that the statement is not to be saved; said again, it is not held once more."""

    name: ClassVar[str] = "statement.dropped"
    follows: ClassVar[tuple[str, ...]] = ("held",)
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(HELD, AUTHOR, by=USER, item_id=ITEM, reason="still wrong")

    by: Entity
    item_id: Id
    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (StatementHeld, StatementReleased, StatementDropped)

"""Events of statements that are held: said again although a person had retired or corrected them.

The entity id is the held statement's. Its owner is who would have saved it, and the actor of every event about it; `by`
says who decided. What a person retired or corrected is a tombstone (projections/views/tombstones/fold.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import TypeAdapter

from kledger.contract.bounds import Document, Reason
from kledger.contract.knowledge import AclEntry, Id, Scopes, Version
from kledger.contract.scope_fields import Entity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, HELD, ITEM, OTHER, TASK, USER
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved, KnowledgeShared
from ledger.events.process import ProcessFact

_ID: TypeAdapter[str] = TypeAdapter(Id)
_OWN = re.compile(r"(held-[0-9a-f]{16})-[0-9a-f]{16}")
"""The ids that `held_id` gives. Those of earlier versions, and a publisher's own, are of another form."""


def held_id(org: str, owner: str, about: Sequence[str]) -> str:
    """The id of a statement of this owner, whom it names: nobody else's statement can take it (`is_free_for`)."""
    return f"{_names(org, owner)}-{_short_hash(org, owner, *about)}"


def is_free_for(actor: str, org: str, entity_id: str) -> bool:
    """Whether this actor may hold a statement under this id: it is not of the form that names another owner."""
    own = _OWN.fullmatch(entity_id)
    return own is None or own.group(1) == _names(org, actor)


def _names(org: str, owner: str) -> str:
    return f"held-{_short_hash(org, owner)}"


def _short_hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class Parts(NamedTuple):
    """What was to be saved: the item with its id, its ACL where it has one, and the cases that came with it."""

    id: str
    saved: KnowledgeSaved
    shared: KnowledgeShared | None
    cases: list[KnowledgeRated]


class StatementHeld(ProcessFact):
    """A statement was not saved: `item_id` said the same, until a person retired or corrected it by the event at
    `retired_at`.

    `statement` is what would have been saved: `id`, which may be a hash of the words, and `saved`, the data of its
    knowledge.saved, with the `acl` and the `cases` that came with it. `scopes` are those of the save.
    """

    name: ClassVar[str] = "statement.held"
    personal: ClassVar[tuple[str, ...]] = ("statement",)
    example: ClassVar[Example] = Example(
        HELD,
        AUTHOR,
        item_id=ITEM,
        retired_at=41,
        scopes=[AUTHOR],
        statement={
            "id": OTHER,
            "saved": {"types": ["tool"], "task": TASK, "content": "`make db`", "scopes": [AUTHOR], "owner": AUTHOR},
        },
    )

    item_id: Id
    retired_at: Version
    scopes: Scopes
    statement: Document

    @classmethod
    def of(cls, facts: Sequence[Fact], knowledge_id: str, item_id: str, retired_at: int) -> Self:
        """Hold an item: the facts of its events, its save first. Raises ValidationError (it is nested too deeply)."""
        saved, *others = facts
        statement: dict[str, Any] = {"id": knowledge_id, "saved": saved.model_dump(mode="json")}
        for fact in others:
            if isinstance(fact, KnowledgeShared):
                statement["acl"] = fact.model_dump(mode="json")["acl"]
            elif isinstance(fact, KnowledgeRated):
                statement.setdefault("cases", []).append(fact.model_dump(mode="json", exclude={"through"}))
        scopes = statement["saved"]["scopes"]
        return cls(item_id=item_id, retired_at=retired_at, scopes=scopes, statement=statement)

    def parts(self) -> Parts:
        """What was to be saved. Raises ValueError where a publisher of its own said what no save may say."""
        knowledge_id = _ID.validate_python(self.statement.get("id"))
        if (fault := KnowledgeSaved.fault_of_id(knowledge_id)) is not None:
            raise ValueError(f"the id {knowledge_id!r} {fault}")
        saved = KnowledgeSaved.model_validate(self.statement.get("saved"))
        if saved.supersedes is not None:
            raise ValueError("only a single save supersedes another item")
        acl = [AclEntry.model_validate(each) for each in self.statement.get("acl") or ()]
        return Parts(
            knowledge_id,
            saved,
            KnowledgeShared(acl=acl) if acl else None,
            [KnowledgeRated.model_validate(each) for each in self.statement.get("cases") or ()],
        )


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

"""Which parts of a change a caller may make of an item as it is now, and as whom.

A part that is refused takes the others with it only where none is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kledger.contract.errors import IllegalState, LedgerError, NotAvailable, NotOwner, NotReader
from kledger.contract.scopes import Caller
from ledger.event import Fact
from ledger.events.evolution import EvolutionRequested
from ledger.events.knowledge import KnowledgeRevised
from ledger.readers import Judge, judge_of, readers
from producers.operations.desk import Desk, folded
from producers.operations.knowledge.over import refuse_over
from producers.operations.knowledge.sharing import revisable
from producers.operations.knowledge.unknown import unknown
from producers.operations.updated import WRITERS
from projections.views.knowledge import ask

_RENEWING = ("revised", "scored", "evolution")
"""Parts that begin the life of a short memory anew: one that is over takes none of them."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """The current item, the parts that are refused, and the actors of the others."""

    item: ask.Standing
    last: int
    """The last position of the item's history, where a part is for its writers."""
    writer: str
    judge: Judge | None
    refused: Mapping[str, LedgerError]

    def actor_of(self, part: str) -> str:
        if part in WRITERS or self.judge is None:
            return self.writer
        return self.judge.actor

    def as_stated(self, fact: Fact) -> Fact:
        """A fact with the scope through which its actor reads the item, where it has such a field."""
        if self.judge is None or not fact.added:
            return fact
        return fact.model_copy(update={"through": self.judge.through})


class _Parts:
    """The parts of a change that are not refused, and the errors of those that are."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self.left = dict(facts)
        self.refused: dict[str, LedgerError] = {}

    def left_of(self, parts: Iterable[str]) -> list[str]:
        return [part for part in parts if part in self.left]

    def revision(self) -> KnowledgeRevised | None:
        fact = self.left.get("revised")
        return fact if isinstance(fact, KnowledgeRevised) else None

    def refuse(self, parts: Iterable[str], error: LedgerError) -> None:
        """Raises the error where no part is left."""
        for part in parts:
            del self.left[part]
            self.refused[part] = error
        if not self.left:
            raise error


async def permitted(desk: Desk, caller: Caller, item_id: str, facts: Mapping[str, Fact]) -> Permitted:
    """Judge a change by its facts. Raises the error that refuses all of it."""
    parts = _Parts(facts)
    rewrite = facts.get("evolution")
    if isinstance(rewrite, EvolutionRequested):
        try:
            desk.models.named("evolve", rewrite.model)
        except NotAvailable as error:
            parts.refuse(["evolution"], error)
    item, last, writer = None, 0, ""
    if for_writers := parts.left_of(WRITERS):
        try:
            item, last, writer = await revisable(desk, caller, item_id, parts.revision())
        except NotOwner as error:
            parts.refuse(for_writers, error)
    if item is None:
        item = await _seen(desk, caller, item_id)
    if "evolution" in parts.left and item.status != "active":
        fault = f"{item_id} is {item.status}: only what is active is rewritten"
        parts.refuse(["evolution"], IllegalState(fault, id=item_id))
    if renewing := parts.left_of(_RENEWING):
        try:
            await refuse_over(desk, item)
        except IllegalState as error:
            parts.refuse(renewing, error)
    judges = any(part not in WRITERS for part in parts.left)
    judge = _judge(caller, item, parts.revision()) if judges else None
    return Permitted(item, last, writer, judge, parts.refused)


async def _seen(desk: Desk, caller: Caller, item_id: str) -> ask.Standing:
    """An item visible to the caller; waits for it where it was written a moment ago."""
    item = await desk.view.ask(ask.standing, desk.org, caller, item_id)
    if item is None:
        await folded(desk, "knowledge", item_id)
        item = await desk.view.ask(ask.standing, desk.org, caller, item_id)
    if item is None or not item.visible:
        raise unknown(item_id)
    return item


def _judge(caller: Caller, item: ask.Standing, revision: KnowledgeRevised | None) -> Judge:
    """The judge of the item: the caller has to read it now and also after `revision`, which is applied first."""
    if judge_of(caller, readers(item.scopes, item.shared_with, item.owner)) is None:
        raise unknown(item.id)  # the operator reads it by its id alone, and cannot judge it
    scopes, owner = (None, None) if revision is None else (revision.scopes, revision.owner)
    judge = judge_of(caller, readers(scopes or item.scopes, item.shared_with, owner or item.owner))
    if judge is None:
        raise NotReader(
            f"you state anew who reads {item.id}, do not read it any more then, and judge it in the same request: "
            "judge it first, in a request of its own",
            id=item.id,
        )
    return judge

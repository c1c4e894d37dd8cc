"""One import in progress: the saves that are open, and what became of the other payloads, by their index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from kledger.answers.knowledge import HeldFor, SavedOne
from kledger.answers.parts import Fault
from kledger.contract.errors import LedgerError
from kledger.contract.words import ImportOutcome
from kledger.requests.resources import ResourceRequest
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved, KnowledgeShared
from producers.operations.first_cases import with_its_cases
from producers.operations.knowledge.acl import shared_with_it
from producers.operations.knowledge.holding import HeldBack
from producers.operations.knowledge.saving import exists
from producers.operations.updated import error_body


class OpenSave(NamedTuple):
    """A payload that is to be saved, with its ACL and first cases; `proposed`: it then waits for a coordinator."""

    event: NewEvent
    fact: KnowledgeSaved
    shared: KnowledgeShared | None
    cases: Sequence[KnowledgeRated]
    proposed: bool

    @property
    def item_id(self) -> str:
        return self.event.entity_id

    def events(self, expects: int = 0) -> list[NewEvent]:
        """The events of the payload, to be appended atomically; `expects` is the item's position before them."""
        event = replace(self.event, expects=expects) if expects else self.event
        return [event, *shared_with_it(event, self.shared), *with_its_cases(event, self.cases)]


@dataclass(slots=True)
class ImportBatch:
    """Every payload is open, has its result, or repeats an earlier one."""

    open: dict[int, OpenSave] = field(default_factory=dict)
    results: dict[int, SavedOne] = field(default_factory=dict)
    repeated: dict[int, int] = field(default_factory=dict)
    """The index of the earlier payload."""
    resources: dict[int, list[ResourceRequest]] = field(default_factory=dict)
    """Those that come with a payload."""
    _first: dict[str, int] = field(default_factory=dict)
    """The index of the first payload of each item."""

    def add(self, index: int, save: OpenSave) -> None:
        """Raises KnowledgeExists where an earlier payload states something else of the same item."""
        first = self._first.setdefault(save.item_id, index)
        if first == index:
            self.open[index] = save
        elif self.open[first].event.id == save.event.id:
            self.repeated[index] = first
        else:
            raise exists(save.item_id)

    def refuse(self, index: int, item_id: str | None, error: LedgerError) -> None:
        self._settle(index, item_id, "refused", None, error_body(error))
        self.open.pop(index, None)

    def hold(self, index: int, held: HeldBack) -> None:
        """The outcome of a payload that a person had retired or corrected. Its resources are not kept."""
        self.resources.pop(index, None)
        if held.error is not None:
            self.refuse(index, self.open[index].item_id, held.error)
            return
        self._settle(index, self.open.pop(index).item_id, "held", held.position)
        self.results[index]["held"] = HeldFor(id=held.id, item_id=held.item_id)

    def settle(self, index: int, outcome: Literal["saved", "unchanged"], position: int) -> None:
        save = self.open.pop(index)
        self._settle(index, save.item_id, outcome, position)
        if outcome == "saved" and save.proposed:
            self.results[index]["status"] = "proposed"

    def settle_repeated(self) -> None:
        """The outcomes of the payloads that repeat an earlier one."""
        for index, first in self.repeated.items():
            before = self.results[first]
            outcome = "unchanged" if before["outcome"] == "saved" else before["outcome"]
            self._settle(index, before["id"], outcome, before["position"], before["error"])
            if "held" in before:
                self.results[index]["held"] = before["held"]
            if "status" in before:
                self.results[index]["status"] = before["status"]

    def _settle(
        self, index: int, item_id: str | None, outcome: ImportOutcome, position: int | None, error: Fault | None = None
    ) -> None:
        self.results[index] = SavedOne(
            index=index, id=item_id, outcome=outcome, position=position, error=error, warnings=[]
        )

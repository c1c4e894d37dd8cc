"""What is told of a change of one item: where each of its events is kept, and what became of each field (mission K3).

A change has up to five parts, which are kept in this order: the fields stated anew, the score, the two verdicts, and
the request to have the item rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeRevised
from producers.requests.knowledge import UpdateRequest

PARTS: dict[str, Sequence[str]] = {
    "revised": KnowledgeRevised.at_least_one,
    "scored": ("update_score",),
    "helpful": ("add_helpful_case",),
    "harmful": ("add_harmful_case",),
    "evolution": ("evolve_feedback",),
}
"""The parts of a change, each with the fields of a request that make it."""
WRITERS = ("revised", "evolution")
"""What the owner states of an item, and whom the ACL lets write."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One event of a change."""

    type: str
    event_id: str
    position: int


@dataclass(frozen=True, slots=True)
class Updated:
    """Where the events of a change are kept; `position` is the last one's; `warnings` as of a save.

    `fields` says of each field of the request whether it was kept, and at which position, or why not.
    """

    id: str
    position: int
    events: list[Kept]
    fields: dict[str, JsonObject]
    warnings: list[JsonObject] = field(default_factory=list, kw_only=True)


@dataclass(frozen=True, slots=True)
class Evolving(Updated):
    """The same of a change that a model was to make as well: what came of it, `done` when nothing more will."""

    evolution: JsonObject
    done: bool


def error_body(error: LedgerError) -> JsonObject:
    """An error as every door tells it."""
    return {"code": error.code, "message": error.message, "details": error.details}


def updated_by(
    item_id: str, payload: UpdateRequest, kept: Mapping[str, Kept], refused: Mapping[str, LedgerError]
) -> Updated:
    """The answer of a change, by the parts that are kept and those that are not."""
    fields: dict[str, JsonObject] = {}
    for part, names in PARTS.items():
        if part in kept:
            told: JsonObject = {"kept": True, "position": kept[part].position}
        elif part in refused:
            told = {"kept": False, "error": error_body(refused[part])}
        else:
            continue
        fields |= {name: told for name in names if getattr(payload, name) is not None}
    events = [kept[part] for part in PARTS if part in kept]
    return Updated(item_id, max(event.position for event in events), events, fields)

"""Answer to a change of one item: the position of each of its events, and the outcome of each field.

A change has up to five parts, which are appended in this order: the revised fields, the score, the two verdicts, and
the request to have the item rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kledger.contract.errors import LedgerError
from kledger.requests.knowledge import UpdateRequest
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeRevised

PARTS: dict[str, Sequence[str]] = {
    "revised": KnowledgeRevised.at_least_one,
    "scored": ("update_score",),
    "helpful": ("add_helpful_case",),
    "harmful": ("add_harmful_case",),
    "evolution": ("evolve_feedback",),
}
"""The parts of a change, each with its fields in the request."""
WRITERS = ("revised", "evolution")
"""Parts that only the owner, or an entity with write permission in the ACL, may publish."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One event of a change."""

    type: str
    event_id: str
    position: int


@dataclass(frozen=True, slots=True)
class Updated:
    """The events of a change; `position` is that of the last one; `warnings` as in a save.

    `fields` has for each field of the request whether it was kept, and at which position, or why not.
    """

    id: str
    position: int
    events: list[Kept]
    fields: dict[str, JsonObject]
    warnings: list[JsonObject] = field(default_factory=list, kw_only=True)


@dataclass(frozen=True, slots=True)
class Evolving(Updated):
    """The answer to a change with a rewrite by a model: its state, and `done` when nothing more will follow."""

    evolution: JsonObject
    done: bool


def error_body(error: LedgerError) -> JsonObject:
    """An error as every interface reports it."""
    return {"code": error.code, "message": error.message, "details": error.details}


def updated_by(
    item_id: str, payload: UpdateRequest, kept: Mapping[str, Kept], refused: Mapping[str, LedgerError]
) -> Updated:
    """The answer to a change, from its kept and its refused parts."""
    fields: dict[str, JsonObject] = {}
    for part, names in PARTS.items():
        if part in kept:
            outcome: JsonObject = {"kept": True, "position": kept[part].position}
        elif part in refused:
            outcome = {"kept": False, "error": error_body(refused[part])}
        else:
            continue
        fields |= {name: outcome for name in names if getattr(payload, name) is not None}
    events = [kept[part] for part in PARTS if part in kept]
    return Updated(item_id, max(event.position for event in events), events, fields)

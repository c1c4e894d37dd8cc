"""Answer to a change of one item: the position of each of its events, and the outcome of each field.

A change has up to five parts, which are appended in this order: the revised fields, the score, the two verdicts, and
the request to have the item rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from kledger.answers.knowledge import Changed, KeptEvent, KeptField
from kledger.answers.parts import Fault, JsonDocument
from kledger.contract.errors import LedgerError
from kledger.requests.knowledge import UpdateRequest
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


def error_body(error: LedgerError) -> Fault:
    """An error as every interface reports it."""
    return Fault(code=error.code, message=error.message, details=cast(JsonDocument, error.details))


def updated_by(
    item_id: str, payload: UpdateRequest, kept: Mapping[str, KeptEvent], refused: Mapping[str, LedgerError]
) -> Changed:
    """The answer to a change, from its kept and its refused parts."""
    fields: dict[str, KeptField] = {}
    for part, names in PARTS.items():
        if part in kept:
            outcome: KeptField = {"kept": True, "position": kept[part]["position"]}
        elif part in refused:
            outcome = {"kept": False, "error": error_body(refused[part])}
        else:
            continue
        fields |= {name: outcome for name in names if getattr(payload, name) is not None}
    events = [kept[part] for part in PARTS if part in kept]
    last = max(event["position"] for event in events)
    return Changed(id=item_id, position=last, events=events, fields=fields, warnings=[])

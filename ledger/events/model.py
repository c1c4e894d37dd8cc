"""Event with the cost of a model call, published by the node alone.

The stages of a process are published in the requester's name, so any publisher could publish one with any usage. This
event is published as `user:local`, which no publisher may use. The entity id is the call's key.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.knowledge import Id
from kledger.contract.scope_fields import Entity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, EVOLUTION
from ledger.events.process import Code
from ledger.events.usage import EXAMPLE_USAGE, Usage


class ModelUsed(Fact):
    """A node asked its model for a process (`kind`: evolution, extraction, slim) of `asked_by`; this was billed."""

    name: ClassVar[str] = "model.used"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        f"{EVOLUTION}:evolve", "user:local", kind="evolution", process=EVOLUTION, asked_by=AUTHOR, usage=EXAMPLE_USAGE
    )

    kind: Code
    process: Id
    asked_by: Entity
    usage: Usage


FACTS: tuple[type[Fact], ...] = (ModelUsed,)

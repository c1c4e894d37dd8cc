"""What did a node's model cost (mission R6)? Said by the node alone, apart from what the model was asked for.

A process is its asker's, and every stage of it is stated in the asker's name: whoever may publish may state one, with
any usage. This event is stated as `user:local`, as whom no publisher may speak. The entity id is the call's key.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.scopes import Entity
from ledger.event import Fact
from ledger.events.knowledge import Id
from ledger.events.process import Code
from ledger.events.usage import Usage


class ModelUsed(Fact):
    """A node asked its model for a process (`kind`: evolution, extraction, slim) of `asked_by`; this was billed."""

    name: ClassVar[str] = "model.used"

    kind: Code
    process: Id
    asked_by: Entity
    usage: Usage


FACTS: tuple[type[Fact], ...] = (ModelUsed,)

"""One walk of a row through a door: the door for whoever is named, and a word that nobody else uses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from uuid import uuid4

from tests.knowhub.doors import DOORS, Door, Name, Sdk
from tests.openai_chat import ChatEndpoint


@dataclass
class Walk:
    """A row, walked through one door of a node."""

    url: str
    name: Name
    open: ExitStack
    chat: ChatEndpoint  # what the node's models say
    word: str = field(default_factory=lambda: f"w{uuid4().hex[:12]}")

    def door(self, **who: str) -> Door:
        """The door, for somebody whom no other walk knows."""
        return self.door_of(**{kind: self.own(name) for kind, name in who.items()})

    def own(self, name: str) -> str:
        """An id of this walk."""
        return f"{name}-{self.word}"

    def door_of(self, also: Sequence[str] = (), **who: str) -> Door:
        """The door, for exactly these; nobody is the operator."""
        door = DOORS[self.name](self.url, who, also)
        if isinstance(door, Sdk):
            self.open.callback(door.ledger.close)
        return door

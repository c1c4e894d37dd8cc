"""One walk of a row through a door: the door for whoever is named, and a word that nobody else uses."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from uuid import uuid4

from tests.knowhub.doors import DOORS, Door, Name, Sdk


@dataclass
class Walk:
    """A row, walked through one door of a node."""

    url: str
    name: Name
    open: ExitStack
    word: str = field(default_factory=lambda: f"w{uuid4().hex[:12]}")

    def door(self, **who: str) -> Door:
        """The door, for somebody whom no other walk knows."""
        return self.door_of(**{kind: self.own(name) for kind, name in who.items()})

    def own(self, name: str) -> str:
        """An id of this walk."""
        return f"{name}-{self.word}"

    def door_of(self, **who: str) -> Door:
        """The door, for exactly these."""
        door = DOORS[self.name](self.url, who)
        if isinstance(door, Sdk):
            self.open.callback(door.ledger.close)
        return door

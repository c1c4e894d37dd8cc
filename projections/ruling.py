"""What is judged, and what the judgement says: the words that the gate and the rules of each entity share."""

from __future__ import annotations

from typing import NamedTuple


class Candidate(NamedTuple):
    """One event as the gate sees it; `helpful` and `harmful` are the cases that it adds to its item."""

    position: int
    stored_us: int
    type: str
    event_id: str
    actor: str
    org: str
    entity_id: str
    owner: str | None
    expected_version: int | None
    helpful: int
    harmful: int


class Ruling(NamedTuple):
    """What the rules say: refused with a code and a reason, or accepted with the version it makes.

    `version` and `closes` are of the entity's version history: the number of the version that this event
    makes (None when it makes none), and the position of the version that it ends.
    """

    code: str | None = None
    reason: str | None = None
    version: int | None = None
    closes: int | None = None


ACCEPTED = Ruling()

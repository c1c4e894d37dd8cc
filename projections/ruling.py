"""What is judged, and what the judgement says: the words that the gate and the rules of each entity share."""

from __future__ import annotations

from typing import NamedTuple


class Candidate(NamedTuple):
    """One event as the gate sees it.

    `about` is `{entity}/{entity_id}`; `stated_id` is the entity id as the data itself states it, where it does;
    `plain` says that the subject names the event letter by letter, `seen` that its id was accepted before.
    """

    position: int
    subject: str
    type: str
    event_id: str
    actor: str
    about: str
    owner: str | None
    stated_id: str | None
    expected_version: int | None
    plain: bool
    seen: bool


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

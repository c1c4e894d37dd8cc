"""Degraded answers: which parts of a node an answer could not use.

An answer with a `degraded` part is true as far as it goes: it was made from the state at `position` of that part,
or without the part where the position is null. A complete answer has an empty list.
"""

from __future__ import annotations

from dataclasses import dataclass

from kledger.contract.words import ServingPart


@dataclass(frozen=True, slots=True)
class Degraded:
    """One part of the node that was missing or stale for an answer.

    `reason` is a sentence with the cause and the remedy; `position` is the log position that the part has reached.
    """

    part: ServingPart
    reason: str
    position: int | None = None

"""What does an answer lack? One shape for every part of a node that could not give all that it has.

An answer with a `degraded` part is true as far as it goes: it was made out of the state at `position` of that part,
or without the part where the position is null. An answer that lacks nothing has an empty list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["view", "vectors", "embeddings"]


@dataclass(frozen=True, slots=True)
class Degraded:
    """One part of the node that an answer could not use, or not up to date.

    `reason` is a sentence that says what happened and what to do; `position` is the log position that the part knows.
    """

    part: Part
    reason: str
    position: int | None = None

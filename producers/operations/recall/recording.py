"""Whose reads are recorded? KLEDGER_RECORD_RECALLS: all (the default), agents, none.

What was served is an event of its own, about 4 KB a search: reading makes the log grow. `agents` records what callers
were served that name an agent, whose verdicts a recall is joined with; `none` records no search and no start. A
request turns its own recall off with `record=false`, and cannot turn it on. A focus is a write, and keeps its recall.
"""

from __future__ import annotations

import os
from typing import Literal, get_args

from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import Caller

Recorded = Literal["all", "agents", "none"]
VARIABLE = "KLEDGER_RECORD_RECALLS"


def recorded_from_environment() -> Recorded:
    """The setting of this node. Raises InvalidPayload for a word that is none of the three."""
    stated = os.environ.get(VARIABLE, "").strip().lower() or "all"
    for known in get_args(Recorded):
        if stated == known:
            recorded: Recorded = known
            return recorded
    raise InvalidPayload(
        f"{VARIABLE}={stated[:40]} is no setting: write all, agents or none",
        errors=[{"field": VARIABLE, "reason": "is not all, agents or none"}],
    )


def is_recorded(recorded: Recorded, caller: Caller) -> bool:
    """Whether what this caller is served is recorded."""
    return recorded == "all" or (recorded == "agents" and caller.agent is not None)

"""Recording of recalls: KLEDGER_RECORD_RECALLS is all (the default), agents or none.

Each served recall is an event of about 4 KB, so that reads make the log grow. `agents` records recalls of callers that
name an agent, whose verdicts are joined with them; `none` records no search and no startup. A request can turn its own
recall off with `record=false`, but not on. A focus is a write, and always records its recall.
"""

from __future__ import annotations

import os
from typing import Literal, get_args

from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import Caller

Recorded = Literal["all", "agents", "none"]
VARIABLE = "KLEDGER_RECORD_RECALLS"


def recorded_from_environment() -> Recorded:
    """The setting of this node. Raises InvalidPayload for any other value."""
    value = os.environ.get(VARIABLE, "").strip().lower() or "all"
    for known in get_args(Recorded):
        if value == known:
            recorded: Recorded = known
            return recorded
    raise InvalidPayload(
        f"{VARIABLE}={value[:40]} is no setting: write all, agents or none",
        errors=[{"field": VARIABLE, "reason": "is not all, agents or none"}],
    )


def is_recorded(recorded: Recorded, caller: Caller) -> bool:
    """Whether recalls of this caller are recorded."""
    return recorded == "all" or (recorded == "agents" and caller.agent is not None)

"""Recording of recalls: KLEDGER_RECORD_RECALLS is all (the default), agents or none.

Each served recall is an event, so that reads make the log grow. `agents` records recalls of callers that
name an agent, whose verdicts are joined with them; `none` records no search and no startup. A request can turn its own
recall off with `record=false`, but not on. A focus is a write, and always records its recall.

KLEDGER_RECALL_DETAIL_DAYS is for how many days the views keep what a recall served in detail, without it for ever
(projections/views/recalls/retention.py). The log keeps all.
"""

from __future__ import annotations

import os
import re
from typing import Literal, get_args

from kledger.contract.errors import InvalidPayload, PastRetention
from kledger.contract.scopes import Caller
from projections.views.recalls.retention import MOST_DAYS

Recorded = Literal["all", "agents", "none"]
VARIABLE = "KLEDGER_RECORD_RECALLS"
DAYS = "KLEDGER_RECALL_DETAIL_DAYS"


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


def detail_days_from_environment() -> int | None:
    """For how many days the views keep the detail of recalls; None for ever. Raises InvalidPayload."""
    value = os.environ.get(DAYS, "").strip()
    if not value:
        return None
    if re.fullmatch("[0-9]{1,9}", value) is None or not 1 <= int(value) <= MOST_DAYS:
        raise InvalidPayload(
            f"{DAYS}={value[:40]} is no setting: write a number of days, 1 to {MOST_DAYS:,}, or nothing to keep all",
            errors=[{"field": DAYS, "reason": f"is not a number from 1 to {MOST_DAYS}"}],
        )
    return int(value)


def is_recorded(recorded: Recorded, caller: Caller) -> bool:
    """Whether recalls of this caller are recorded."""
    return recorded == "all" or (recorded == "agents" and caller.agent is not None)


def past_retention(what: str, **details: int | str) -> PastRetention:
    """The error for detail that the views keep no longer: `what`, of which `details` say more."""
    return PastRetention(
        f"{what} is past its retention here ({DAYS}); the log has it: kledger replay --into FILE "
        "folds it with all detail, for DuckDB to read",
        **details,
    )

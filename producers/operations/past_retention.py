"""The error for the detail of recalls that the views keep no longer."""

from __future__ import annotations

from kledger.contract.errors import PastRetention
from producers.operations.recording import DAYS


def past_retention(what: str, **details: int | str) -> PastRetention:
    """`what` is past its retention; `details` say which."""
    return PastRetention(
        f"{what} is past its retention here ({DAYS}); the log has it: kledger replay --into FILE "
        "folds it with all detail, for DuckDB to read",
        **details,
    )

"""An event that no fold can take: whoever carries the marker makes DuckDB fail, late in its batch's transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from projections.engine import batch

MARKER = "poison-for-a-fold"


def poisoned(named: Any, while_there: Path | None = None) -> Any:
    """`projections.engine.withheld.named`, the last step of a fold, which fails where an event carries the marker."""

    def fails(refusals: Any, events: Any, parked: Any) -> Any:
        active = while_there is None or while_there.exists()
        if active and any(MARKER.encode() in event.body and event.position not in parked for event in events):
            with duckdb.connect() as con:
                con.execute("SELECT 'secret words'::INTEGER")
        return named(refusals, events, parked)

    return fails


def install(while_there: str) -> None:
    """Make every fold of this process fail on the marker, as long as this file is there."""
    batch.named = poisoned(batch.named, Path(while_there))  # type: ignore[attr-defined]  # it is imported there by name


def install_here() -> None:
    """The same for a process that replays what others folded: once, for good."""
    if not hasattr(batch.named, "poisons"):  # type: ignore[attr-defined]  # as above
        batch.named = poisoned(batch.named)  # type: ignore[attr-defined]
        batch.named.poisons = True  # type: ignore[attr-defined]

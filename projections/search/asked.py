"""What a search asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from kledger.answers.explained import SearchExplained
from kledger.answers.parts import Degraded
from kledger.contract.words import RecallLayer, RecallPath
from projections.vectors.store.port import Only

# Candidates of each path; at least twice as many as results. Measured with 20, 30 and 50: the same quality.
LEAST_CANDIDATES = 20
RECENT = 5

Readable = Callable[[list[str]], Awaitable[set[str]]]
"""Returns those of the given item ids that the caller may read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A search. `as_of` is a log position; `lacking` is called where the result is degraded.

    `moment` is what a clock says then: how old an item is and whether a memory is over go by it. Without one it is the
    time that the log kept for the position, and for the present now.

    With `since`, a log position, the RECENT best versions made after it are candidates too. `layers` reads these alone.
    What matches less than `min_match` is left out, and all of it where nothing matches as much as `sure`.
    `explain` is called with why the results are what they are. Each path has `candidates` at least: where `readable`
    leaves many out, more are needed. `only` names columns of an item (owner, visibility); `versions` are the
    positions that made the only versions which may be found.
    """

    org: str
    query: str
    visible: Sequence[str]
    top_k: int = 5
    min_score: int = 3
    types: Sequence[str] | None = None
    as_of: int | None = None
    moment: datetime | None = None
    paths: RecallPath = "fused"
    readable: Readable | None = None
    lacking: Callable[[Degraded], None] | None = None
    only: Only | None = None
    versions: Sequence[int] | None = None
    min_match: float = 0.0
    sure: float = 0.0
    since: int | None = None
    layers: Collection[RecallLayer] | None = None
    explain: Callable[[SearchExplained], None] | None = None
    candidates: int = LEAST_CANDIDATES

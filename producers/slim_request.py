"""What may be asked of a slim (mission K5)? The body of source 001, and what is beside it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ledger.events.knowledge import Scopes
from ledger.events.process import ModelName
from ledger.scopes import Entity
from producers.requests import Asked
from projections.similar.groups import THRESHOLD


class SlimRequest(Asked):
    """Merge the items of one owner that say the same; without a model the best of each group is kept as it is."""

    model: ModelName | None = None
    owner: Entity | None = None
    scopes: Scopes | None = None
    threshold: Annotated[float, Field(ge=0.5, le=1.0)] = THRESHOLD
    dry_run: bool = False
    wait: Annotated[float, Field(ge=0, le=300.0)] | None = None

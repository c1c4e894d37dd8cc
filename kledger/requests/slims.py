"""Request bodies of slims."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.bounds import THRESHOLD, ModelName, Threshold
from kledger.contract.knowledge import Scopes
from kledger.requests.body import Asked
from kledger.requests.owners import Owner


class SlimRequest(Asked):
    """Merge the items of one owner that say the same; without a model the best of each group is kept as it is."""

    model: ModelName | None = None
    owner: Owner | None = None
    scopes: Scopes | None = None
    threshold: Threshold = THRESHOLD
    dry_run: bool = False
    wait: Annotated[float, Field(ge=0, le=300.0)] | None = None

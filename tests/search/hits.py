"""What the vector process finds, of an answer of it."""

from __future__ import annotations

from typing import Any

from projections.vectors.client import VectorClient
from projections.vectors.store.port import Found, SearchOptions


async def hits(client: VectorClient, query: str, visible: list[str], **asked: Any) -> list[Found]:
    """What one search finds."""
    paths = asked.pop("paths", "fused")
    return (await client.answer(query, SearchOptions(visible, **asked), paths)).found

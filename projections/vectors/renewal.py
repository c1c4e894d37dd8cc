"""Renewal of the vectors: builds them again, so that no byte of erased texts is left in any file, while searches go on.

A second vector process fills a new directory from the view; when it has caught up, it replaces the first one, whose
directory is removed. A Qdrant server manages its own files: there the points are only erased.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from projections.engine.view import View
from projections.vectors.changes import changes_after
from projections.vectors.client import VectorClient
from projections.vectors.errors import EmbeddingFailed
from projections.vectors.feed import CHANGES, VectorFeed
from projections.vectors.generations import discard_others, next_directory, point_to
from projections.vectors.on_disk import carry_mark, discard_unused


async def renew(feed: VectorFeed, view: View, root: Path, erased: Sequence[str]) -> None:
    """Replace the vectors by ones built from the view alone. `erased` are the ids of erased items.

    Raises VectorProcessGone, VectorStoreFailed; then the vectors are unchanged. Raises ServiceFailed where those of
    before are still written into: then they are there beside the others.
    """
    if feed.settings.directory is None or feed.settings.qdrant_url is not None:
        async with feed.turn:
            await feed.client.erase(erased)
            await asyncio.to_thread(discard_unused, feed.settings)
            feed.from_before = False
        async with feed.backlog.turn:  # what was being embedded is stored before its caller looks what is
            return
    directory = next_directory(root)
    settings = replace(feed.settings, directory=str(directory))
    client = await VectorClient.start(settings)
    try:
        applied = await _filled(client, feed, view, 0)
        if settings.embedding is not None:
            # Most embeddings are in the store; those that the endpoint refuses now stay in the backlog.
            with contextlib.suppress(EmbeddingFailed):
                while await feed.backlog.step(client):
                    pass
        async with feed.turn:  # the changes since then, while the old process gets no more
            applied = await _filled(client, feed, view, applied)
            await client.flush()
            carry_mark(feed.settings, settings)  # before the pointer: a crash behind it would lose the mark
            point_to(root, directory)
            await feed.replace(client, settings, applied)
    except BaseException:
        if feed.settings is not settings:
            await client.close()
        raise
    await asyncio.to_thread(discard_others, root, directory)


async def mended(feed: VectorFeed, view: View, root: Path, found: dict[str, Any]) -> dict[str, Any]:
    """Rebuild the vectors unless they equal the view; `found` is the result of soundness.py:sound."""
    if found["equal"]:
        return {**found, "made_anew": False}
    if feed.settings.directory is None or feed.settings.qdrant_url is not None:
        feed.will_begin_anew()
        await feed.begin_anew()
    else:
        await renew(feed, view, root, [])
    return {**found, "made_anew": True}


async def _filled(client: VectorClient, feed: VectorFeed, view: View, applied: int) -> int:
    while applied < view.position:
        changes, upto = await view.ask(changes_after, feed.org, applied, CHANGES)
        applied = await client.index(changes, after=applied, checkpoint=upto)
    return applied

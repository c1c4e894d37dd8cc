"""Files of the vectors as a start finds them: how far they go, and whether they are to be made anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import structlog

from projections.vectors.embedding.hashed import DIMENSIONS, MODEL
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.store.directories import model_slug, read_checkpoint, replace_file
from projections.vectors.wire import Settings

log = structlog.get_logger(__name__)


def model_of(settings: Settings) -> tuple[str, int]:
    """The model that makes the vectors, and their size."""
    embedding = settings.embedding
    return (MODEL, DIMENSIONS) if embedding is None else (embedding.model, embedding.dimensions)


def applied_before(settings: Settings) -> int:
    """The checkpoint of Edge's files; 0 where there are none, and for a Qdrant server. Raises VectorStoreFailed."""
    if settings.qdrant_url is not None or settings.directory is None:
        return 0
    return read_checkpoint(_folder(settings))


def keep_within(settings: Settings, head: int) -> None:
    """Remove vectors that go beyond a log that ends at `head`, or do not say how far they go.

    What comes at their positions would be taken for applied.
    """
    try:
        applied = applied_before(settings)
    except VectorStoreFailed as error:
        _discard(settings, reason=error.message)
    else:
        if applied > head:
            _discard(settings, reason="they go beyond the log", applied=applied, head=head)
        elif head and not applied:  # as after an upgrade
            log.info("the vectors are made from the log", head=head)


def mark_for_reset(settings: Settings) -> None:
    """Mark the vectors for a reset; the mark survives a crash."""
    mark = mark_of(settings)
    mark.parent.mkdir(parents=True, exist_ok=True)
    replace_file(mark, "")


def carry_mark(settings: Settings, other: Settings) -> None:
    """Mark other vectors for a reset as well, where these are: a start may find the others in their place."""
    if mark_of(settings).exists():
        mark_for_reset(other)


def mark_of(settings: Settings) -> Path:
    """The file that marks the vectors for a reset."""
    return Path(settings.directory or ".") / "begin-anew"


def _discard(settings: Settings, **about: object) -> None:
    log.warning("the vectors are made anew", **about)
    mark_for_reset(settings)  # also where this start is cut
    shutil.rmtree(_folder(settings))


def _folder(settings: Settings) -> Path:
    """Where Edge's files of the model are."""
    return Path(settings.directory or ".") / model_slug(*model_of(settings))

"""Files of the vectors as a start finds them: how far they go, and whether they are to be made anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import structlog

from projections.vectors.embedding.hashed import DIMENSIONS, MODEL
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.generations import is_generation
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


def others(settings: Settings) -> list[Path]:
    """The folders that are not in use: of models, or of Edge itself, that were set before and may be again."""
    root = Path(settings.directory or ".")
    if settings.directory is None or not root.is_dir():
        return []
    own = _folder(settings) if settings.qdrant_url is None else None
    return [path for path in root.iterdir() if path != own and path.is_dir() and not is_generation(path)]


def are_any(settings: Settings) -> bool:
    """Whether there are vectors of Edge of any model, which say something of what the view was then."""
    return bool(applied_before(settings) or others(settings))


def discard_unused(settings: Settings) -> None:
    """Remove the folders that are not in use: nobody feeds them anew, and persons would not be erased in them."""
    for folder in others(settings):
        shutil.rmtree(folder)


def keep_within(settings: Settings, head: int) -> None:
    """Remove vectors that go beyond a log that ends at `head`, or do not say how far they go.

    What comes at their positions would be taken for applied. Those that are not in use are compared now: the log may be
    longer once their model is set again.
    """
    for folder in others(settings):
        if not _goes_within(folder, head):
            log.warning("vectors that are not in use are removed: they go beyond the log", folder=folder.name)
            shutil.rmtree(folder)
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


def _goes_within(folder: Path, head: int) -> bool:
    try:
        return read_checkpoint(folder) <= head
    except VectorStoreFailed:
        return False


def _discard(settings: Settings, **about: object) -> None:
    log.warning("the vectors are made anew", **about)
    mark_for_reset(settings)  # also where this start is cut
    shutil.rmtree(_folder(settings))


def _folder(settings: Settings) -> Path:
    """Where Edge's files of the model are."""
    return Path(settings.directory or ".") / model_slug(*model_of(settings))

"""Where on disk does each model's shard lie, and how far has it come?

    <directory>/<model-slug>/checkpoint   the position up to which the shard is complete
    <directory>/<model-slug>/shard/       Qdrant Edge's own files

Another model has a folder of its own, and the one before keeps its shard. The checkpoint is replaced as a whole:
after a crash either the old or the new content is there.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from projections.vectors.errors import VectorStoreFailed


def model_slug(model: str, dimensions: int) -> str:
    """A folder name for a model: readable, and different for different models."""
    readable = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:40]
    return f"{readable}-{dimensions}-{hashlib.sha256(f'{model}:{dimensions}'.encode()).hexdigest()[:8]}"


def read_checkpoint(folder: Path) -> int:
    """The position in this model's folder, 0 when it has none."""
    path = folder / "checkpoint"
    if not path.exists():
        return 0
    text = path.read_text()
    if not text.strip().isdigit():
        raise VectorStoreFailed(f"{path} does not hold a position; delete {folder} to have it built anew")
    return int(text)


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a crash leaves either the old or the new content, and the new one is durable."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

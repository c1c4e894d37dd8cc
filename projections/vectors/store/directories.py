"""Directories of the shards, one for each model, with their checkpoints.

    <directory>/<model-slug>/checkpoint   the position up to which the shard is complete
    <directory>/<model-slug>/shard/       Qdrant Edge's own files

Each model has its own folder, so that changing the model keeps the shard of the previous one. The checkpoint is
replaced atomically: after a crash it has either the old or the new content.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from ledger.runtime.synced import sync
from projections.vectors.errors import VectorStoreFailed

FORMAT = 14
"""Format of the points; another number is another folder, which is fed from the start.

1: the engine weights terms by their frequency among all documents. 2: integer weights, and the frequencies among what
the caller sees. 3: with the visibility label as a filter. 4: with items whose text is literally `[erased]`.
5: in Edge a dense vector has a byte for each dimension. 6: and half a byte beside it. 7: without what an apostrophe
shortens. 8: without accents, separators of numbers and irregular forms; a unit and a compound are words of their own.
9: with the parts of names such as RTX4090. 10: traditional Chinese in its simplified form.
11: compounds such as e-mail where Chinese touches them. 12: codes such as E-4021, parts of identifiers, one spelling
of colour, and 9:15 as 09:15. 13: the fragments of the base of an irregular form.
14: dates, telephone numbers and codes of several parts, however they are written.
"""


_MOST_DIGITS = 20
"""Of a position, which has 64 bits; Python reads no number of more than some thousand digits."""


def model_slug(model: str, dimensions: int, point_format: int = FORMAT) -> str:
    """A folder name for a model: readable, and different for different models and formats of points."""
    readable = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:40]
    kind = f"{model}:{dimensions}" if point_format == 1 else f"{model}:{dimensions}:{point_format}"
    return f"{readable}-{dimensions}-{hashlib.sha256(kind.encode()).hexdigest()[:8]}"


def is_slug(name: str) -> bool:
    """Whether a name has the form that `model_slug` gives."""
    return re.fullmatch(r"[a-z0-9-]*-\d+-[0-9a-f]{8}", name) is not None


def earlier_slugs(model: str, dimensions: int) -> list[str]:
    """The folder names of this model's points in earlier formats."""
    return [model_slug(model, dimensions, earlier) for earlier in range(1, FORMAT)]


def discard_earlier(directory: Path, model: str, dimensions: int) -> None:
    """Remove this model's points in earlier formats: they are not read, and persons would not be erased in them."""
    for name in earlier_slugs(model, dimensions):
        shutil.rmtree(directory / name, ignore_errors=True)


def read_checkpoint(folder: Path) -> int:
    """The checkpoint in this model's folder, 0 when it has none. Raises VectorStoreFailed when it holds no position."""
    path = folder / "checkpoint"
    try:
        text = path.read_bytes().strip()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise VectorStoreFailed(f"{path} cannot be read ({error}); delete {folder} to have it built anew") from error
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        raise VectorStoreFailed(f"{path} does not hold a position; delete {folder} to have it built anew")
    return int(text)


def replace_file(path: Path, text: str) -> None:
    """Replace a file's content atomically and durably."""
    draft = path.with_name(f"{path.name}.draft")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)

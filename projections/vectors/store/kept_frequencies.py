"""Document frequencies in a file, so that a start need not count the terms of every point again.

    <folder>/frequencies   a zip of arrays (NumPy's .npz), with the log position up to which they count

The file may be older than the points beside it: the store counts what changed since. It names readers and has
hashes of terms, so it is removed before anything is erased. A file that does not load is as none: the points have all.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np

from projections.vectors.store.frequencies import Frequencies

_NAME = "frequencies"


def keep(folder: Path, frequencies: Frequencies, position: int) -> None:
    """Write the frequencies, complete up to this position, atomically and durably."""
    readers, documents, terms, counts = [], [], [], []
    for reader, seen, its_terms, its_counts in frequencies.counts():
        readers.append(reader)
        documents.append(seen)
        terms.append(its_terms)
        counts.append(its_counts)
    draft = folder / f"{_NAME}.draft"
    with draft.open("wb") as file:
        np.savez(
            file,
            position=np.int64(position),
            readers=np.frombuffer(json.dumps(readers).encode(), np.uint8),
            documents=np.array(documents, np.int64),
            lengths=np.array([len(each) for each in terms], np.int64),
            terms=np.concatenate([*terms, np.zeros(0, np.uint32)]),
            counts=np.concatenate([*counts, np.zeros(0, np.int32)]),
        )
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / _NAME)


def kept(folder: Path) -> tuple[Frequencies, int] | None:
    """The frequencies that were kept, and their position; None where there are none that load."""
    try:
        with (folder / _NAME).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            readers = json.loads(file["readers"].tobytes())
            ends = np.cumsum(file["lengths"])[:-1]
            parts = zip(
                *(readers, file["documents"].tolist()),
                *(np.split(file["terms"], ends), np.split(file["counts"], ends)),
                strict=True,
            )
            position = int(file["position"])
            frequencies = Frequencies()
            for reader, documents, terms, counts in parts if readers else ():
                frequencies.take(reader, documents, terms, counts)
            return frequencies, position
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def drop(folder: Path) -> None:
    """Remove the file, and the draft that a crash left."""
    for name in (_NAME, f"{_NAME}.draft"):
        (folder / name).unlink(missing_ok=True)

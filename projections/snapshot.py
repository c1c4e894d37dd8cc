"""How does an analyst get a file to keep? A frozen copy of the live view, named by its position."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ledger.errors import ServiceFailed
from projections.view import Instance


def copy_frozen(instance: Instance, directory: Path) -> Path:
    """Copy the live file to `view-<position>.duckdb` and let `latest` name it; nothing may fold meanwhile.

    A snapshot is never replaced under its readers: the same position is the same file.
    """
    if instance.path is None:
        raise ServiceFailed("this view is in memory and has no file to copy")
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"view-{instance.position}.duckdb"
    if not file.exists():
        instance.bench.con.execute("CHECKPOINT")
        fresh = file.with_suffix(".part")
        shutil.copyfile(instance.path, fresh)
        with fresh.open("rb") as copied:
            os.fsync(copied.fileno())
        fresh.replace(file)
    pointer = directory / "latest.new"
    pointer.write_text(file.name + "\n")
    pointer.replace(directory / "latest")
    return file

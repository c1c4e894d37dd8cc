"""What a node found damaged and a backup has mended: the node says it no more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.integrity.found import Part


def note_mended(data: Path | None, part: Part) -> None:
    """The log, or the vault, was compared with a backup: what the node found of it before is mended."""
    from ledger.integrity.found import is_intact
    from ledger.integrity.notary_start import NotaryFiles

    if data is not None:
        is_intact(NotaryFiles.of(data), part)

"""Files of the pages (style, scripts), served under addresses that name their content."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from producers.web.addresses import HOME

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class File:
    """One file, as it is and compressed."""

    content: bytes
    packed: bytes
    kind: str
    version: str


@cache
def files() -> Mapping[str, File]:
    """The files by name."""
    found = {}
    for path in sorted((Path(__file__).parent / "static").iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            version = hashlib.sha256(content).hexdigest()[:_DIGITS]
            found[path.name] = File(content, gzip.compress(content, 9, mtime=0), _TYPES[path.suffix], version)
    return found


def address_of(name: str) -> str:
    """The address of a file, with its version."""
    return f"{HOME}/static/{files()[name].version}/{name}"

"""Schema version of a view file: a hash of the code from which its tables and their rows follow.

It is the same on every machine with the same program. A file that another version wrote is made anew from the log, so a
new event, column or rule needs no number of its own; a comment that changes costs a rebuild as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

SOURCES = (
    *("kledger.contract", "ledger.event", "ledger.events", "ledger.item_status"),
    *("ledger.new_item", "ledger.readers", "ledger.wire"),
    *("ledger.privacy.personal", "ledger.privacy.sealed"),
    *("projections.engine", "projections.fold_kit", "projections.views"),
)
"""The modules and packages (whole) that decide which events are accepted and what the views make of them."""


def version_of(files: Iterable[tuple[str, bytes]]) -> int:
    """A positive 31-bit number from the names and contents of these files."""
    found = hashlib.sha256()
    for name, content in files:
        found.update(f"{name} {len(content)}\n".encode() + content)
    return int.from_bytes(found.digest()[:4], "big") >> 1


def files_of(sources: Iterable[str]) -> Iterable[tuple[str, bytes]]:
    """Names and contents of the files of these modules and packages."""
    for name in sources:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        for path in sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]:
            yield f"{name}/{path.relative_to(origin.parent).as_posix()}", path.read_bytes()


SCHEMA_VERSION = version_of(files_of(SOURCES))

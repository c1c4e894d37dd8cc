"""Opens the place of a backup by its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.backup.address import StoreAddress, is_in_store
from ledger.backup.place import Directory, Place


@contextmanager
def opened(where: str) -> Iterator[Place]:
    """The place at an address. Raises InvalidPayload, ObjectStoreFailed (it is not reached, or has no such bucket)."""
    if not is_in_store(where):
        yield Directory(Path(where))
        return
    from ledger.backup.object_store import object_store  # its library is loaded by whoever speaks to a store

    with object_store(StoreAddress.parse(where)) as store:
        yield store

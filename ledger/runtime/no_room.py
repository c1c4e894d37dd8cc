"""A full disk: recognised whichever library met it, and told in plain words."""

from __future__ import annotations

import errno
import os

from kledger.contract.errors import ServiceFailed

_FULL = (errno.ENOSPC, errno.EDQUOT)
# What DuckDB spills may take what was free on the disk when it began, and no more: then it says that this is at an end.
_SAID = (*(os.strerror(number) for number in _FULL), "failed to offload data block")


def no_room(error: BaseException | None) -> ServiceFailed | None:
    """The error of ours where this one, or what caused it, is a full disk; else None."""
    while error is not None:
        # DuckDB and Arrow raise errors of their own, most of which quote the system's.
        if (isinstance(error, OSError) and error.errno in _FULL) or any(said in str(error) for said in _SAID):
            return ServiceFailed(f"there is no room on the disk ({str(error)[:200]}): make room, and try again")
        error = error.__cause__
    return None

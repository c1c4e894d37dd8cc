"""A disk that is full, or that failed: recognised whichever library met it, and told in plain words."""

from __future__ import annotations

import errno
import os

from kledger.contract.errors import ServiceFailed

FULL = (errno.ENOSPC, errno.EDQUOT)
_FAILED = (errno.EROFS, errno.EIO)
# What DuckDB spills may take what was free on the disk when it began, and no more: then it says that this is at an end.
_SAID = (*(os.strerror(number) for number in FULL), "failed to offload data block")


def no_room(error: BaseException | None) -> ServiceFailed | None:
    """The error of ours where this one, or what caused it, is a full disk; else None."""
    met = _met(error, FULL, _SAID)
    return None if met is None else ServiceFailed(f"there is no room on the disk ({met}): make room, and try again")


def disk_failed(error: BaseException | None) -> ServiceFailed | None:
    """As `no_room`, and of a disk that went read-only or failed under whoever uses it."""
    if (full := no_room(error)) is not None:
        return full
    met = _met(error, _FAILED, tuple(os.strerror(number) for number in _FAILED))
    return None if met is None else ServiceFailed(f"the disk does not work ({met}): see to it, and try again")


def _met(error: BaseException | None, numbers: tuple[int, ...], words: tuple[str, ...]) -> str | None:
    """What is said of it where this error, or what caused it, has one of the numbers or words."""
    while error is not None:
        # DuckDB and Arrow raise errors of their own, most of which quote the system's.
        if (isinstance(error, OSError) and error.errno in numbers) or any(said in str(error) for said in words):
            return str(error)[:200]
        error = error.__cause__
    return None

"""Errors of the vector process and its store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kledger.contract.errors import LedgerError


class VectorStoreFailed(LedgerError):
    """The vector store refused an operation, or is not the store that was expected."""


class VectorProcessGone(LedgerError):
    """The vector process ended, or did not start; its last words are in the message."""


class VectorsDamaged(LedgerError):
    """The vectors do not hold what the view says."""


class EmbeddingFailed(LedgerError):
    """The embedding endpoint did not give the vectors that were asked for.

    `retry_after` is how many seconds it asks to be left alone; `refused` that these texts are what it does not take,
    while it takes others; `useless` that it answered, and may be paid, with what cannot be used.
    """

    retry_after: float | None = None
    refused = False
    useless = False


@contextmanager
def reading() -> Iterator[None]:
    """An engine in this process that cannot read its files has damaged files; it raises bare exceptions of many kinds.

    Raises VectorsDamaged.
    """
    try:
        yield
    except Exception as error:
        raise VectorsDamaged(
            f"the vectors cannot be read ({error}): have them made anew with kledger rebuild"
        ) from error

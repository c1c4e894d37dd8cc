"""What can go wrong between the ledger and its vectors?"""

from __future__ import annotations

from ledger.errors import LedgerError


class VectorStoreFailed(LedgerError):
    """The vector store refused an operation, or is not the store that was expected."""

    code = "vector_store_failed"


class VectorProcessGone(LedgerError):
    """The vector process ended, or did not start; its last words are in the message."""

    code = "vector_process_gone"


class EmbeddingFailed(LedgerError):
    """The embedding endpoint did not give the vectors that were asked for."""

    code = "embedding_failed"

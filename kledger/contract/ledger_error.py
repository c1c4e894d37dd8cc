"""What every error of the product is: a message for people, a code for programs."""

from __future__ import annotations


class LedgerError(Exception):
    """Base of everything the product raises on purpose; `code` never changes once released."""

    code = "ledger_error"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

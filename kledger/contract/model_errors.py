"""What can go wrong where a model is asked; part of `kledger.contract.errors`."""

from __future__ import annotations

from kledger.contract.ledger_error import LedgerError


class ModelFailed(LedgerError):
    """The model gave no answer that can be used; `details["usage"]` says what it cost all the same, when known."""


class ModelRefused(LedgerError):
    """The model declined to answer this; asking again in the same words will not help."""


class Interrupted(LedgerError):
    """The node was stopped while a model was asked, which may have been billed: it is not asked again by itself."""


class BudgetSpent(LedgerError):
    """What models may cost a day is spent; `details["retry_after"]` says in how many seconds the next day begins."""

"""The client of Knowledge Ledger: publish events and recall knowledge over HTTP.

    async with AsyncLedgerClient() as ledger:
        await ledger.acting_as(agent="scribe").save("Name a branch", "Use the ticket number.", ["tool"])

    with LedgerClient() as ledger:
        ledger.search("how do I name a branch")

Both clients bind one table of endpoints (`client/clients.py`). Errors are those of `kledger.contract.errors`, by code,
and each of them is a `LedgerError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kledger.client.clients import AsyncLedgerClient, LedgerClient
    from kledger.contract.errors import LedgerError

DEFAULT_URL = "http://127.0.0.1:8420"
"""Where a node is unless somebody says otherwise."""

__all__ = ["DEFAULT_URL", "AsyncLedgerClient", "LedgerClient", "LedgerError"]


def __getattr__(name: str) -> Any:
    """Load the client when it is first named: who needs error codes or words alone loads no client."""
    if name not in __all__:
        if name[:1].isupper() or name == "errors":
            from kledger.client.slips.other_classes import told_class

            told_class(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "LedgerError":
        from kledger.contract.errors import LedgerError

        return LedgerError
    from kledger.client import clients

    return getattr(clients, name)


def __dir__() -> list[str]:
    """What is here, loaded or not: a shell completes it, and an import of nearly such a name is told it."""
    return sorted({*globals(), *__all__})

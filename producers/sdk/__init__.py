"""How does a Python program use the ledger? Over HTTP, with one client in two faces.

    async with AsyncLedgerClient() as ledger:
        await ledger.acting_as(agent="scribe").save("Name a branch", "Use the ticket number.", ["tool"])

    with LedgerClient() as ledger:
        ledger.search("how do I name a branch")

Both faces bind one table of endpoints (`clients.py`); errors are those of `ledger.errors`, by their code.
"""

from producers.sdk.clients import AsyncLedgerClient, LedgerClient
from producers.sdk.connection import DEFAULT_URL

__all__ = ["DEFAULT_URL", "AsyncLedgerClient", "LedgerClient"]

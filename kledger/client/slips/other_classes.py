"""What the client is called in other libraries: whoever imports such a name is told the one that is here."""

from __future__ import annotations

_BLOCKING = (
    *(
        "Memory",
        "MemoryClient",
        "Zep",
        "Letta",
        "Hindsight",
        "HindsightClient",
        "KurrentDBClient",
        "EventStoreDBClient",
    ),
    *("Client", "KLedger", "KledgerClient", "KnowledgeLedger", "Ledger"),
)
_CLASSES = {
    **dict.fromkeys(_BLOCKING, "LedgerClient"),
    **{f"Async{name}": "AsyncLedgerClient" for name in _BLOCKING},
}


def told_class(name: str) -> None:
    """Raise ImportError where the name is that of a client elsewhere; do nothing else.

    It is no AttributeError: of that, an import keeps no word.
    """
    if here := _CLASSES.get(name):
        raise ImportError(
            f"cannot import name {name!r} from 'kledger': here it is {here}, so write: from kledger import {here}",
            name="kledger",
        )

"""What is imported from the package under another name, or has another place: whoever does is told where it is."""

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
    """Raise ImportError where the name is that of a client elsewhere, or of an error; do nothing else.

    It is no AttributeError: of that, an import keeps no word.
    """
    if here := _CLASSES.get(name):
        said = f"here it is {here}, so write: from kledger import {here}"
    elif name == "errors":
        said = "write: from kledger.contract import errors"
    elif _is_error(name):
        said = f"write: from kledger.contract.errors import {name}"
    else:
        return
    raise ImportError(f"cannot import name {name!r} from 'kledger': {said}", name="kledger")


def _is_error(name: str) -> bool:
    from kledger.contract import errors

    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.LedgerError)

"""The page of errors: every code, the same on each door, with what it means and its HTTP status."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from docs.generators.tables import GENERATED, table
from kledger.contract.errors import LedgerError, NodeUnreachable
from producers.http.errors import STATUS

ROOT = Path(__file__).parents[2]
PACKAGES = ("kledger", "ledger", "projections", "consumers", "producers")


def errors_page() -> str:
    """docs/reference/errors.md."""
    rows = [
        (f"`{error.code}`", _status(error), f"`{error.__name__}`", (error.__doc__ or "").partition("\n\n")[0])
        for error in sorted(_errors(), key=lambda error: error.code)
    ]
    return "\n".join(
        [
            "# Errors\n",
            GENERATED,
            "Every error has a code that is the same on every door and never changes: the HTTP body is "
            '`{"error": {"code", "message", "details"}}`, the SDK raises the exception of that code, the command '
            "prints it and exits with 1 (3 when no node answers). The message says what happened, to which id, "
            "and what to do.\n",
            table(("code", "HTTP", "exception", "meaning"), rows),
            "Events that the fold refuses stand in `refused_events` with one of these codes, or with "
            "`duplicate_event` when the id was accepted before.\n",
        ]
    )


def _status(error: type[LedgerError]) -> str:
    """The HTTP status of an error; none where no node was there to answer."""
    return "" if error is NodeUnreachable else str(STATUS.get(error.code, 500))


def _errors() -> set[type[LedgerError]]:
    """Every exception of ours that has a code of its own."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            module = path.relative_to(ROOT).with_suffix("")
            importlib.import_module(".".join(module.parts).removesuffix(".__init__"))
    return {error for error in _below(LedgerError) if "code" in vars(error)}


def _below(error: type[LedgerError]) -> Iterator[type[LedgerError]]:
    for narrower in error.__subclasses__():
        yield narrower
        yield from _below(narrower)

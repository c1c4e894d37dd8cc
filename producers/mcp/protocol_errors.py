"""Protocol errors: what a request other than a tool call is answered with when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcp import MCPError, types

from kledger.contract.errors import Erased, IllegalScope, InvalidPayload, LedgerError, UnknownKnowledge, UnknownPrompt

_OF_THE_CALLER = {error.code for error in (Erased, IllegalScope, InvalidPayload, UnknownKnowledge, UnknownPrompt)}

InWords = Callable[[str], str]
"""What a node says, in the words of whoever is told."""


@contextmanager
def as_protocol(in_words: InWords = str) -> Iterator[None]:
    """Turn a LedgerError into a protocol error, because a prompt or a resource has no error result."""
    try:
        yield
    except LedgerError as error:
        kind = types.INVALID_PARAMS if error.code in _OF_THE_CALLER else types.INTERNAL_ERROR
        raise MCPError(kind, in_words(error.message), {"code": error.code, "details": error.details}) from error

"""Admission to a node, by its listening address and its tokens."""

from __future__ import annotations

from pathlib import Path

from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import LedgerError, NodeMisconfigured
from ledger.runtime.data_directory import is_data_directory
from producers.access.book import TokenBook
from producers.access.tokens import tokens_file
from projections.analysts.quack_sessions import Admits


def tokens_for(data: Path, host: str) -> TokenBook:
    """The tokens of the node on `data`. Raises NodeMisconfigured without tokens on another address than loopback."""
    outside = host not in LOOPBACK
    path = tokens_file(data)
    book = TokenBook(path, always=outside)
    if outside and not book.known:
        new = "" if is_data_directory(data) else " --new"
        raise NodeMisconfigured(
            f"a node without tokens serves loopback only, not {host}: make one first, with "
            f"kledger token create --data {data} --role operator{new}, and put a proxy with TLS in front"
        )
    return book


def analysts_of(book: TokenBook) -> Admits:
    """Admission over Quack: by a token with a fitting role, or, where there are no tokens, by the server's own."""

    def admits(token: str, is_the_servers: bool) -> bool:
        if not book.required:
            return is_the_servers
        try:
            return book.holder(token).role in ("analyst", "operator")
        except LedgerError:
            return False

    return admits

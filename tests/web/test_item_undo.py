"""An undo undoes its own change, and nothing that came after it."""

from __future__ import annotations

import pytest

from kledger import LedgerClient
from producers.web.rendering import item_page
from tests.web.test_item_page import ivo, ledger, saved
from tests.web.visitor import Visitor, undo_of, words

__all__ = ["ivo", "ledger"]


@pytest.mark.parametrize(
    ("verb", "fields", "later"),
    [
        ("retire", {}, ("restore", "retire")),
        ("share", {"entity": "user:cy", "permission": "read"}, ("share",)),
        ("score", {"score": "3"}, ("score",)),
    ],
)
def test_an_undo_leaves_what_was_changed_since(
    ledger: LedgerClient, ivo: Visitor, verb: str, fields: dict[str, str], later: tuple[str, ...]
) -> None:
    name = f"undone-late-{verb}"
    saved(ledger, name, acl=[{"entity": "user:mallory", "permission": "read_write"}])
    address, undo = undo_of(ivo.post(item_page(name, verb), {**fields, "back": item_page(name)}).text)
    others = {"entity": "user:dora", "permission": "read"} if verb == "share" else {"score": "1"}
    for each in later:
        ivo.post(item_page(name, each), others if each in ("share", "score") else {"reason": "truly wrong"})
    before = ledger.get(name)
    said = words(ivo.post(address, undo).text)
    assert "It was changed since, and stays as it is." in said
    assert ledger.get(name) == before

"""An undo undoes its own change, and nothing that came after it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from kledger import LedgerClient
from producers.web.rendering import item_page
from tests.web.test_item_page import ivo, ledger, saved
from tests.web.visitor import Visitor, words

__all__ = ["ivo", "ledger"]


def notice_of(page: str) -> tuple[str, dict[str, str]]:
    """Where a notice's button leads, and its fields."""
    found = re.search(r'<div class="notice">.*?<form method="post" action="([^"]+)">(.*?)</form>', page, re.S)
    assert found is not None
    pairs = re.findall(r'name="([^"]+)" value="([^"]*)"', found[2], re.S)
    return unescape(found[1]), {unescape(name): unescape(value) for name, value in pairs}


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
    address, undo = notice_of(ivo.post(item_page(name, verb), {**fields, "back": item_page(name)}).text)
    others = {"entity": "user:dora", "permission": "read"} if verb == "share" else {"score": "1"}
    for each in later:
        ivo.post(item_page(name, each), others if each in ("share", "score") else {"reason": "truly wrong"})
    before = ledger.get(name)
    said = words(ivo.post(address, undo).text)
    assert "It was changed since, and stays as it is." in said
    assert ledger.get(name) == before

"""Can a reader follow one page after another on the same node? Each page's examples are its own."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.house.project import ROOT, blocks, documents

_FORGETS = re.compile(r"kledger forget user:([\w-]+)|\"forget\", subject=\"user:([\w-]+)\"")
_SAVES = re.compile(r"(?:kledger save|\.save\()[^\n]*?(?:--id |id=\")([\w-]+)")


def code() -> dict[str, str]:
    """What each page has typed."""
    pages = (page for page in documents() if page.name != "CHANGELOG.md" and "reference" not in page.parts)
    return {page.relative_to(ROOT).as_posix(): "\n".join(block.text for block in blocks(page)) for page in pages}


def test_whom_a_page_forgets_no_other_page_names() -> None:
    pages = code()
    forgotten = {(page, one or other) for page, text in pages.items() for one, other in _FORGETS.findall(text)}
    assert forgotten, "no page forgets anybody any more: this test looks for nothing"
    for page, person in forgotten:
        others = [name for name, text in pages.items() if name != page and re.search(rf"\b{person}\b", text)]
        assert not others, f"{page} forgets user:{person}, whom {others} need"


def test_no_two_pages_save_an_item_of_one_id() -> None:
    saving = defaultdict(set)
    for page, text in code().items():
        for item in _SAVES.findall(text):
            saving[item].add(page)
    assert saving
    assert {item: pages for item, pages in saving.items() if len(pages) > 1} == {}

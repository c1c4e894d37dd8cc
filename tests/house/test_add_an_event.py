"""The page that says how an event is added names the files that an event of today stands in, and no longer a list."""

from __future__ import annotations

import re

import pytest

from ledger.events.knowledge import KnowledgeRestored
from tests.house.project import PACKAGES, ROOT, modules

PAGE = ROOT / "docs" / "how-to" / "add-an-event.md"
MOST_OF_PRODUCT, MOST_OF_TESTS = 9, 3
ROW = re.compile(r"^\| (?:`(?P<file>[\w/]+\.py)`|a new file) \| [^|]+ \|(?: `(?P<as_in>[^|]+)`)? \|$", re.MULTILINE)


def rows(heading: str) -> list[re.Match[str]]:
    """The rows of the table below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    below = text[text.index(f"## {heading}\n") :].partition("\n## ")
    return list(ROW.finditer(below[0] if below[0].count("\n") > 1 else below[2]))


FILES = [row for heading in ("The product", "The tests") for row in rows(heading) if row["file"]]


def test_an_event_takes_at_most_nine_files_of_the_product_and_three_of_tests() -> None:
    assert 0 < len(rows("The product")) <= MOST_OF_PRODUCT
    assert 0 < len(rows("The tests")) <= MOST_OF_TESTS


@pytest.mark.parametrize("row", FILES, ids=lambda row: row["file"])
def test_each_file_of_the_page_has_what_the_page_says_to_copy_from(row: re.Match[str]) -> None:
    assert row["as_in"] in (ROOT / row["file"]).read_text(encoding="utf-8")


def test_every_file_of_the_product_that_names_the_event_is_one_that_the_page_names() -> None:
    names = re.compile(rf"\b({KnowledgeRestored.__name__}|{re.escape(KnowledgeRestored.name)})\b")
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in modules(PACKAGES)
        if names.search(path.read_text(encoding="utf-8"))
    }
    more = {  # as the page says
        "projections/views/knowledge/rules.py",  # of an event that changes an item's status
        "projections/views/tombstones/fold.py",  # of one that another view follows
        "projections/views/lineage/links.py",  # of one that refers to something else
        "producers/operations/bulk/doing.py",  # of one that is made of many items at once
        "producers/operations/bulk/reverting.py",
        "ledger/vocabulary/old_versions.py",  # of one with a later version of its schema
        "producers/operations/stated_before.py",  # of one with a field that no request states
    }
    assert naming
    assert naming <= {row["file"] for row in FILES} | more


def test_every_file_that_has_its_endpoint_is_one_that_the_page_names() -> None:
    """Of the interfaces: the address, and the client's method as the command calls it."""
    asked = re.compile(r"\{item_id\}/restore|\{KNOWLEDGE\}/\{segment\(id\)\}/restore|session\.ledger\.restore\(")
    having = {
        path.relative_to(ROOT).as_posix()
        for path in modules(PACKAGES)
        if asked.search(path.read_text(encoding="utf-8"))
    }
    assert len(having) == 3
    assert having <= {row["file"] for row in FILES}

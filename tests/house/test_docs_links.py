"""Does everything that a document points at exist?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.house.project import FOLDERS, ROOT, documents

LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
PLACE = re.compile(rf"`(?P<file>(?:{'|'.join(FOLDERS)})/[\w./-]+\.py)(?::(?P<name>\w+))?`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    missing = []
    for match in LINK.finditer(text):
        target = (page.parent / match["target"]).resolve() if match["target"] else page
        anchor = (match["anchor"] or "#")[1:]
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            missing.append(match[0])
    assert missing == []


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_place_in_the_code_that_the_page_names_exists(page: Path) -> None:
    missing = []
    for match in PLACE.finditer(page.read_text(encoding="utf-8")):
        path = ROOT / match["file"]
        if not path.is_file() or (match["name"] and match["name"] not in defined(path)):
            missing.append(match[0])
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def defined(path: Path) -> set[str]:
    """Functions, classes, methods and names that a module defines."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found

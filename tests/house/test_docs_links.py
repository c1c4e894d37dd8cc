"""Everything that a document or a comment points at exists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.project import FOLDERS, PACKAGES, ROOT, documents, modules

LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_IN_CODE = "|".join(FOLDERS)
_NAME = r"(?::(?P<name>[A-Za-z_]\w*(?:\.\w+)*))?"
MENTIONED = re.compile(rf"(?<![\w./-])(?P<file>(?:{_IN_CODE})/[\w./-]+\.(?:py|md)){_NAME}")
BESIDE = re.compile(r"(?<![\w/.*-])(?P<file>(?:\w+/)*(?!__init__)\w+\.py)(?!\w)")
FOLDER = re.compile(rf"(?<![\w./-])(?:{_IN_CODE})/(?:\w+/)*")
IMPORTABLE = re.compile(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
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
    missing = [match[0] for match in MENTIONED.finditer(page.read_text(encoding="utf-8")) if not is_there(match)]
    assert missing == []


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_module_without_its_folder_is_in_a_folder_that_the_page_names(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    folders = [ROOT, *(ROOT / folder for folder in FOLDER.findall(text))]
    missing = [match[0] for match in BESIDE.finditer(text) if not stands_in(folders, match["file"])]
    assert missing == []


def test_every_place_that_a_comment_or_a_text_of_the_code_names_exists() -> None:
    missing = []
    for path in modules((*PACKAGES, "tests", "bench")):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                named = [match[0] for match in MENTIONED.finditer(token.string) if not is_there(match)]
                if token.type == tokenize.COMMENT or token.string.startswith('"""'):
                    beside = [folder for folder in path.parents if folder.is_relative_to(ROOT)]
                    named += [one[0] for one in BESIDE.finditer(token.string) if not stands_in(beside, one["file"])]
                named += [match[0] for match in IMPORTABLE.finditer(token.string) if not is_importable(match[0])]
                missing += [f"{path.relative_to(ROOT)}:{token.start[0]}: {each}" for each in named]
    assert missing == []


def is_there(place: re.Match[str]) -> bool:
    """Whether the file exists, and defines the name where one is given."""
    path = ROOT / place["file"]
    return path.is_file() and (not place["name"] or place["name"] in defined(path))


def stands_in(folders: Iterable[Path], file: str) -> bool:
    """Whether one of the folders has the file, named without them."""
    return any((folder / file).is_file() for folder in folders)


def is_importable(name: str) -> bool:
    """Whether a dotted name leads to a module or into one; what names no folder of a package is none of ours."""
    parts = name.split(".")
    if not (ROOT / parts[0] / parts[1]).is_dir():
        return True
    for length in range(len(parts), 1, -1):
        path = ROOT.joinpath(*parts[:length])
        if path.is_dir():
            return length == len(parts) or parts[length] == "py"
        if (module := path.with_suffix(".py")).is_file():
            return length == len(parts) or parts[length] in defined(module) | imported(module)
    return False


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def defined(path: Path) -> set[str]:
    """Functions, classes, methods and names that a module defines; what a class has also as `Class.name`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{name}" for name in of_class(node)}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def of_class(node: ast.ClassDef) -> set[str]:
    """The methods and fields that a class states in its body."""
    named = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    fields = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return named | fields


def imported(path: Path) -> set[str]:
    """Names that a module imports: a test that replaces one names it there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in froms for alias in node.names}

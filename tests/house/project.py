"""What belongs to the project, and which code stands in its documents?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kledger", "ledger", "projections", "consumers", "producers")
FOLDERS = (*PACKAGES, "tests", "bench", "docs", ".ci")
FILES = ("Makefile", "pyproject.toml", "requirements.lock", "README.md", "CHANGELOG.md", ".gitignore")

_FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code in a document. `language` is the first word after the fence."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def text_files() -> Iterator[Path]:
    """Every file of the project that a person wrote or a generator of ours."""
    yield from (ROOT / name for name in FILES)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            kept = not {"__pycache__", "node_modules", "results"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and kept:
                yield path


def modules(folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    """The Python files of the project."""
    return [path for path in text_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def documents() -> list[Path]:
    """README, changelog and every page of the documentation."""
    return [path for path in text_files() if path.suffix == ".md"]


def blocks(page: Path) -> list[Block]:
    """The blocks of code of one page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match["language"], match["text"])
        for match in _FENCE.finditer(text)
    ]


def imported_by(sources: tuple[str, ...]) -> dict[str, Path]:
    """The modules of the product, by name, that these modules and packages import."""
    paths = modules(PACKAGES)
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    found: set[str] = set()
    for name, path in names.items():
        if not name.startswith(sources):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {f"{node.module}.{one.name}" for one in node.names} | {node.module}
    return {name: names[name] for name in found & names.keys()}

"""Is the house in order: small modules, names that say something, nothing of one machine in it?"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import LONGEST
from tests.house.project import PACKAGES, ROOT, modules, text_files

MOST_MODULES = 20
"""In one folder, beside `__init__.py`."""
# Advice for one module, held for all of them: a longer one is fine where it has one job.
USUAL_LINES, MOST_USUAL_LINES = 110, 250
VAGUE_NAMES = {"utils", "util", "common", "manager", "base", "helpers", "helper", "misc"}
OF_ONE_MACHINE = re.compile(rf"{re.escape(str(ROOT))}/|/root/|/home/\w|/Users/")
OF_A_REGISTRY = re.compile(r"--(extra-)?index-url|--trusted-host")
LEFT_OPEN = re.compile(r"\bTODO\b|\bFIXME\b|NotImplementedError")
EXCEPTION = re.compile(r"# (?:type: ignore(?:\[[\w, -]+\])?|noqa(?:: [A-Z]+[0-9]+)?)(?P<reason>.*)$")
ABOVE = 3
"""Lines above an exception in which a comment may give its reason."""
# Parts of a declared package that has a name of its own; pydantic asks for the TypedDict of typing_extensions.
PART_OF = {
    "anyio": "mcp",
    "annotated_types": "pydantic",
    "markupsafe": "jinja2",
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
    "typing_extensions": "pydantic",
}


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_a_module_has_about_a_hundred_lines_and_nine_of_ten_stay_below_two_hundred_and_fifty() -> None:
    lines = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in modules(PACKAGES))
    assert statistics.median(lines) <= USUAL_LINES
    assert lines[len(lines) * 9 // 10] <= MOST_USUAL_LINES


def test_a_folder_of_the_product_can_be_surveyed() -> None:
    folders = Counter(shown(path.parent) for path in modules(PACKAGES) if path.name != "__init__.py")
    assert {folder: count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_the_files_that_are_begun_first_are_there() -> None:
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = [shown(path) for path in modules() if VAGUE_NAMES & {path.stem, path.parent.name}]
    assert vague == []


def test_every_folder_of_the_product_is_a_package_so_that_the_import_rules_see_it() -> None:
    bare = {shown(path.parent) for path in modules(PACKAGES) if not path.with_name("__init__.py").exists()}
    assert bare == set()


def test_every_module_opens_by_saying_what_it_is_for() -> None:
    silent = [
        shown(path)
        for path in modules()
        if (tree := ast.parse(path.read_text(encoding="utf-8"))).body and not ast.get_docstring(tree)
    ]
    assert silent == []


def test_every_exception_from_a_rule_of_the_linters_has_its_reason() -> None:
    bare = []
    for path in modules(PACKAGES):
        lines = path.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            exception, above = EXCEPTION.search(line), lines[max(0, at - ABOVE) : at]
            told = exception is None or exception["reason"].strip("# -")
            if not told and not any(each.lstrip().startswith("#") for each in above):
                bare.append(f"{shown(path)}: {line.strip()}")
    assert bare == []


@pytest.mark.parametrize("pattern", [OF_ONE_MACHINE, OF_A_REGISTRY, LEFT_OPEN], ids=["machine", "registry", "open"])
def test_nothing_of_one_machine_of_a_registry_or_left_open_is_in_the_project(pattern: re.Pattern[str]) -> None:
    found = []
    for path in set(text_files()) - {Path(__file__).resolve()}:  # which has to name them
        text = path.read_bytes().decode(errors="ignore")
        found += [f"{shown(path)}: {match[0]}" for match in pattern.finditer(text)]
    assert found == []


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    client = {canonical(Requirement(one).name) for one in project["dependencies"]}
    node = client | {canonical(Requirement(one).name) for one in [*extras["node"], *extras["otel"]]}
    distributions = packages_distributions()
    undeclared = set()
    for path in modules(PACKAGES):
        declared = client if path.is_relative_to(ROOT / "kledger") else node
        for name in imported(path) - sys.stdlib_module_names - set(PACKAGES):
            belongs = {canonical(one) for one in distributions.get(name, [name])} | {PART_OF.get(name, "")}
            if not belongs & declared:
                undeclared.add(f"{shown(path)}: {name}")
    assert undeclared == set()


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_every_pinned_package_is_checked_by_its_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    entries = re.split(r"\n(?=[a-z0-9])", lock)
    pinned = {
        canonical(match[1]): match[2]
        for entry in entries
        if (match := re.match(r"([\w.-]+)==(\S+)", entry)) and "--hash=sha256:" in entry
    }
    assert len(pinned) == len(re.findall(r"^[a-z0-9][\w.-]*==", lock, re.MULTILINE))
    extras = project["optional-dependencies"]
    for requirement in map(Requirement, [*project["dependencies"], *extras["node"], *extras["otel"], *extras["dev"]]):
        locked = pinned.get(canonical(requirement.name))
        assert locked is not None, f"{requirement}: run `make lock`"
        assert requirement.specifier.contains(locked), f"{requirement} is locked at {locked}: run `make lock`"

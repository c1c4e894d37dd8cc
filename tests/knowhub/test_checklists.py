"""The checklists of the sources are whole: every line names a test that is there, or says what is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.knowhub.checklist import LISTS, OPEN, Line, lines
from tests.knowhub.mutate import MUTATIONS
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
OPEN_LINES = Path(__file__).parent / "letters" / "open.txt"
"""The ids of the lines that may be open: one that is kept is taken out here, and none comes in by itself."""


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> set[str]:
    """The node id of every test in the files that the lists name."""
    found = {item.nodeid for item in request.session.items} if in_whole_files(request.config) else set()
    there = {test.partition("::")[0] for test in found}
    files = sorted({line.test.partition("::")[0] for line in lines() if not line.is_open} - there)
    if not files:
        return found
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", "-o", "addopts=--import-mode=importlib"]
    ran = subprocess.run([*collect, *files], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return found | {row for row in ran.stdout.splitlines() if "::" in row}


def in_whole_files(config: pytest.Config) -> bool:
    """Whether this run has all tests of the files that it has any of."""
    chosen = any(config.getoption(name, None) for name in ("keyword", "markexpr", "deselect", "lf", "stepwise"))
    return not chosen and not any("::" in argument for argument in config.args)


def test_there_is_a_list_of_each_source() -> None:
    assert [path.stem for path in LISTS] == ["000", "001", "002", "003"]
    assert {line.id[:3] for line in lines()} == {path.stem for path in LISTS}


def test_no_line_has_the_id_of_another() -> None:
    assert [each for each, count in Counter(line.id for line in lines()).items() if count > 1] == []


def test_every_line_that_is_not_open_names_a_test_that_is_collected(collected: set[str]) -> None:
    def named(line: Line) -> bool:
        return line.test in collected or any(each.startswith(f"{line.test}[") for each in collected)

    assert [f"{line.id}: {line.test}" for line in lines() if not line.is_open and not named(line)] == []


def test_the_lines_that_are_open_are_listed_and_say_what_is_missing() -> None:
    still_open = [line for line in lines() if line.is_open]
    assert [line.id for line in still_open] == OPEN_LINES.read_text("utf-8").split()
    assert [line.id for line in still_open if len(line.test) < len(OPEN) + 10] == []


def test_every_mutation_edits_what_is_there_for_a_line_that_names_a_test() -> None:
    named = {line.id for line in lines() if not line.is_open}
    for line_id, edit in tomllib.loads(MUTATIONS.read_text("utf-8")).items():
        assert line_id in named, line_id
        assert edit["old"] in (ROOT / edit["file"]).read_text("utf-8"), line_id

"""Programs that use the client, as mypy --strict judges them: right use passes, and every wrong line is reported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import ROOT

HERE = Path(__file__).parent
_SAID = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): (?P<kind>error|note): (?P<words>.*)$", re.MULTILINE)


def judged(file: str, kind: str) -> dict[int, str]:
    """What mypy says about the lines of a file, by their numbers."""
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-incremental", str(HERE / file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.stderr, ran.stderr
    assert ran.returncode in (0, 1), ran.stdout
    found = [each for each in _SAID.finditer(ran.stdout) if each["kind"] == kind]
    assert {Path(each["file"]).name for each in found} <= {file}, ran.stdout
    return {int(each["line"]): each["words"] for each in found}


def lines(file: str, marked: str) -> set[int]:
    """The numbers of the lines that hold a text."""
    text = (HERE / file).read_text(encoding="utf-8")
    return {number for number, line in enumerate(text.splitlines(), 1) if marked in line}


@pytest.mark.timeout(300)
def test_right_use_passes() -> None:
    assert judged("right_use.py", "error") == {}


@pytest.mark.timeout(300)
def test_what_one_uses_of_an_answer_has_a_type() -> None:
    revealed = judged("right_use.py", "note")
    assert revealed.keys() == lines("right_use.py", "    reveal_type(")
    assert {number: words for number, words in revealed.items() if re.search(r"\bAny\b", words)} == {}


@pytest.mark.timeout(300)
def test_every_wrong_use_is_reported() -> None:
    assert judged("wrong_use.py", "error").keys() == lines("wrong_use.py", "  # wrong: ")

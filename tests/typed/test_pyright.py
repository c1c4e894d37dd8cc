"""The same programs as pyright, the checker of many editors, judges them in its strict mode."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.house.project import ROOT
from tests.npm import installed
from tests.typed.test_types_of_the_client import lines

HERE = Path(__file__).parent
FILES = ("right_use.py", "wrong_use.py")

Judged = Mapping[tuple[str, str], dict[int, str]]
"""What is said about the lines of a file, by the file and the severity."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """What pyright says; skips where it cannot be had."""
    folder = tmp_path_factory.mktemp("pyright")
    shutil.copy(HERE / "pyright" / "package.json", folder)
    installed(folder, "pyright")
    command = [str(folder / "node_modules" / ".bin" / "pyright"), "--pythonpath", sys.executable, "--outputjson"]
    ran = subprocess.run(
        [*command, *(str(HERE / file) for file in FILES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )
    assert ran.returncode in (0, 1), ran.stderr
    found: dict[tuple[str, str], dict[int, str]] = {}
    for each in json.loads(ran.stdout)["generalDiagnostics"]:
        key = (Path(each["file"]).name, each["severity"])
        found.setdefault(key, {})[each["range"]["start"]["line"] + 1] = each["message"]
    assert {file for file, _ in found} <= {*FILES}, found
    return found


def test_right_use_passes(judged: Judged) -> None:
    assert [key for key in judged if key[0] == "right_use.py"] == [("right_use.py", "information")]


def test_what_one_uses_of_an_answer_has_a_type(judged: Judged) -> None:
    revealed = judged["right_use.py", "information"]
    assert revealed.keys() == lines("right_use.py", "    reveal_type(")
    assert {number: words for number, words in revealed.items() if re.search(r"\b(Any|Unknown)\b", words)} == {}


def test_every_wrong_use_is_reported(judged: Judged) -> None:
    assert judged["wrong_use.py", "error"].keys() == lines("wrong_use.py", "  # wrong: ")

"""`make setup` where `.venv` is not a plain folder: a link leads to another disk, and the environment is made there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import ROOT

# Makes real environments, and installs nothing: the programs of an environment are this one too.
PYTHON = """#!/bin/sh
case "$1 $2" in
"-m venv") "{real}" -m venv --without-pip "$3" && ln -sf "$0" "$3/bin/python";;
"-m pip") ;;
*) exec "{real}" "$@";;
esac
"""


@pytest.mark.parametrize("there", ["a folder", "a link to a folder", "a link to nothing yet"])
def test_an_environment_is_made_behind_a_link_as_in_a_folder(tmp_path: Path, there: str) -> None:
    desk, disk, python = tmp_path / "desk", tmp_path / "disk", tmp_path / "python"
    desk.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, desk)
    if there == "a link to a folder":
        disk.mkdir()
    if there != "a folder":
        (desk / ".venv").symlink_to(disk)
    python.write_text(PYTHON.format(real=sys.executable))
    python.chmod(0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    ran = subprocess.run(
        ["make", "setup", f"PYTHON={python}"], cwd=desk, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert (desk / ".venv" / "bin" / "python").exists()
    assert (desk / ".venv").is_symlink() is (there != "a folder")
    assert (disk / "pyvenv.cfg").exists() is (there != "a folder")

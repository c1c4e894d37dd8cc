"""A node works in whatever directory it is started: its processes import nothing out of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kledger.contract.documents import TEXT
from ledger.broker.subprocess_job import in_own_process
from ledger.runtime import private
from producers.documents.converting import Bounds, convert
from projections.vectors.client import spawned
from tests.house.project import PACKAGES, ROOT
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT, jobs_from_nothing

SHADOWS = ("queue.py", "types.py", "json.py", *(f"{package}/__init__.py" for package in PACKAGES))
"""Files of somebody's project whose names are those of the standard library, and of ours."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Somebody's project, which is the current directory."""
    for name in SHADOWS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"raise SystemExit('{name} of the project')\n")
    monkeypatch.chdir(tmp_path)
    with jobs_from_nothing():  # what is forked has imported all
        yield tmp_path


@pytest.mark.usefixtures("project")
async def test_a_job_imports_nothing_from_the_current_directory() -> None:
    result = await in_own_process("tests.processes.loud_job", {"said": "heard"}, lambda *_: None)
    assert result == {"heard": "heard"}


@pytest.mark.usefixtures("project")
async def test_a_file_is_read_wherever_the_node_was_started() -> None:
    read = await convert(b"The crane lifts two tons.", TEXT, Bounds())
    assert read.sections[0].chunks == ["The crane lifts two tons."]


@pytest.mark.usefixtures("project")
async def test_the_vector_process_starts_wherever_the_node_was_started() -> None:
    process = await spawned()
    _, said = await process.communicate(b"")
    assert b"of the project" not in said
    assert process.returncode == 0, said.decode()


def test_a_node_starts_in_a_folder_with_modules_of_the_same_names(project: Path) -> None:
    program = [sys.executable, "-P", "-m", "producers.cli.main", "up", "--data", "data", "--http", "127.0.0.1:0"]
    environment = {**ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        program, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as node:
        try:
            assert node.stdout is not None
            ready = node.stdout.readline()
        finally:
            node.terminate()
        _, said = node.communicate(timeout=PATIENCE)
    assert ready.startswith("kledger is ready"), said


def test_packages_that_are_installed_do_not_come_before_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(private, "__file__", str(tmp_path / "ledger" / "runtime" / "private.py"))
    assert private.module_environment()["PYTHONPATH"] == str(tmp_path), "a folder that Python does not know"
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    assert "PYTHONPATH" not in private.module_environment()
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert private.module_environment()["PYTHONPATH"] == "/somewhere"

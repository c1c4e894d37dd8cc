"""A program in JavaScript with its packages, for tests of what other languages do with a node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def installed(folder: Path, what: str) -> Path:
    """The folder, with the packages that its package.json names; skips the test where they cannot be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip(f"node and npm are needed to run {what}, and one of them is not installed")
    ran = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if ran.returncode:
        pytest.skip(f"npm could not install {what}: {ran.stderr.strip()[-300:]}")
    return folder

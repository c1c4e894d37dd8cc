"""The OpenAPI document passes the recommended rules of a linter: security, errors, servers, no unused component."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from docs.generate import REFERENCE
from tests.npm import installed

PACKAGE = Path(__file__).parent / "openapi_lint" / "package.json"


def test_the_document_has_neither_errors_nor_warnings(tmp_path: Path) -> None:
    shutil.copy(PACKAGE, tmp_path)
    shutil.copy(REFERENCE / "openapi.json", tmp_path)
    folder = installed(tmp_path, "the linter")
    ran = subprocess.run(
        [str(folder / "node_modules" / ".bin" / "redocly"), "lint", "openapi.json", "--max-problems=20"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "REDOCLY_TELEMETRY": "off"},
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "Warning was generated" not in said, said

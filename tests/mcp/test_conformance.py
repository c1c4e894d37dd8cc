"""The protocol's conformance suite: its scenarios for tools, prompts and resources, against a node's /mcp."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.journeys.running_node import RunningNode
from tests.npm import installed

PACKAGE = Path(__file__).parent / "conformance" / "package.json"  # 0.1.13 is the last that runs with Node.js 20
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "prompts-list",
    "resources-list",
    "dns-rebinding-protection",
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the suite is installed; skips where it cannot be had."""
    folder = tmp_path_factory.mktemp("conformance")
    shutil.copy(PACKAGE, folder)
    return installed(folder, "the conformance suite of MCP")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_node_passes_the_scenario_with_no_failure_and_no_warning(
    suite: Path, shared_node: RunningNode, scenario: str
) -> None:
    ran = subprocess.run(
        [
            str(suite / "node_modules" / ".bin" / "conformance"),
            "server",
            "--url",
            f"{shared_node.url}/mcp",
            "--scenario",
            scenario,
        ],
        cwd=suite,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "HOME": str(suite)},
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "0 failed, 0 warnings" in said, said

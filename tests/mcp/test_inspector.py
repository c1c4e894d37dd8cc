"""The MCP inspector's command line, which is what a person tries a server with, lists and calls the tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from producers.mcp.catalogue import CATALOGUE
from tests.journeys.running_node import KLEDGER, ROOT, RunningNode
from tests.npm import installed

PACKAGE = Path(__file__).parent / "inspector" / "package.json"


class Inspector:
    """The installed command line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it once, with a home of its own."""
        return subprocess.run(
            [str(self._folder / "node_modules" / ".bin" / "mcp-inspector"), "--cli", *words],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            cwd=ROOT,
            env={**os.environ, "HOME": str(self._folder)},
        )

    def told(self, *words: str) -> dict[str, Any]:
        """What it prints, which has to be one document."""
        ran = self.run(*words)
        assert ran.returncode == 0, ran.stderr
        document: dict[str, Any] = json.loads(ran.stdout)
        return document


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    """The inspector with its packages; skips where it cannot be had."""
    folder = tmp_path_factory.mktemp("inspector")
    shutil.copy(PACKAGE, folder)
    installed(folder, "the MCP inspector")
    inspector = Inspector(folder)
    if (ran := inspector.run("--version")).returncode:
        pytest.skip(f"the MCP inspector does not run with this version of node: {ran.stderr.strip()[-300:]}")
    return inspector


def test_it_finds_every_tool_and_no_schema_that_some_client_could_not_read(
    inspector: Inspector, shared_node: RunningNode
) -> None:
    ran = inspector.run(f"{shared_node.url}/mcp", "--transport", "http", "--method", "tools/list", "--strict")
    assert (ran.returncode, ran.stderr) == (0, ""), "--strict names what is not portable"
    assert [tool["name"] for tool in json.loads(ran.stdout)["tools"]] == [tool.name for tool in CATALOGUE]


def test_what_it_saves_over_http_it_finds_over_stdio(inspector: Inspector, shared_node: RunningNode) -> None:
    call = ("--method", "tools/call", "--tool-name")
    over_http = (f"{shared_node.url}/mcp", "--transport", "http", "--header", "X-Ledger-Agent: inspector")
    item = ("task=检查水泵", "content=Replace the seal first.", 'types=["tool"]', "score=4")
    saved = inspector.told(*over_http, *call, "knowledge_save", "--tool-arg", *item)
    item_id = saved["structuredContent"]["id"]
    over_stdio = ("-e", "KLEDGER_AGENT=inspector", "-e", f"KLEDGER_URL={shared_node.url}", "--", *KLEDGER, "mcp")
    found = inspector.told(*call, "knowledge_search", "--tool-arg", "query=检查水泵", "top_k=1", *over_stdio)
    assert [one["id"] for one in found["structuredContent"]["results"]] == [item_id]
    refused = inspector.run(*over_http, *call, "knowledge_update", "--tool-arg", "knowledge_id=never-saved")
    assert refused.returncode != 0
    assert refused.stdout, refused.stderr
    assert "changes nothing" in json.loads(refused.stdout)["content"][0]["text"]

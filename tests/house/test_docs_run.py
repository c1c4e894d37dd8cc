"""Does what the documents tell a reader to type really work?

Each page has a node of its own, on free ports. Its `bash`, `python` and `sql` blocks
are run in their order, from an empty folder; a block under another name (`sh`, `text`, `json`, `js`) is not. In the
README a `text` block after one that was run is its output, but for numbers, times and random ids. Pages other than
the README and the tutorial, which import the sample themselves, find it imported.
A page writes the default address, and an attach statement without its token; here both mean the page's node.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import ROOT, Block, blocks, documents
from tests.openai_chat import ChatEndpoint
from tests.openai_server import embedding_endpoint

DEFAULT_ADDRESS = "127.0.0.1:8420"
ATTACH = "ATTACH 'quack:127.0.0.1:9494' AS kl (TOKEN '…')"
RUN = {
    "bash": ["bash", "-euo", "pipefail", "-c", "{text}"],
    "python": [sys.executable, "-W", "error", "-c", "{text}"],
    "sql": ["kledger", "sql", "{text}"],
}
READY_SECONDS = 60.0
# Pages whose node has a model: the local server's, which answers whatever is asked.
WITH_MODEL = {"use-a-model.md", "an-agent-that-learns-from-its-mistakes.md"}
PAGES = [page for page in documents() if any(block.language in RUN for block in blocks(page))]


class Reader:
    """Somebody who types what a page says: a folder, a path with `kledger` on it, and the page's node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        programs = folder / "programs"
        programs.mkdir()
        command = programs / "kledger"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m producers.cli.main "$@"\n')
        command.chmod(0o755)
        # What the machine's own settings say must not decide here.
        self.environment = {name: value for name, value in os.environ.items() if "KLEDGER" not in name}
        self.environment |= {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "KLEDGER_URL": f"http://{self.address}",
            "KLEDGER_DATA": str(folder / "data"),
            "COLUMNS": "100",
        }
        self.desk = folder / "desk"
        self.desk.mkdir()

    def run(self, language: str, text: str) -> subprocess.CompletedProcess[str]:
        """Type one block; waits for its end."""
        typed = text.replace(DEFAULT_ADDRESS, self.address)
        if ATTACH in typed:
            attach = self.run("bash", "kledger sql --json")
            typed = typed.replace(ATTACH, json.loads(attach.stdout)["statement"])
        command = [part.replace("{text}", typed) for part in RUN[language]]
        return subprocess.run(
            command, cwd=self.desk, env=self.environment, capture_output=True, text=True, timeout=100, check=False
        )

    def start_node(self) -> subprocess.Popen[bytes]:
        """`kledger up`, ready to answer."""
        log = (self.folder / "node.log").open("wb")
        node = subprocess.Popen(
            ["kledger", "up", "--data", str(self.folder / "data"), "--http", self.address],
            cwd=self.desk,
            env=self.environment,
            stdout=log,
            stderr=log,
        )
        log.close()
        deadline = time.monotonic() + READY_SECONDS
        while not self._healthy():
            if node.poll() is not None or time.monotonic() > deadline:
                node.kill()
                pytest.fail(f"no node came up: {(self.folder / 'node.log').read_text()}")
            time.sleep(0.05)
        return node

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@pytest.fixture
def reader(tmp_path: Path, page: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    with embedding_endpoint() as models:
        if page.name in WITH_MODEL:
            reader.environment |= {"KLEDGER_MODEL": "m", "KLEDGER_MODEL_URL": models.url, "KLEDGER_MODEL_KEY": "k"}
            answers_anything(models.chat)
        node = reader.start_node()
        try:
            yield reader
        finally:
            node.terminate()
            node.wait(30)


def answers_anything(chat: ChatEndpoint) -> None:
    """What a model might say to each task."""
    chat.says({"content": "Four minutes, for soft ones.", "task": None, "reason": "as asked"}, to="<feedback>")
    drained = "Drain the queue first (billing drain --wait), then kill the process. Never during a batch."
    chat.says({"content": drained, "task": None, "reason": "two cases"}, to="Kill the process; the supervisor")
    found = {"type": "user_profile", "task": "Making tea", "content": "Without sugar.", "category": "habit"}
    chat.says({"items": [{**found, "domain": "food", "message_ids": []}]}, to="<message id=")
    chat.says({"verdicts": []}, to="<new item=")
    chat.says({"ids": ["boil-eggs"]}, to="<query>")


def said(block: Block, done: subprocess.CompletedProcess[str]) -> str:
    return f"{block} ended with {done.returncode}:\n{block.text}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_the_page_runs(page: Path, reader: Reader) -> None:
    if not any("import --sample" in block.text for block in blocks(page)):
        assert reader.run("bash", "kledger import --sample").returncode == 0
    printed = ""
    for block in blocks(page):
        if block.language in RUN:
            done = reader.run(block.language, block.text)
            assert done.returncode == 0, said(block, done)
            printed = done.stdout
        elif block.language == "text" and page.name == "README.md" and printed:
            assert outline(block.text) == outline(printed), f"{block}: this is what it prints now:\n{printed}"
            printed = ""


def outline(output: str) -> list[str]:
    """Output without what differs from run to run: numbers, times, random ids, and the space they take."""
    plain = re.sub(r"[0-9a-f]{16,}|\d[\d,.:TZ-]*", "#", output)
    lines = (" ".join(line.replace("─", "").split()) for line in plain.splitlines())
    return [line for line in lines if line]


def test_the_documents_have_blocks_to_run() -> None:
    languages = {block.language for page in PAGES for block in blocks(page)}
    assert languages >= RUN.keys()

"""Does what the documents tell a reader to type really work?

Each page has a node of its own, on a free port. Its `bash`, `python` and `sql` blocks
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
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import ROOT, Block, blocks, documents
from tests.journeys.running_node import running
from tests.openai_chat import ChatEndpoint
from tests.openai_server import embedding_endpoint

DEFAULT_ADDRESS = "127.0.0.1:8420"
ATTACH = "ATTACH 'quack:127.0.0.1:9494' AS kl (TOKEN '…')"
RUN = {
    "bash": ["bash", "-euo", "pipefail", "-c", "{text}"],
    "python": [sys.executable, "-W", "error", "-c", "{text}"],
    "sql": ["kledger", "sql", "{text}"],
}
# Pages whose node has a model: the local server's, which answers whatever is asked.
WITH_MODEL = {"use-a-model.md", "an-agent-that-learns-from-its-mistakes.md"}
PAGES = [page for page in documents() if any(block.language in RUN for block in blocks(page))]


class Reader:
    """Somebody who types what a page says: a folder, a path with `kledger` on it, and the page's node."""

    def __init__(self, folder: Path, url: str) -> None:
        self.address = url.removeprefix("http://")
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
            "KLEDGER_URL": url,
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


@pytest.fixture(scope="module")
def with_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a node that was stopped, with the sample in it."""
    folder = tmp_path_factory.mktemp("sample")
    with running(folder / "data") as node:
        assert Reader(folder, node.url).run("bash", "kledger import --sample").returncode == 0
    return folder / "data"


@pytest.fixture
def reader(tmp_path: Path, page: Path, with_sample: Path) -> Iterator[Reader]:
    if not any("import --sample" in block.text for block in blocks(page)):
        shutil.copytree(with_sample, tmp_path / "data")
    with embedding_endpoint() as models:
        settings = {}
        if page.name in WITH_MODEL:
            settings = {"KLEDGER_MODEL": "m", "KLEDGER_MODEL_URL": models.url, "KLEDGER_MODEL_KEY": "k"}
            answers_anything(models.chat)
        with running(tmp_path / "data", env=settings) as node:
            yield Reader(tmp_path, node.url)


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

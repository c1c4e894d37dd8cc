"""Does what the documents tell a reader to type really work?

The README and two tutorials begin at nothing: what they have typed is typed into terminals that know nothing of each
other (tests/house/newcomer.py), from `make setup` and `kledger up` on, and in the README each command is a process of
its own from nothing, as a reader's is. All other pages are read by one person after another in one folder, with one
node and the sample, the last page first: so none needs what an earlier one left, and none is surprised by it. The
`bash`, `python` and `sql` blocks of a page are run in their order; a block under another name (`sh`, `text`, `json`,
`js`) is not, but for an `sh` block that starts the page's node, or one beside it. After a block that has `pip install`
typed, programs find the packages that it names and no other. In the README a `text` block after one that was run is
its output, but for numbers, times and random ids.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.free_ports import free_address
from tests.house.newcomer import Done, Newcomer, installs, starts_a_node, starts_another_node
from tests.house.project import ROOT, Block, blocks, documents
from tests.journeys.running_node import running
from tests.openai_chat import ChatEndpoint
from tests.openai_server import embedding_endpoint

RUN = ("bash", "python", "sql")
# Pages whose node has a model: the local server's, which answers whatever is asked.
WITH_MODEL = {"use-a-model.md", "an-agent-that-learns-from-its-mistakes.md"}
PAGES = [page for page in reversed(documents()) if any(block.language in RUN for block in blocks(page))]
FROM_NOTHING = {"README.md", "first-steps.md", "an-agent-that-learns-from-its-mistakes.md"}


@dataclass(frozen=True)
class Project:
    """A folder with a node."""

    folder: Path
    address: str


def _data(folder: Path) -> Path:
    """Where a node that was started on this reader's desk keeps what it has."""
    desk = folder / "desk"
    desk.mkdir()
    return desk / ".kledger"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The folder of somebody who has a node there, and has imported the sample."""
    folder = tmp_path_factory.mktemp("project")
    with running(_data(folder)) as node:
        address = node.url.removeprefix("http://")
        reader = Newcomer(folder, address, prepared=True)
        assert reader.types("bash", "kledger import --sample").returncode == 0
        yield Project(folder, address)


@pytest.fixture
def reader(tmp_path: Path, page: Path, request: pytest.FixtureRequest) -> Iterator[Newcomer]:
    with contextlib.ExitStack() as ending:
        settings = {}
        if page.name in WITH_MODEL:
            models = ending.enter_context(embedding_endpoint())
            settings = {"KLEDGER_MODEL": "m", "KLEDGER_MODEL_URL": models.url, "KLEDGER_MODEL_KEY": "k"}
            answers_anything(models.chat)
        if page.name in FROM_NOTHING:
            newcomer = Newcomer(tmp_path, free_address(), settings, cold=page.name == "README.md")
        elif page.name in WITH_MODEL:
            node = ending.enter_context(running(_data(tmp_path), env=settings))
            newcomer = Newcomer(tmp_path, node.url.removeprefix("http://"), prepared=True)
        else:
            project: Project = request.getfixturevalue("project")
            newcomer = Newcomer(project.folder, project.address, prepared=True)
        ending.callback(newcomer.close)
        yield newcomer


def answers_anything(chat: ChatEndpoint) -> None:
    """What a model might say to each task."""
    chat.says({"content": "Four minutes, for soft ones.", "task": None, "reason": "as asked"}, to="<feedback>")
    drained = "Drain the queue first (billing drain --wait), then kill the process. Never during a batch."
    chat.says({"content": drained, "task": None, "reason": "two cases"}, to="Kill the process; the supervisor")
    found = {"type": "user_profile", "task": "Making tea", "content": "Without sugar.", "category": "habit"}
    chat.says({"items": [{**found, "domain": "food", "message_ids": []}]}, to="<message id=")
    chat.says({"verdicts": []}, to="<new item=")
    chat.says({"ids": ["boil-eggs"]}, to="<query>")
    chat.says({"word": "yes"}, to="Do you answer?")


def said(block: Block, done: Done) -> str:
    return f"{block} ended with {done.returncode}:\n{block.text}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_the_page_runs(page: Path, reader: Newcomer) -> None:
    """And what it leaves in a checkout is ignored there."""
    printed, before = "", set(reader.desk.iterdir())
    for block in blocks(page):
        if packages := installs(block.text):
            reader.installs(packages)
        elif block.language == "sh" and (
            starts_another_node(block.text) or (page.name in FROM_NOTHING and starts_a_node(block.text))
        ):
            reader.runs_a_node(block.text)
        elif block.language in RUN:
            done = reader.types(block.language, block.text)
            assert done.returncode == 0, said(block, done)
            printed = done.stdout
        elif block.language == "text" and page.name == "README.md" and printed:
            assert outline(block.text) == outline(printed), f"{block}: this is what it prints now:\n{printed}"
            printed = ""
    left = {path.name for path in set(reader.desk.iterdir()) - before}
    assert left <= {line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}


def test_the_tutorial_comes_to_its_end_without_a_model(tmp_path: Path) -> None:
    """With what it says to do then: the lines of the model left out, and `revise` in the place of `evolve`."""
    (page,) = [each for each in PAGES if each.name == "an-agent-that-learns-from-its-mistakes.md"]
    newcomer = Newcomer(tmp_path, free_address())
    revised = False
    try:
        for block in blocks(page):
            if block.language == "sh" and starts_a_node(block.text):
                newcomer.runs_a_node(re.sub(r"^export KLEDGER_MODEL.*\n", "", block.text, flags=re.MULTILINE))
                continue
            by_hand = block.language == "sh" and "kledger revise" in block.text
            if by_hand or (block.language in RUN and "kledger evolve" not in block.text):
                done = newcomer.types("bash" if by_hand else block.language, block.text)
                assert done.returncode == 0, said(block, done)
            revised |= by_hand
    finally:
        newcomer.close()
    assert revised


def test_pages_that_begin_at_nothing_set_the_product_up_and_start_a_node() -> None:
    """So that a page that is renamed, or loses its first lines, does not pass by having nothing to run."""
    for name in FROM_NOTHING:
        (page,) = [each for each in PAGES if each.name == name]
        texts = [block.text for block in blocks(page)]
        assert any("make setup" in text and starts_a_node(text) for text in texts), name


def test_a_second_terminal_knows_nothing_of_the_first(tmp_path: Path) -> None:
    """What a page's reader would meet: a path that was exported in one terminal alone."""
    newcomer = Newcomer(tmp_path, free_address())
    assert newcomer.types("bash", "kledger --version").returncode == 127
    assert newcomer.types("bash", 'make setup\nexport PATH="$PWD/.venv/bin:$PATH"').returncode == 0
    assert newcomer.types("bash", "kledger --version").returncode == 0
    assert newcomer.types("python", "import kledger").returncode == 0
    newcomer.terminal = newcomer.new_terminal()
    found = newcomer.types("bash", "kledger --version")
    assert found.returncode == 127
    assert "command not found" in found.stderr


def test_a_program_finds_only_what_its_page_had_installed(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, free_address())
    newcomer.installs(installs("pip install duckdb==1.5.5"))
    assert newcomer.types("python", "import duckdb; duckdb.sql('SELECT 1')").returncode == 0
    missing = newcomer.types("python", "import pytz")
    assert "No module named 'pytz'" in missing.stderr


def outline(output: str) -> list[str]:
    """Output without what differs from run to run: numbers, times, random ids, and the space they take.

    A page may print an ellipsis in the place of such a number.
    """
    plain = re.sub(r"[0-9a-f]{16,}|\d[\d,.:TZ-]*|(?<!\S)…(?!\S)", "#", output)
    lines = (" ".join(line.replace("─", "").split()) for line in plain.splitlines())
    return [line for line in lines if line]


def test_the_documents_have_blocks_to_run() -> None:
    languages = {block.language for page in PAGES for block in blocks(page)}
    assert languages >= set(RUN)

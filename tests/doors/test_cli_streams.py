"""Where may a result go that is no file of its own: to an open descriptor, a device, a pipe, and nothing planted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kledger.contract.errors import InvalidPayload
from ledger.runtime.whole_file import check_directory_place, check_place, in_place
from producers.cli import result_files
from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode, commanded_node
from tests.patience import PATIENCE, comes_true

SOMEBODY = 65_534
RESULTS = (["sql", "SELECT 1", "--format", "csv", "--out"], ["prove", "x", "--into"])
"""Every command that writes its answer into a file of this machine, up to the name of the file."""


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with commanded_node(monkeypatch) as node:
        rows: dict[str, Any] = {"columns": ["a"], "types": ["int64"], "rows": [[7]], "truncated": False, "position": 1}
        node.says("POST /api/admin/sql", rows)
        signed = {"position": 1, "key": "k", "time": "2026-03-05T12:00:00Z"}
        node.says("POST /api/admin/prove", {"events": [], "checkpoint": signed})
        yield node


@pytest.fixture
def everybodys(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Path]]:
    """A directory like /tmp, and what makes an entry of it another account's."""
    if os.geteuid() == 0:

        def planted(entry: Path) -> Path:
            os.chown(entry, SOMEBODY, SOMEBODY, follow_symlinks=False)
            return entry

        with tempfile.TemporaryDirectory() as room:
            Path(room).chmod(0o1777)
            monkeypatch.setenv("TMPDIR", room)
            monkeypatch.setattr(tempfile, "tempdir", room)
            yield planted
        return
    if Path(tempfile.gettempdir()).stat().st_uid == os.geteuid():
        pytest.skip("the directory for temporary files is nobody else's here")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    yield lambda entry: entry


def name_in(folder: str) -> Path:
    """A name that nothing has yet, where everybody may write."""
    with tempfile.NamedTemporaryFile(dir=folder) as taken:
        return Path(taken.name)


def kledger(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("words", RESULTS, ids=lambda words: words[0])
def test_a_link_or_a_fifo_that_another_account_planted_is_refused_before_the_node_is_asked(
    node: ScriptedNode, everybodys: Callable[[Path], Path], tmp_path: Path, words: list[str]
) -> None:
    kept, there = tmp_path / "kept", name_in(tempfile.gettempdir())
    kept.write_text("kept")
    for target in (kept, tmp_path / "new", tmp_path):
        there.symlink_to(target)
        everybodys(there)
        try:
            for stated in (there, there / "below"):
                ran = kledger(*words, str(stated), "--force")
                assert (ran.exit_code, "symbolic link of another account" in ran.stderr) == (1, True), ran.output
        finally:
            there.unlink()
    os.mkfifo(there)
    everybodys(there)
    ours = tmp_path / "ours"
    ours.symlink_to(there)
    try:
        for stated in (there, ours):
            ran = kledger(*words, str(stated))
            assert (ran.exit_code, "FIFO of another account" in ran.stderr) == (1, True), ran.output
    finally:
        there.unlink()
    assert node.asked == []
    assert kept.read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "ours"]


def test_nothing_is_made_through_a_planted_link_by_whoever_makes_files(
    everybodys: Callable[[Path], Path], tmp_path: Path
) -> None:
    there = name_in(tempfile.gettempdir())
    there.symlink_to(tmp_path / "new")
    everybodys(there)
    try:
        for check in (check_place, check_directory_place, lambda file: in_place(file).__enter__()):
            with pytest.raises(InvalidPayload, match="another account"):
                check(there)
    finally:
        there.unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("node")
def test_a_link_of_ones_own_is_followed_wherever_it_stands(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "rows.csv")
    assert kledger("sql", "SELECT 1", "--out", str(link)).exit_code == 0
    assert (tmp_path / "rows.csv").read_text() == "a\n7\n"
    assert link.is_symlink()


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("words", RESULTS, ids=lambda words: words[0])
def test_a_fifo_that_nobody_reads_is_refused_and_one_that_is_read_has_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with monkeypatch.context() as short:
        short.setattr(result_files, "READER_WITHIN", 0.0)
        ran = kledger(*words, str(fifo))
        assert (ran.exit_code, "nobody reads this FIFO" in ran.stderr) == (1, True), ran.output
    monkeypatch.setattr(result_files, "READER_WITHIN", 100.0)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    assert kledger(*words, str(fifo)).exit_code == 0
    reader.join()
    assert read[0].startswith((b"a\n7\n", b"{"))
    assert fifo.is_fifo()


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHON": sys.executable}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("words", RESULTS, ids=lambda words: words[0])
def test_dev_stdout_is_where_the_shell_says_and_has_the_answer_alone(tmp_path: Path, words: list[str]) -> None:
    command = f"\"$PYTHON\" -m producers.cli.main {words[0]} '{words[1]}' {' '.join(words[2:])}"
    (tmp_path / "log").write_text("before\n")
    ran = shell(
        f"{command} /dev/stdout | cat > piped && {command} /dev/stdout >> log && {command} /dev/stdout > file && "
        f"{command} >(cat > substituted) > said && wait $! && {command} /dev/null",
        tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    answer = (tmp_path / "piped").read_text()
    assert answer.startswith(("a\n7\n", "{"))
    assert " of position" not in answer
    assert (tmp_path / "file").read_text() == answer
    assert (tmp_path / "log").read_text() == "before\n" + answer
    assert (tmp_path / "substituted").read_text() == answer
    assert (tmp_path / "said").read_text() != answer


_CLOSING = "import os, sys; os.close(int(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
_COMMAND = ["-c", "from producers.cli.entry import main; main()"]


@pytest.mark.parametrize("closed", [0, 1, 2])
async def test_a_node_runs_with_a_standard_stream_that_whoever_started_it_closed(closed: int, tmp_path: Path) -> None:
    """The event loop aborted the process over a descriptor with a number of these."""
    log = tmp_path / "said"
    words = ["up", "--data", str(tmp_path / "data"), "--http", "127.0.0.1:0", "--quack", "off"]
    with log.open("wb") as said:
        node = subprocess.Popen(
            [sys.executable, "-c", _CLOSING, str(closed), *_COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            served = tmp_path / "data" / "views" / "current"
            await comes_true(lambda: served.exists() or node.poll() is not None)  # nobody may hear that it is ready
            assert served.exists(), log.read_text()
        finally:
            node.terminate()
        assert node.wait(PATIENCE) == 0, log.read_text()


def test_a_command_in_a_directory_that_was_removed_says_so(tmp_path: Path) -> None:
    removing = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    for words in (["up"], ["status"], ["backup", "there"]):
        (tmp_path / "gone").mkdir()
        ran = subprocess.run(
            [sys.executable, "-c", removing, *_COMMAND, *words],
            cwd=tmp_path / "gone",
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        said = "kledger: the current directory is not there any more: change into one that is\n"
        assert (ran.returncode, ran.stderr) == (1, said)

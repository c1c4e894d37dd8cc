"""The progress bar of a command: its rate is of what was done while one looked."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from kledger.contract.errors import NodeUnreachable
from producers.cli import progress as of_commands
from producers.cli.progress import Bar


def test_the_rate_of_a_step_leaves_out_what_was_done_before_it_was_shown() -> None:
    now = 100.0
    progress = Progress(get_time=lambda: now)
    bar = Bar(progress, progress.add_task("index", total=None, text=""))

    def shown(count: int) -> str:
        bar.at(count, total=8_865)
        return str(progress.tasks[0].fields["text"])

    assert shown(5_500) == "5,500 of 8,865"
    now += 2
    assert shown(7_500) == "7,500 of 8,865  1,000/s"
    bar.step("again")
    assert shown(500) == "500 of 8,865"
    now += 1
    assert shown(600) == "600 of 8,865  100/s"


def test_a_rate_that_is_told_is_shown_at_once() -> None:
    progress = Progress()
    bar = Bar(progress, progress.add_task("rebuild", total=None, text=""))
    bar.moved(10, 0, rate=1_234.0)
    assert progress.tasks[0].fields["text"] == "10  1,234/s"


@pytest.mark.parametrize("terminal", [True, False])
def test_no_empty_bar_stands_before_an_error(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    for done, is_left in ((0, False), (3, True)):
        said = io.StringIO()
        console = Console(file=said, force_terminal=terminal, force_interactive=terminal, width=80)
        monkeypatch.setattr(of_commands, "stderr", lambda console=console: console)
        with pytest.raises(NodeUnreachable):
            _fails_after(done)
        left = said.getvalue().rpartition("\x1b[2K")[2] if terminal else said.getvalue()
        assert ("import" in left) is is_left, repr(said.getvalue())
        if not (is_left or terminal):
            assert left == ""


def _fails_after(done: int) -> None:
    with of_commands.bar("import", 10) as shown:
        shown.at(done, total=10)
        shown.read(done)
        raise NodeUnreachable("no node answers")


def test_a_bar_of_what_ends_well_stays_however_little_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(of_commands, "stderr", lambda: Console(file=said, force_terminal=False, width=80))
    with of_commands.bar("import", 10):
        pass
    assert "import" in said.getvalue()

"""The progress bar of a command: its rate is of what was done while one looked."""

from __future__ import annotations

from rich.progress import Progress

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

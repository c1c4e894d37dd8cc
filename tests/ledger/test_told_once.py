"""Does a state that lasts fill the log?"""

from __future__ import annotations

from structlog.testing import capture_logs

from ledger.runtime.log_once import Outage, Seldom


def test_a_trouble_is_one_line_when_it_begins_and_one_when_it_ends_with_how_often_it_was_met() -> None:
    with capture_logs() as lines:
        outage = Outage("lost", "back")
        outage.over()
        for _ in range(470):
            outage.met("connection refused", position=7)
        outage.over(position=9)
        outage.over()
    assert [(line["event"], line["log_level"]) for line in lines] == [("lost", "warning"), ("back", "info")]
    assert (lines[0]["error"], lines[0]["position"]) == ("connection refused", 7)
    assert (lines[1]["times"], lines[1]["position"]) == (470, 9)


def test_what_several_meet_ends_with_the_last_of_them() -> None:
    with capture_logs() as lines:
        outage = Outage("lost", "back")
        for who in (1, 2, 3):
            outage.met(who=who)
        outage.over(1)
        outage.forgotten(2)
        assert len(lines) == 1
        outage.over(3)
        outage.met(who=1)
    assert [line["event"] for line in lines] == ["lost", "back", "lost"]


def test_another_error_of_the_same_trouble_is_a_line_and_errors_without_end_are_not() -> None:
    with capture_logs() as lines:
        outage = Outage("lost", "back")
        for number in range(100):
            outage.met(f"error {number % 2}")
        assert [line["error"] for line in lines] == ["error 0", "error 1"]
        for number in range(100):
            outage.met(f"waited {number} s")
        assert len(lines) < 10


def test_what_anybody_can_cause_is_a_line_a_minute_with_the_number_of_those_between() -> None:
    now = [0.0]
    with capture_logs() as lines:
        seldom = Seldom(clock=lambda: now[0])
        for _ in range(50):
            seldom.warning("refused", kind="token_expired")
        seldom.warning("refused", kind="token_revoked")
        now[0] = 61.0
        seldom.warning("refused", kind="token_expired")
    assert [line.get("left_out") for line in lines] == [None, None, 49]

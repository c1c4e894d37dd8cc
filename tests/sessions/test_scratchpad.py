"""A scratchpad is patched by RFC 7396, is its session's, and ends when nobody says anything for long."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.event import JsonObject
from ledger.sessions.settings import SessionSettings
from ledger.sessions.steady import SteadyClock
from producers.operations.sessions import appending, closing, scratchpad
from producers.operations.sessions.closing import housekeeping
from tests.doors.http_door import ALICE, BOB, Door, refusal

SOURCE: JsonObject = {  # source 004, "中间推理状态"
    "session_id": "sess_xxx",
    "scratchpad": {
        "current_goal": "实现用户注册功能",
        "sub_goals": ["设计数据库表", "实现 API", "编写测试"],
        "completed": ["设计数据库表"],
        "current_step": "实现 API",
        "decisions": [{"what": "使用 bcrypt 加密密码", "why": "安全性最佳实践"}],
        "blockers": [],
    },
}
PAD = "/api/sessions/sess_xxx/scratchpad"
MINUTE = 60_000_000


class Clock:
    """Microseconds since 1970, as the test has it."""

    def __init__(self) -> None:
        self.now = 1_000 * MINUTE

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (appending, scratchpad, closing):
        monkeypatch.setattr(module, "now_us", clock)
    return clock


async def say(door: Door, message_id: str) -> None:
    said = {"messages": [{"id": message_id, "role": "user", "content": "x"}]}
    answer = await door.post("/api/sessions/sess_xxx/messages", json=said, headers=ALICE)
    assert answer.status_code == 200, answer.text


async def note(door: Door, **fields: Any) -> JsonObject:
    answer = await door.patch(PAD, json={"scratchpad": fields}, headers=ALICE)
    assert answer.status_code == 200, answer.text
    noted: JsonObject = answer.json()["scratchpad"]
    return noted


async def noted(door: Door) -> JsonObject:
    answer = await door.get(PAD, headers=ALICE)
    assert answer.status_code == 200, answer.text
    found: JsonObject = answer.json()["scratchpad"]
    return found


async def test_the_example_of_the_source_is_accepted_and_answered_as_written(door: Door) -> None:
    await say(door, "a")
    assert (await door.get(PAD, headers=ALICE)).json() == {"session_id": "sess_xxx", "scratchpad": {}}
    answer = await door.patch(PAD, json=SOURCE, headers=ALICE)
    assert (answer.status_code, answer.json()) == (200, SOURCE)
    assert (await door.get(PAD, headers=ALICE)).json() == SOURCE


async def test_a_patch_changes_what_it_names_null_removes_and_a_list_is_replaced(door: Door) -> None:
    await say(door, "a")
    await note(door, **SOURCE["scratchpad"])
    changed = await note(door, current_step="编写测试", completed=["设计数据库表", "实现 API"], blockers=None)
    assert changed == {
        **{name: value for name, value in SOURCE["scratchpad"].items() if name != "blockers"},
        "current_step": "编写测试",
        "completed": ["设计数据库表", "实现 API"],
    }
    answer = await door.patch(PAD, json={"scratchpad": None}, headers=ALICE)
    assert answer.json()["scratchpad"] == {}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"scratchpad": {"current_gaol": "x"}},
        {"scratchpad": {"sub_goals": "x"}},
        {"scratchpad": {"decisions": [{"why": "x"}]}},
        {"scratchpad": {"current_step": "x" * 10_001}},
        {"scratchpad": {}, "session_id": "another"},
    ],
    ids=["nothing", "typo", "no list", "no what", "too long", "another session"],
)
async def test_what_is_no_scratchpad_is_refused_and_changes_nothing(door: Door, body: Any) -> None:
    await say(door, "a")
    await note(door, current_step="before")
    refusal(await door.patch(PAD, json=body, headers=ALICE), 422, "invalid_payload")
    assert await noted(door) == {"current_step": "before"}


async def test_it_ends_after_thirty_idle_minutes_which_messages_and_notes_renew(door: Door, clock: Clock) -> None:
    await say(door, "a")
    await note(door, current_step="one")
    clock.now += 29 * MINUTE
    await say(door, "b")
    clock.now += 29 * MINUTE
    assert await noted(door) == {"current_step": "one"}
    await note(door, current_goal="two")
    clock.now += 29 * MINUTE
    assert await noted(door) == {"current_step": "one", "current_goal": "two"}
    clock.now += 2 * MINUTE
    assert await noted(door) == {}
    await say(door, "c")
    assert await noted(door) == {}, "what has ended does not come back with a message"
    assert await note(door, blockers=["three"]) == {"blockers": ["three"]}


async def test_a_session_in_whose_scratchpad_is_noted_is_not_idle(door: Door, clock: Clock) -> None:
    await say(door, "a")
    clock.now += 20 * MINUTE
    await note(door, current_step="one")
    clock.now += 20 * MINUTE
    await door.desk.view.wait_for(await door.head())
    assert await housekeeping(door.desk) == (0, 0)
    clock.now += 11 * MINUTE
    assert await housekeeping(door.desk) == (1, 0)
    assert await noted(door) == {}


async def test_nobody_else_reads_or_patches_it(door: Door) -> None:
    await say(door, "a")
    await note(door, current_step="mine")
    refusal(await door.get(PAD, headers=BOB), 404, "unknown_session")
    refusal(await door.patch(PAD, json={"scratchpad": {"current_step": "b"}}, headers=BOB), 404, "unknown_session")
    assert (await door.get(f"{PAD}?owner=user:alice")).json()["scratchpad"] == {"current_step": "mine"}


async def test_words_are_removed_thirty_days_after_the_last_one(door: Door, clock: Clock) -> None:
    await say(door, "a")
    clock.now += 31 * MINUTE
    await door.desk.view.wait_for(await door.head())
    assert await housekeeping(door.desk) == (1, 0)
    await door.desk.view.wait_for(await door.head())
    clock.now += 29 * 24 * 60 * MINUTE
    assert await housekeeping(door.desk) == (0, 0)
    clock.now += 24 * 60 * MINUTE
    assert await housekeeping(door.desk) == (0, 1)
    await door.desk.view.wait_for(await door.head())
    assert await housekeeping(door.desk) == (0, 0)
    refusal(await door.get("/api/sessions/sess_xxx/messages", headers=ALICE), 404, "unknown_session")


async def test_no_word_is_removed_by_a_clock_that_is_a_year_ahead_for_a_while(door: Door, clock: Clock) -> None:
    beside = [0.0]
    steady = SteadyClock(lambda: clock.now / 1e6, lambda: beside[0])

    async def round_after(seconds: float, *, set_ahead: float = 0.0) -> tuple[int, int]:
        beside[0] += seconds
        clock.now += round((seconds + set_ahead) * 1e6)
        await door.desk.view.wait_for(await door.head())
        return await housekeeping(door.desk, lambda: steady.seconds() >= 3_600)

    await say(door, "a")
    assert await round_after(7_200) == (1, 0)
    year = 365 * 86_400.0
    assert await round_after(30, set_ahead=year) == (0, 0)
    assert await round_after(3_500) == (0, 0)
    assert await round_after(30, set_ahead=-year) == (0, 0)
    assert (await door.get("/api/sessions/sess_xxx/messages", headers=ALICE)).json()["total"] == 1
    assert await round_after(31 * 86_400) == (0, 1), "an age by a clock that goes on is an age"


async def test_a_clock_is_believed_once_a_node_has_seen_it_go_on_for_an_hour() -> None:
    wall, beside = [1e9], [5.0]
    steady = SteadyClock(lambda: wall[0], lambda: beside[0])
    assert steady.seconds() == 0
    wall[0], beside[0] = wall[0] + 1_000 + 59, beside[0] + 1_000
    assert steady.seconds() == 1_000, "set right by a little"
    for jump in (86_400, -3_600):
        wall[0], beside[0] = wall[0] + 10 + jump, beside[0] + 10
        assert steady.seconds() == 0
        wall[0], beside[0] = wall[0] + 10, beside[0] + 10
        assert steady.seconds() == 10
    assert SessionSettings().steady_seconds == 3_600
    assert SessionSettings(days=0.5).steady_seconds == 1_800

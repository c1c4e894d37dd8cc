"""The words behind an id, and the summaries of a session, are no more than fit into an answer, and it says so."""

from __future__ import annotations

import pytest

from ledger import one_answer
from ledger.sessions.subjects import SessionKey
from ledger.sessions.summaries import Summary, summary_id
from tests.doors.http_door import Door
from tests.sessions.test_http import AGENT, S, said

KEY = SessionKey("default", "agent:coder", "s1")
MANY = 20


async def _said(door: Door) -> list[str]:
    ids = [f"m-{n}" for n in range(1, MANY + 1)]
    body = said(*ids)
    for message in body["messages"]:
        message["content"] = "x" * 3_000
    assert (await door.post(f"{S}/s1/messages", json=body, headers=AGENT)).is_success
    return ids


@pytest.mark.parametrize("level", [2, 3])
async def test_the_words_behind_a_summary_are_as_many_as_fit_and_say_where_they_go_on(
    level: int, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await _said(door)
    store = door.desk.sessions
    assert store is not None
    head = await store.head(KEY)
    assert head is not None
    named = summary_id(level, 1, MANY)
    messages = tuple(ids) if level == 2 else (ids[0], ids[-1])
    assert await store.put_summary(KEY, Summary(named, level, 1, MANY, "all", messages=messages), 1, head.begun)
    path = f"{S}/s1/expand/{named}"
    whole = (await door.get(path, headers=AGENT)).json()
    assert [each["id"] for each in whole["messages"]] == ids
    assert "after" not in whole
    monkeypatch.setattr(one_answer, "MOST_BYTES", 12_000)
    answer = await door.get(path, headers=AGENT)
    assert len(answer.content) < 20_000
    found = [each["id"] for each in answer.json()["messages"]]
    following = answer.json()["after"]
    assert following == found[-1]
    while following is not None:
        page = (await door.get(f"{S}/s1/messages", params={"after": following}, headers=AGENT)).json()
        found += [each["id"] for each in page["messages"]]
        following = page["next"]
    assert found == ids


async def test_the_summaries_of_a_session_are_the_latest_that_fit(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    await _said(door)
    store = door.desk.sessions
    assert store is not None
    head = await store.head(KEY)
    assert head is not None
    for n in range(1, MANY):
        one = Summary(summary_id(2, n, n + 1), 2, n, n + 1, "y" * 3_000, messages=(f"m-{n}",))
        assert await store.put_summary(KEY, one, 1, head.begun)
    whole = (await door.get(f"{S}/s1/summaries", headers=AGENT)).json()
    assert len(whole["summaries"]) == MANY - 1
    assert "more" not in whole
    monkeypatch.setattr(one_answer, "MOST_BYTES", 12_000)
    answer = await door.get(f"{S}/s1/summaries", headers=AGENT)
    assert len(answer.content) < 20_000
    assert answer.json()["more"] is True
    assert answer.json()["summaries"] == whole["summaries"][-len(answer.json()["summaries"]) :]

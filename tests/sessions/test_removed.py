"""What was removed stays removed, whatever comes at once or again; and one session keeps no other from its end."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.event import NewEvent
from ledger.events.session import SessionOpened, session_entity_id
from ledger.one_answer import MOST_BYTES
from ledger.privacy.vault import MemoryVault
from ledger.sessions.head import Head
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.port import SessionStream
from ledger.sessions.store import MOST_OLDER, SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.summaries import Summary, summary_id
from ledger.sessions.tail import MOST_REMEMBERED
from producers.operations.sessions.closing import housekeeping
from tests.doors.http_door import ALICE, Door, refusal
from tests.sessions.test_http import AGENT, BOTH, S, append, listed

KEY = SessionKey("default", "agent:coder", "s1")
NOW = 1_000_000


def said(*ids: str, content: str = "a word", role: str = "user") -> list[dict[str, Any]]:
    return [{"id": each, "role": role, "content": content} for each in ids]


def summary(text: str) -> Summary:
    return Summary(summary_id(2, 1, 2), 2, 1, 2, text, messages=("a", "b"))


async def opened(store: SessionStore, at: int) -> Head:
    return (await store.append(KEY, Head(opened=at, begun=at), said("a", "b"), NOW)).head


async def test_a_summary_of_removed_words_is_neither_kept_nor_shown_for_the_next_ones(stream: SessionStream) -> None:
    store = SessionStore(stream, MemoryVault())
    first = await opened(store, 1)
    await store.purge(KEY)
    assert not await store.put_summary(KEY, summary("of the removed words"), NOW, first.begun)
    assert await stream.last(KEY.one("summary", summary_id(2, 1, 2))) is None
    second = await opened(store, 5)
    assert not await store.put_summary(KEY, summary("of the removed words"), NOW, first.begun)
    assert await store.summaries(KEY, second) == []
    assert await store.put_summary(KEY, summary("of the next ones"), NOW, second.begun)
    assert [each.text for each in await store.summaries(KEY, second)] == ["of the next ones"]


async def test_notes_of_removed_words_are_neither_kept_nor_shown_for_the_next_ones(stream: SessionStream) -> None:
    store = SessionStore(stream, MemoryVault())
    first = await opened(store, 1)
    noted = await store.scratchpad(KEY, first, NOW)
    await store.purge(KEY)
    assert not await store.note(KEY, {"current_goal": "removed"}, NOW, noted, first.begun)
    assert await stream.last(KEY.scratchpad()) is None
    second = await opened(store, 5)
    assert (await store.scratchpad(KEY, second, NOW)).document == {}


async def test_removing_or_closing_again_reaches_no_session_of_another_identity(door: Door) -> None:
    await append(door, AGENT, "s1", "of the agent")
    await append(door, BOTH, "s1", "of alice")
    for _ in range(2):
        assert (await door.delete(f"{S}/s1", headers=BOTH)).status_code == 200
    refused = await door.post(f"{S}/s1/close", headers=BOTH)
    refusal(refused, 404, "unknown_session")
    refused = await door.patch(f"{S}/s1/scratchpad", json={"scratchpad": {"current_goal": "g"}}, headers=BOTH)
    refusal(refused, 404, "unknown_session")
    (session,) = await listed(door, AGENT)
    assert (session["status"], session["messages"]) == ("open", 1)


async def test_what_is_sent_again_does_not_open_a_closed_session(door: Door) -> None:
    await append(door, ALICE, "s1", "a", "b")
    await door.post(f"{S}/s1/close", headers=ALICE)
    head = await door.head()
    assert (await append(door, ALICE, "s1", "a", "b"))["duplicates"] == 2
    assert await door.head() == head
    (session,) = await listed(door, ALICE)
    assert session["status"] == "closed"


async def test_a_session_whose_end_could_not_be_stated_is_not_opened(door: Door) -> None:
    user = {"X-Ledger-User": "~" * 192 + "a"}
    for length in range(190, 201):
        answer = await door.post(f"{S}/{'中' * length}/messages", json={"messages": said("a")}, headers=user)
        if answer.status_code == 200:
            assert (await door.delete(f"{S}/{'中' * length}", headers=user)).status_code == 200
        else:
            refusal(answer, 422, "illegal_subject")


async def test_one_session_that_cannot_be_ended_keeps_no_other_open(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "~" * 192 + "a"
    fact = SessionOpened(session_id="中" * 200, owner=f"user:{long}")
    await door.desk.ledger.append(NewEvent(fact, session_entity_id(fact.owner, fact.session_id), fact.owner))
    await append(door, ALICE, "s1", "a")
    await door.desk.view.wait_for(await door.head())
    monkeypatch.setattr("producers.operations.sessions.closing.now_us", lambda: 10**16)
    closed, _ = await housekeeping(door.desk)
    assert closed == 1


@pytest.mark.parametrize(
    "body", [{"role": "user", "tool_call_id": "c"}, {"role": "system", "tool_calls": [{"id": "c"}]}]
)
async def test_calls_are_an_assistants_and_their_results_a_tools(door: Door, body: dict[str, Any]) -> None:
    answer = await door.post(
        f"{S}/s1/messages", json={"messages": [{"id": "a", "content": "x", **body}]}, headers=ALICE
    )
    refusal(answer, 422, "invalid_payload")


async def test_no_message_takes_the_id_of_a_summary(door: Door) -> None:
    answer = await door.post(f"{S}/s1/messages", json={"messages": said("summary-2-1-10")}, headers=ALICE)
    refusal(answer, 422, "invalid_payload")


async def test_a_page_is_bounded_by_all_parts_of_its_messages(stream: SessionStream) -> None:
    store = SessionStore(stream, None)
    head = Head(opened=1, begun=1)
    for number in range(8):
        head = (await store.append(KEY, head, said(f"m-{number}", content="字" * 1024 * 1024), NOW)).head
    page = await store.page(KEY, 0, 40)
    assert 1 <= len(page) < 8
    assert sum(message.size for message in page[:-1]) < MOST_BYTES
    rest = await store.page(KEY, page[-1].position, 40)
    assert rest[0].number == page[-1].number + 1


async def test_many_large_prompts_are_read_as_far_as_their_bound_and_count_as_memory() -> None:
    store = SessionStore(MemorySessionStream(), None)
    head = Head(opened=1, begun=1)
    prompts = [f"p-{number}" for number in range(12)]
    for prompt in prompts:
        head = (await store.append(KEY, head, said(prompt, content="字" * 1024 * 1024, role="system"), NOW)).head
    head = (await store.append(KEY, head, said(*(f"m-{number}" for number in range(60))), NOW)).head
    tail = await store.tail(KEY, head)
    found = await store.older(KEY, tail, prompts)
    assert prompts[-1] in found
    assert prompts[0] not in found
    assert MOST_OLDER <= tail.held() <= MOST_REMEMBERED

"""Sessions over HTTP: what is appended is read by its owner, once and in order, and by nobody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ledger.event import NewEvent
from ledger.events.session import SessionClosed, SessionOpened, SessionRemoved, SessionSummarised
from ledger.events.usage import EXAMPLE_USAGE
from ledger.sessions.head import Head
from tests.doors.http_door import ALICE, BOB, Door, refusal
from tests.patience import PATIENCE

S = "/api/sessions"
AGENT = {"X-Ledger-Agent": "coder"}
BOTH = {**ALICE, **AGENT}


def said(*ids: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"messages": [{"id": each, "role": role, "content": f"the word {each}, 一句话", **more} for each in ids]}


async def append(door: Door, who: dict[str, str], session: str, *ids: str, **more: Any) -> dict[str, Any]:
    answer = await door.post(f"{S}/{session}/messages", json=said(*ids, **more), headers=who)
    assert answer.status_code == 200, answer.text
    kept: dict[str, Any] = answer.json()
    return kept


async def listed(door: Door, who: dict[str, str], **params: Any) -> list[dict[str, Any]]:
    answer = await door.get(S, params=params, headers=who)
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def test_a_session_opens_with_its_first_message_and_counts_an_id_once(door: Door) -> None:
    first = await append(door, ALICE, "s1", "a", "b")
    assert first == {"session_id": "s1", "appended": 2, "duplicates": 0, "count": 2, "position": await door.head()}
    again = await append(door, ALICE, "s1", "b", "c", "a")
    assert again == {**first, "appended": 1, "duplicates": 2, "count": 3}
    assert await door.head() == first["position"], "the log has no word of it"
    page = (await door.get(f"{S}/s1/messages", headers=ALICE)).json()
    assert [(each["id"], each["number"]) for each in page["messages"]] == [("a", 1), ("b", 2), ("c", 3)]
    assert page["messages"][0] == {"id": "a", "number": 1, "role": "user", "content": "the word a, 一句话"}


async def test_a_message_that_comes_again_with_other_words_opens_and_changes_nothing(door: Door) -> None:
    await append(door, ALICE, "s1", "a", "b")
    await door.post(f"{S}/s1/close", headers=ALICE)
    before = await door.head()
    body = {"messages": [{"id": "c", "role": "user", "content": "new"}, {"id": "b", "role": "user", "content": "else"}]}
    told = refusal(await door.post(f"{S}/s1/messages", json=body, headers=ALICE), 409, "message_exists")
    assert "'b'" in told
    assert await door.head() == before
    assert [each["status"] for each in await listed(door, ALICE)] == ["closed"]
    assert [each["id"] for each in (await door.get(f"{S}/s1/messages", headers=ALICE)).json()["messages"]] == ["a", "b"]
    assert (await append(door, ALICE, "s1", "b"))["duplicates"] == 1


async def test_pages_go_through_all_messages_once(door: Door) -> None:
    await append(door, ALICE, "s1", *(f"m{n}" for n in range(25)))
    seen, after = [], None
    while True:
        params = {"limit": 10} | ({} if after is None else {"after": after})
        page = (await door.get(f"{S}/s1/messages", params=params, headers=ALICE)).json()
        seen += [each["id"] for each in page["messages"]]
        assert page["total"] == 25
        if (after := page["next"]) is None:
            break
    assert seen == [f"m{n}" for n in range(25)]


async def test_a_message_is_shown_as_it_was_sent(door: Door) -> None:
    sent = [
        {
            "id": "call",
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            "tokens": 12,
            "created_at": "2026-03-05T12:00:00+08:00",
        },
        {"id": "result", "role": "tool", "content": "a\nb", "tool_call_id": "c1"},
        {"id": "picture", "role": "user", "content": "看", "attachments": [{"type": "image", "url": "file:a.png"}]},
    ]
    answer = await door.post(f"{S}/s1/messages", json={"messages": sent}, headers=ALICE)
    assert answer.status_code == 200, answer.text
    shown = (await door.get(f"{S}/s1/messages", headers=ALICE)).json()["messages"]
    assert [{name: value for name, value in each.items() if name != "number"} for each in shown] == sent


def of_openai(**stated: Any) -> dict[str, Any]:
    """A message as `message.model_dump()` of OpenAI's package has it: every field is there."""
    empty: dict[str, Any] = {"content": None, "refusal": None, "annotations": [], "audio": None, "function_call": None}
    return {**empty, "role": "assistant", "tool_calls": None, **stated}


async def test_a_message_in_the_form_of_models_apis_is_kept_in_ours(door: Door) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "file:a.png"}}
    reference = {"type": "file", "name": "b.pdf"}
    sent = [
        of_openai(id="call", tool_calls=[call]),
        of_openai(id="answer", content="两个文件 🗂️"),
        {"id": "parts", "role": "user", "name": "Kendra", "content": [{"type": "text", "text": "看"}, picture]},
        {
            "id": "both",
            "role": "user",
            "attachments": [reference],
            "content": [{"type": "input_text", "text": "a"}, picture, {"type": "output_text", "text": "b"}],
        },
        of_openai(id="refused", content=[{"type": "refusal", "refusal": "I can't"}]),
        {"id": "nothing", "role": "user", "content": [], "metadata": None},
    ]
    answer = await door.post(f"{S}/s1/messages", json={"messages": sent}, headers=ALICE)
    assert answer.status_code == 200, answer.text
    shown = (await door.get(f"{S}/s1/messages", headers=ALICE)).json()["messages"]
    assert [{name: value for name, value in each.items() if name != "number"} for each in shown] == [
        {"id": "call", "role": "assistant", "content": "", "tool_calls": [call]},
        {"id": "answer", "role": "assistant", "content": "两个文件 🗂️"},
        {"id": "parts", "role": "user", "name": "Kendra", "content": "看", "attachments": [picture]},
        {"id": "both", "role": "user", "content": "a\nb", "attachments": [reference, picture]},
        {"id": "refused", "role": "assistant", "content": "I can't"},
        {"id": "nothing", "role": "user", "content": ""},
    ]
    context = (await door.get(f"{S}/s1/context", params={"max_tokens": 8_000}, headers=ALICE)).json()["messages"]
    (named,) = [each for each in context if each["id"] == "parts"]
    assert named["name"] == "Kendra"


async def test_to_others_a_session_does_not_exist(door: Door) -> None:
    await append(door, ALICE, "s1", "a")
    asks: list[tuple[str, str]] = [
        ("GET", f"{S}/{{}}/messages"),
        ("GET", f"{S}/{{}}/expand/a"),
        ("GET", f"{S}/{{}}/context?max_tokens=1000"),
        ("GET", f"{S}/{{}}/scratchpad"),
        ("POST", f"{S}/{{}}/close"),
        ("DELETE", f"{S}/{{}}"),
    ]
    for method, path in asks:
        there, not_there = [
            refusal(await door.request(method, path.format(name), headers=BOB), 404, "unknown_session")
            for name in ("s1", "s2")
        ]
        assert there.replace("'s1'", "'s2'") == not_there
        asked = f"{path.format('s1')}{'&' if '?' in path else '?'}owner=user:alice"
        refusal(await door.request(method, asked, headers=BOB), 404, "unknown_session")
    assert await listed(door, BOB) == []
    assert await listed(door, BOB, owner="user:alice") == []
    assert (await append(door, BOB, "s1", "a"))["appended"] == 1, "an id belongs to its owner"
    assert [each["owner"] for each in await listed(door, BOB)] == ["user:bob"]
    assert (await door.get(f"{S}/s1/messages?owner=user:alice")).json()["total"] == 1, "the operator names the owner"


async def test_who_is_several_appends_as_the_first_and_reads_as_each(door: Door) -> None:
    await append(door, AGENT, "of-the-agent", "a")
    await append(door, BOTH, "of-alice", "a")
    assert [each["session_id"] for each in await listed(door, ALICE)] == ["of-alice"]
    assert {each["session_id"] for each in await listed(door, BOTH)} == {"of-alice", "of-the-agent"}
    assert (await door.get(f"{S}/of-the-agent/messages", headers=BOTH)).status_code == 200
    refusal(await door.get(f"{S}/of-alice/messages", headers=AGENT), 404, "unknown_session")


async def test_a_closed_session_is_opened_again_by_a_further_message(door: Door) -> None:
    await append(door, ALICE, "s1", "a")
    closed = (await door.post(f"{S}/s1/close", headers=ALICE)).json()
    assert closed == {"session_id": "s1", "status": "closed", "position": await door.head()}
    assert (await door.post(f"{S}/s1/close", headers=ALICE)).json() == closed, "a second time changes nothing"
    (shown,) = await listed(door, ALICE)
    assert (shown["status"], shown["closed_by"], shown["messages"]) == ("closed", "request", 1)
    assert (await append(door, ALICE, "s1", "a", "b"))["count"] == 2
    (shown,) = await listed(door, ALICE)
    assert (shown["status"], shown["closed_by"], shown["closed_at"]) == ("open", None, None)


async def test_removed_words_are_gone_and_the_log_knows_that_there_were_some(door: Door) -> None:
    await append(door, ALICE, "s1", "a", "b")
    await append(door, ALICE, "s10", "a")
    removed = (await door.delete(f"{S}/s1", headers=ALICE)).json()
    assert removed["status"] == "removed"
    assert (await door.delete(f"{S}/s1", headers=ALICE)).json() == removed, "a second time changes nothing"
    refusal(await door.get(f"{S}/s1/messages", headers=ALICE), 404, "unknown_session")
    assert [each["session_id"] for each in await listed(door, ALICE)] == ["s10"]
    (gone,) = await listed(door, ALICE, status="removed")
    assert (gone["session_id"], gone["messages"], gone["last_at"]) == ("s1", None, None)
    assert (await append(door, ALICE, "s1", "a"))["count"] == 1, "it may begin anew"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"id": "a", "role": "user"}, {"id": "a", "role": "user"}]}, "messages"),
        ({"messages": [{"id": "", "role": "user"}]}, "messages.0.id"),
        ({"messages": [{"id": "a", "role": "wizard"}]}, "messages.0.role"),
        ({"messages": [{"id": "a", "role": "user", "content": "\0"}]}, "messages.0.content"),
        ({"messages": [{"id": "a", "role": "user", "said": "x"}]}, "messages.0.said"),
        ({"messages": [{"id": "a", "role": "user", "metadata": {"a": 1}}]}, "messages.0.metadata"),
        ({"messages": [{"id": "a", "role": "user", "content": [{"type": "tool_use", "id": "c"}]}]}, "tool_calls"),
        ({"messages": [{"id": "a", "role": "user", "content": ["hi"]}]}, "without a type"),
        ({"messages": [{"id": "a", "role": "user", "content": [{"type": "text", "text": 5}]}]}, "messages.0"),
        ({"messages": [{"id": "a", "role": "user", "content": {"text": "hi"}}]}, "messages.0.content"),
        ({"messages": [{"id": "a", "role": "user", "name": 5}]}, "messages.0.name"),
        ({"messages": [{"id": "a", "role": "user", "attachments": 5, "content": []}]}, "messages.0.attachments"),
        ({"messages": [None]}, "messages.0"),
        ({"messages": [{"id": f"m{n}", "role": "user"} for n in range(1_001)]}, "messages"),
        ({"messages": [{"id": "a", "role": "user", "content": "x" * (1024 * 1024 + 1)}]}, "messages.0.content"),
    ],
    ids=[
        *("none", "twice", "no id", "no role", "NUL", "typo", "metadata", "call", "word", "number", "object", "name"),
        *("attachments", "null", "too many", "too long"),
    ],
)
async def test_bad_messages_are_refused_and_open_nothing(door: Door, body: Any, field: str) -> None:
    answer = await door.post(f"{S}/s1/messages", json=body, headers=ALICE)
    refusal(answer, 422, "invalid_payload")
    assert field in answer.text
    assert await door.head() == 0


async def test_an_id_that_no_session_can_have_is_refused_and_found_nowhere(door: Door) -> None:
    for name in ("%20x", "x" * 201, "sealed%3Av1%3Ax"):
        refusal(await door.post(f"{S}/{name}/messages", json=said("a"), headers=ALICE), 422, "invalid_payload")
        refusal(await door.get(f"{S}/{name}/messages", headers=ALICE), 404, "unknown_session")
    assert await door.head() == 0


async def test_an_event_of_anothers_session_or_out_of_turn_is_refused_with_its_reason(door: Door) -> None:
    await append(door, ALICE, "s1", "a")
    hers: dict[str, Any] = {"session_id": "s1", "owner": "user:alice"}
    closed = SessionClosed(**hers, cause="request", messages=1)
    summarised = SessionSummarised(**hers, level=2, summary="s", first="a", last="a", messages=1, usage=EXAMPLE_USAGE)
    removed = SessionRemoved(**hers, cause="request", messages=1)
    for fact, actor in (
        (closed, "user:bob"),
        (SessionOpened(**hers), "user:alice"),
        (removed, "user:alice"),
        (summarised, "user:alice"),
        (closed, "user:alice"),
    ):
        await door.desk.ledger.append(NewEvent(fact, "user:alice/s1", actor))
    await door.desk.view.wait_for(await door.head())
    refused = await door.desk.view.ask(
        lambda cursor: cursor.execute("SELECT code FROM refused_events ORDER BY position").fetchall()
    )
    assert refused == [("not_owner",), ("illegal_state",), ("illegal_state",), ("illegal_state",)]


async def test_sessions_of_two_owners_whose_ids_look_alike_have_nothing_to_do_with_each_other(door: Door) -> None:
    first = SessionOpened(session_id="b/c", owner="user:a")
    second = SessionOpened(session_id="c", owner="user:a/b")
    for fact in (first, second):
        await door.desk.ledger.append(NewEvent(fact, "user:a/b/c", fact.owner))
    await door.desk.view.wait_for(2)
    rows = await door.desk.view.ask(
        lambda cursor: cursor.execute("SELECT owner, session_id, status FROM sessions ORDER BY owner").fetchall()
    )
    assert rows == [("user:a", "b/c", "open"), ("user:a/b", "c", "open")]


async def test_an_append_that_was_cut_off_after_the_log_had_the_opening_is_repeated_without_harm(door: Door) -> None:
    await door.desk.ledger.append(
        NewEvent(SessionOpened(session_id="s1", owner="user:alice"), "user:alice/s1", "user:alice")
    )
    assert await append(door, ALICE, "s1", "a") == {
        "session_id": "s1", "appended": 1, "duplicates": 0, "count": 1, "position": 1,
    }  # fmt: skip


async def test_a_context_fits_the_window_and_its_marks_are_expanded(door: Door) -> None:
    long = {"messages": [{"id": "long", "role": "user", "content": "一个很长的问题 " * 10_000}]}
    await append(door, ALICE, "s1", "a", role="system")
    assert (await door.post(f"{S}/s1/messages", json=long, headers=ALICE)).status_code == 200
    for _ in range(2):  # the second time from memory
        cut = (await door.get(f"{S}/s1/context", params={"max_tokens": 1_000}, headers=ALICE)).json()
        assert (cut["budget"], cut["level"], cut["overview"], cut["summaries"]) == (700, 1, None, [])
        assert 600 < cut["used"] <= 700
        assert [each["id"] for each in cut["messages"]] == ["a", "long"]
        assert cut["messages"][1]["content"].endswith("expand long]")
        assert cut["pending"] == {"level": 3, "reason": cut["pending"]["reason"]}
    expanded = (await door.get(f"{S}/s1/expand/long", headers=ALICE)).json()
    assert expanded["messages"][0]["content"] == long["messages"][0]["content"]


async def test_a_prompt_and_a_question_from_long_ago_are_in_the_context(door: Door) -> None:
    await append(door, ALICE, "s1", "prompt", role="system")
    await append(door, ALICE, "s1", "question")
    await append(door, ALICE, "s1", *(f"step-{n}" for n in range(200)), role="assistant")
    cut = (await door.get(f"{S}/s1/context", params={"max_tokens": 100_000}, headers=ALICE)).json()
    shown = [each["id"] for each in cut["messages"]]
    assert shown == ["prompt", "question", *(f"step-{n}" for n in range(150, 200))]
    assert cut["left_out"] == [{"by": "window", "messages": 150, "first": 3, "last": 152}]
    door.desk.sessions.drop()  # type: ignore[union-attr]  # as a node that was started again
    again = (await door.get(f"{S}/s1/context", params={"max_tokens": 100_000}, headers=ALICE)).json()
    assert again == cut
    await append(door, ALICE, "s1", "next")
    cut = (await door.get(f"{S}/s1/context", params={"max_tokens": 100_000}, headers=ALICE)).json()
    assert [each["id"] for each in cut["messages"]][-1] == "next"
    assert "question" not in [each["id"] for each in cut["messages"]]


async def test_an_append_that_makes_extraction_due_does_not_wait_until_it_is_asked(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, let = asyncio.Event(), asyncio.Event()

    async def held(_desk: object, _key: object, head: Head, _kind: str) -> Head:
        begun.set()
        await let.wait()
        return head

    extracting = "producers.operations.sessions.extracting"
    monkeypatch.setattr(f"{extracting}.may_extract", lambda _desk: True)
    monkeypatch.setattr(f"{extracting}.ask_extraction", held)
    async with asyncio.timeout(PATIENCE):
        await append(door, ALICE, "s1", *(f"m{n}" for n in range(20)))
        await begun.wait()
        let.set()
    assert (await append(door, ALICE, "s1", "m20"))["count"] == 21


async def test_what_came_of_a_session_is_told_with_the_message_that_each_item_was_saved_from(door: Door) -> None:
    await append(door, ALICE, "s1", "m1", "m2")
    await append(door, ALICE, "s2", "m1", "m2")
    await append(door, BOB, "s9", "m1")

    async def save(name: str, session: str | None = None, **headers: str) -> None:
        body: dict[str, Any] = {"id": name, "task": f"the task of {name}", "content": name, "types": ["tool"]}
        if session is not None:
            body |= {"memory": {"layer": "semantic", "session": session}}
        answer = await door.post("/api/knowledge", json=body, headers={**ALICE, **headers})
        assert answer.status_code == 201, answer.text

    await save("of-a-message", **{"X-Ledger-Message-Id": "m2"})
    await save("of-the-trace", **{"X-Ledger-Trace-Id": "s1"})
    await save("of-the-session", session="s1")
    await save("of-another", session="s2", **{"X-Ledger-Message-Id": "m2"})
    await save("of-the-trace-of-another", **{"X-Ledger-Trace-Id": "s2", "X-Ledger-Message-Id": "m2"})
    await save("of-a-run", **{"X-Ledger-Trace-Id": "run-7", "X-Ledger-Message-Id": "m2"})
    # Whether somebody else has a session of this id is told to nobody.
    await save("of-what-bob-calls-so", **{"X-Ledger-Trace-Id": "s9", "X-Ledger-Message-Id": "m1"})
    await save("of-none")
    answer = (await door.get(f"{S}/s1/knowledge", headers=ALICE)).json()
    assert [(each["id"], each["message_id"]) for each in answer["results"]] == [
        ("of-a-message", "m2"),
        ("of-the-trace", None),
        ("of-the-session", None),
        ("of-a-run", "m2"),
        ("of-what-bob-calls-so", "m1"),
    ]
    answer = (await door.get(f"{S}/s2/knowledge", headers=ALICE)).json()
    told = {each["id"] for each in answer["results"]}
    assert told == {"of-a-message", "of-another", "of-the-trace-of-another", "of-a-run", "of-what-bob-calls-so"}
    refusal(await door.get(f"{S}/s1/knowledge", headers=BOB), 404, "unknown_session")
    await append(door, BOB, "s1", "m2")
    assert (await door.get(f"{S}/s1/knowledge", headers=BOB)).json()["results"] == []


async def test_a_message_is_found_by_its_id_in_the_sessions_of_the_caller_alone(door: Door) -> None:
    await append(door, ALICE, "s1", "m1")
    await append(door, ALICE, "s2", "m1", "m2")
    await append(door, BOB, "s3", "m1")

    async def found(message: str, who: dict[str, str], **params: str) -> list[str]:
        answer = (await door.get(f"/api/messages/{message}", headers=who, params=params)).json()
        assert all(message in each["message"]["content"] for each in answer["results"])
        return [each["session_id"] for each in answer["results"]]

    assert await found("m1", ALICE) == ["s1", "s2"]
    assert await found("m2", ALICE) == ["s2"]
    assert await found("m1", BOB) == ["s3"]
    assert await found("m1", BOB, owner="user:alice") == []
    assert await found("m1", {}) == ["s1", "s2", "s3"]
    assert await found("m1", {}, owner="user:bob") == ["s3"]
    assert await found("nothing", ALICE) == []


async def test_the_operator_lists_and_reads_the_sessions_of_all(door: Door) -> None:
    await append(door, ALICE, "s1", "m1")
    await append(door, BOB, "s2", "m2")
    assert {each["session_id"] for each in await listed(door, {}, min_position=await door.head())} == {"s1", "s2"}
    assert [each["session_id"] for each in await listed(door, {}, owner="user:bob")] == ["s2"]
    assert (await door.get(f"{S}/s2/messages")).json()["messages"][0]["id"] == "m2"
    refusal(await door.delete(f"{S}/s2"), 404, "unknown_session")  # what is changed has to be named whole

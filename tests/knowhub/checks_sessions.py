"""What rows M1 and M2 of the mission say, asked of one door."""

from __future__ import annotations

import tempfile
from pathlib import Path

import orjson
import pytest

from ledger.event import JsonObject
from tests.knowhub.doors import Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.walking import Walk

SCRATCHPAD: JsonObject = {
    "current_goal": "实现用户注册功能",
    "sub_goals": ["设计数据库表", "实现 API", "编写测试"],
    "completed": ["设计数据库表"],
    "current_step": "实现 API",
    "decisions": [{"what": "使用 bcrypt 加密密码", "why": "安全性最佳实践"}],
    "blockers": [],
}
"""Source 004 §2.1.3, word for word."""


def m1(walk: Walk) -> None:
    """The last messages that fit 70 % of the window, prompts first; and a scratchpad. Nobody else's."""
    owner, stranger, session = walk.door(user="owner"), walk.door(user="stranger"), walk.own("session")
    turns = [_said(number, "user" if number % 2 else "assistant", f"turn {number}") for number in range(1, 71)]
    append(owner, session, [_said(0, "system", "You are brief."), *turns])
    whole = context(owner, session, 100_000)
    assert (whole["budget"], whole["level"]) == (70_000, 0)
    assert [message["content"] for message in whole["messages"]] == [
        "You are brief.",
        *(f"turn {number}" for number in range(21, 71)),
    ]
    small = context(owner, session, 200)
    assert small["used"] <= small["budget"] == 140
    contents = [message["content"] for message in small["messages"]]
    assert (contents[0], "turn 69" in contents) == ("You are brief.", True), "the prompt, and what the user said last"
    assert scratchpad(owner, session, SCRATCHPAD) == SCRATCHPAD
    noted = scratchpad(owner, session, {"current_step": "编写测试", "blockers": None})
    assert noted == {
        **{name: SCRATCHPAD[name] for name in SCRATCHPAD if name != "blockers"},
        "current_step": "编写测试",
    }
    with pytest.raises(Refused, match="unknown_session"):
        context(stranger, session, 8_000)
    with pytest.raises(Refused, match="unknown_session"):
        scratchpad(stranger, session, None)


def m2(walk: Walk) -> None:
    """Above 60 % of the budget a tool's output is one line, and the latest of two equal prompts stays."""
    owner, session = walk.door(user="owner"), walk.own("session")
    prompt = {"id": "p-1", "role": "system", "content": "You are brief."}
    call = {"id": "c-1", "role": "assistant", "content": "", "tool_calls": [{"id": "call-1"}]}
    output = {"id": "o-1", "role": "tool", "tool_call_id": "call-1", "content": "GET /login 500\n" * 400}
    append(owner, session, [prompt, _said(1, "user", "why?"), call, output, {**prompt, "id": "p-2"}])
    append(owner, session, [_said(2, "assistant", "the session times out"), _said(3, "user", "then raise its limit")])
    cut = context(owner, session, 4_000)
    assert (cut["level"], cut["used"] <= cut["budget"]) == (1, True)
    shown = {message["id"]: message for message in cut["messages"]}
    assert ("p-1" in shown, "p-2" in shown, shown["c-1"]["id"], shown["o-1"]["shortened"]) == (
        *(False, True),
        *("c-1", "level 1"),
    )
    assert [message["content"] for message in expanded(owner, session, "o-1")] == [output["content"]]


def expanded(door: Door, session: str, record: str) -> list[JsonObject]:
    """The messages behind an id, whole."""
    match door:
        case Http():
            told = door.ask("GET", f"/api/sessions/{session}/expand/{record}")
        case Sdk():
            told = door.ask(door.ledger.session(session).expand, record)
        case Command():
            told = door.ask("session", "expand", session, record)
        case _:
            assert isinstance(door, Mcp)
            told = door.ask("session_expand", session_id=session, record_id=record)
    return list(told["messages"])


def _said(number: int, role: str, content: str) -> JsonObject:
    return {"id": f"m-{number}", "role": role, "content": content}


def append(door: Door, session: str, messages: list[JsonObject]) -> None:
    """Append messages to a session."""
    match door:
        case Http():
            door.ask("POST", f"/api/sessions/{session}/messages", {"messages": messages})
        case Sdk():
            door.ask(door.ledger.session(session).append, messages)
        case Command():
            with tempfile.TemporaryDirectory() as directory:
                file = Path(directory, "messages.jsonl")
                file.write_bytes(b"\n".join(map(orjson.dumps, messages)))
                door.ask("session", "append", session, "--file", str(file))
        case Mcp():
            door.ask("session_append", session_id=session, messages=messages)
        case _:
            raise AssertionError(door)


def context(door: Door, session: str, max_tokens: int) -> JsonObject:
    """What fits a window."""
    answer: JsonObject
    match door:
        case Http():
            door.after = 0  # the words are read from their stream, which no view follows
            answer = door.ask("GET", f"/api/sessions/{session}/context", max_tokens=max_tokens)
        case Sdk():
            answer = door.ask(door.ledger.session(session).context, max_tokens)
        case Command():
            answer = door.ask("session", "context", session, "--max-tokens", str(max_tokens))
        case Mcp():
            answer = door.ask("session_context", session_id=session, max_tokens=max_tokens)
        case _:
            raise AssertionError(door)
    return answer


def scratchpad(door: Door, session: str, patch: JsonObject | None) -> JsonObject:
    """The scratchpad, after this patch where there is one."""
    path = f"/api/sessions/{session}/scratchpad"
    answer: JsonObject
    match door:
        case Http():
            door.after = 0
            answer = door.ask("GET", path) if patch is None else door.ask("PATCH", path, {"scratchpad": patch})
        case Sdk():
            answer = door.ask(door.ledger.session(session).scratchpad, patch)
        case Command():
            change = () if patch is None else ("--patch", orjson.dumps(patch).decode())
            answer = door.ask("session", "scratchpad", session, *change)
        case Mcp():
            answer = door.ask("session_scratchpad", session_id=session, **({} if patch is None else {"patch": patch}))
        case _:
            raise AssertionError(door)
    noted: JsonObject = answer["scratchpad"]
    return noted

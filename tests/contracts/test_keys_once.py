"""Is a key that an object has twice refused wherever JSON comes from outside, instead of one value that counts?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from consumers.structured import InvalidAnswer
from kledger.contract.bounds import STRICTER
from kledger.contract.errors import InvalidPayload
from kledger.contract.json_text import TWICE, RepeatedKey, loads
from ledger.event import StoredEvent
from producers.cli.commands.evolutions import _material
from producers.cli.main import app
from producers.requests.reading import read_json
from projections.engine import batch
from tests.conftest import saved
from tests.contracts.test_json_text import READERS
from tests.doors.http_door import http_door, refusal
from tests.doors.scripted_node import commanded_node
from tests.mcp.mcp_door import TAKES, mcp_door
from tests.projections.histories import rows, stored, view_of

PLACES = {
    '{"content": "a", "content": "b"}': "content",
    '{"content":"a","content":"a"}': "content",
    '{"a":[1,{"tags":{"n":{"x":1,"y":2,"x":3}}}]}': "a.1.tags.n.x",
    '{"a:b":":", "a\\u003ab":"\\u003A"}': "a:b",
    '{"a":"\\u003a","a":1}': "a",
    '{"一":1, "\\u4e00":2}': "一",
}


@pytest.mark.parametrize("text", PLACES)
def test_the_place_of_the_key_is_told(text: str) -> None:
    with pytest.raises(RepeatedKey) as refused:
        loads(text)
    assert (str(refused.value), refused.value.place) == (f"{PLACES[text]} {TWICE}", PLACES[text])


_KEYS = st.sampled_from(["a", "b", ":", "a:b", "\u4e00", '":'])
_TEXTS = st.sampled_from(["", ":", '"a":1,"a":2', "\u003a", "x"])


@st.composite
def _written(draw: st.DrawFn, depth: int = 2) -> tuple[str, bool]:
    """A JSON text in any spelling, and whether a key stands twice in it."""
    if depth == 0 or draw(st.booleans()):
        return json.dumps(draw(_TEXTS), ensure_ascii=draw(st.booleans())).replace(":", draw(_COLON)), False
    keys = draw(st.lists(_KEYS, max_size=4))
    parts = [draw(_written(depth - 1)) for _ in keys]
    blank = draw(st.sampled_from(["", " ", "\n"]))
    pairs = [
        json.dumps(key, ensure_ascii=draw(st.booleans())).replace(":", draw(_COLON)) + f"{blank}:{blank}{text}"
        for key, (text, _) in zip(keys, parts, strict=True)
    ]
    return "{" + f"{blank},".join(pairs) + "}", len(set(keys)) < len(keys) or any(twice for _, twice in parts)


_COLON = st.sampled_from([":", "\\u003a", "\\u003A"])


@given(_written())
def test_a_text_is_refused_if_and_only_if_a_key_stands_twice_in_it(written: tuple[str, bool]) -> None:
    text, twice = written
    try:
        assert loads(text) == json.loads(text)
    except RepeatedKey:
        assert twice
    else:
        assert not twice


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_refuses_a_key_that_stands_twice_in_the_same_words(reader: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidPayload, InvalidAnswer, typer.BadParameter)) as refused:
        READERS[reader]('{"tags": {"n": 1, "n": 2}}', tmp_path)
    assert TWICE in str(refused.value)


def test_a_deep_body_is_told_of_its_depth() -> None:
    with pytest.raises(InvalidPayload, match="nested more than 200 deep"):
        read_json(b'{"a":' * 300 + b"1" + b"}" * 300)


def test_messages_with_a_key_twice_are_no_text_to_extract_from(tmp_path: Path) -> None:
    file = tmp_path / "said.json"
    file.write_text('{"messages": [{"role": "user", "content": "a", "content": "b"}]}')
    with pytest.raises(typer.BadParameter, match=r"content is stated twice"):
        _material(str(file))
    file.write_text('{"a": 1, "a": 2} is what was said')
    assert _material(str(file)) == {"text": file.read_text()}


async def test_a_save_over_http_that_states_a_field_twice_is_refused_and_told_which() -> None:
    async with http_door() as door:
        for path, text, place in (
            ("/api/knowledge", '{"types":["tool"],"content":"a","content":"b","task":"t"}', "content"),
            ("/api/knowledge/batch", '{"items":[{"types":["tool"],"content":"a","content":"b"}]}', "items.0.content"),
            ("/api/memory", '{"layer":"semantic","content":"a","tags":{"x":1,"x":2}}', "tags.x"),
        ):
            answer = await door.post(path, content=text, headers={"Content-Type": "application/json"})
            assert f"{place} is stated twice" in refusal(answer, 422, "invalid_payload")
            assert [each["field"] for each in answer.json()["error"]["details"]["errors"]] == [place]
        assert await door.head() == 0


async def test_a_tool_call_that_states_an_argument_twice_is_refused_and_told_which() -> None:
    call = b"""{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "knowledge_save", "arguments":
        {"task": "t", "types": ["tool"], "content": "a", "content": "b"}}}"""
    async with mcp_door() as door:
        answer = await door.client.post("/mcp", content=call, headers={**TAKES, "Content-Type": "application/json"})
        told = answer.json()
        assert (answer.status_code, told["id"], told["error"]["code"]) == (400, 7, -32600)
        assert "params.arguments.content is stated twice" in told["error"]["message"]
        assert (await door.desk.ledger.head()).position == 0


def test_an_imported_line_that_states_a_field_twice_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text('{"types": ["tool"], "content": "a", "content": "b"}\n')
    with commanded_node(monkeypatch) as node:
        ran = CliRunner().invoke(app, ["import", str(file)])
        assert node.asked == []
    assert ran.exit_code == 1
    assert "content is stated twice" in " ".join((ran.stdout + ran.stderr).split())


@pytest.fixture(params=[256, 0], ids=["judged by the models", "parsed by SQL"])
def either_road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", request.param)


def _twice(moment: int) -> list[StoredEvent]:
    texts = {
        "in data": b'"content":"a","content":',
        "in tags": b'"tags":{"a":1,"a":2}',
        "beside data": b'"actor":"x:y","actor":',
    }
    log = []
    for at, new in enumerate(texts.values(), 1):
        (event,) = stored([saved(f"k{at}")], at)
        old = {1: b'"content":', 2: b'"tags":{}', 3: b'"actor":'}[at]
        assert old in event.body
        log.append(event._replace(body=event.body.replace(old, new), stored_ns=moment + at * 1_000))
    return log


@pytest.mark.usefixtures("either_road")
def test_an_event_of_any_publisher_that_states_a_field_twice_does_not_count() -> None:
    refused = rows(view_of(_twice(STRICTER)).con, "SELECT position, code, reason FROM refused_events ORDER BY position")
    assert [(position, code) for position, code, _ in refused] == [(at, "invalid_payload") for at in (1, 2, 3)]
    for (_, _, reason), place in zip(refused, ("data.content", "data.tags.a", "actor"), strict=True):
        assert f"{place} is stated twice" in reason


@pytest.mark.usefixtures("either_road")
def test_what_the_log_kept_before_counts_as_it_did() -> None:
    view: Any = view_of(_twice(STRICTER - 1_000_000))
    assert rows(view.con, "SELECT count(*) FROM refused_events") == [(0,)]
    assert rows(view.con, "SELECT count(*) FROM knowledge") == [(3,)]

"""After `forget` no word of a person's sessions is in any file, nor the key that opens what was sealed of them.

The broker's file of a stream may hold sealed records for a while after they were removed: its free space is not wiped.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kledger import LedgerClient
from kledger.contract.errors import SubjectForgotten, UnknownSession
from ledger.broker.access import KEYS_STREAM, SESSIONS_STREAM
from ledger.broker.connection import BrokerConnection
from tests.files import contents
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.journeys.test_forgetting import assert_no_embedding_of, backed_up_with, files_with, rows_with
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.reactors.conftest import models

WORDS = [f"獾标记{n:02d}号" if n % 2 else f"okapi{n:02d}marker" for n in range(23)]
PART = 16
"""Bytes of a wrapped key that are looked for, at any place in it."""


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as server:
        yield server


def scripted(server: EmbeddingEndpoint, words: Iterator[str]) -> None:
    """What the models make of what she says; each of their words is one that has to go."""
    segment = {"discussed": next(words), "decided": next(words), "concluded": next(words)}
    overview = {
        "overview": next(words), "decisions": [next(words)], "todos": [next(words)], "agreements": [next(words)]
    }  # fmt: skip
    server.chat.says(segment, to="<said by=")
    server.chat.says(overview, to="<summary>")
    found = {"category": next(words), "domain": next(words), "message_ids": ["m-1"]}
    kinds = ("preference", "decision", "mood")
    items = [{"type": kind, "task": next(words), "content": next(words), **found} for kind in kinds]
    server.chat.says({"items": items}, to="<message id=")
    server.chat.says({"verdicts": []}, to="<new item=")


def converse(mei: LedgerClient, words: Iterator[str]) -> None:
    """What she says and notes, in every part of a message and of a scratchpad that takes words."""
    session = mei.session("s1")
    call = {"id": "c-1", "function": {"name": "read", "arguments": next(words)}}
    session.append([
        {"id": "m-1", "role": "system", "content": next(words)},
        {"id": "m-2", "role": "user", "content": next(words), "attachments": [{"name": next(words)}]},
        {"id": "m-3", "role": "assistant", "content": "", "tool_calls": [call]},
        {"id": "m-4", "role": "tool", "tool_call_id": "c-1", "content": f"{next(words)} " * 20_000},
        *({"id": f"n-{n}", "role": "user", "content": f"{n} " + "lamp " * 100} for n in range(40)),
    ])  # fmt: skip
    session.scratchpad({"current_goal": next(words), "decisions": [{"what": next(words), "why": next(words)}]})
    until(lambda: len(session.context(6_000)["summaries"]) >= 2, "segments are summed up")
    until(lambda: session.context(1_200)["level"] == 3, "an overview is made")
    session.close()


def remembered(mei: LedgerClient) -> list[dict[str, Any]]:
    """What the session left: short memories of their kinds, one of which is confirmed and so stays."""
    until(lambda: mei.memories(limit=10)["total"] == 3, "the session leaves memories")
    mei.confirm(mei.memories(kinds=["decision"])["results"][0]["id"])
    found: list[dict[str, Any]] = [dict(each) for each in mei.memories(limit=10)["results"]]
    return found


async def kept(node: RunningNode, stream: str, subjects: str) -> dict[str, bytes]:
    """The last record of each subject of a stream, as the broker keeps it."""
    connection = await BrokerConnection.open(node.access, "admin", name="test")
    try:
        info = await connection.api(f"STREAM.INFO.{stream}", {"subjects_filter": subjects})
        found = {}
        for subject in info["state"].get("subjects") or {}:
            answer = await connection.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject})
            found[subject] = base64.b64decode(answer["message"].get("data") or "")
        return found
    finally:
        await connection.close()


def files_with_a_part_of(key: str, data: Path) -> set[str]:
    """The files that have a part of a wrapped key, in the text that it is kept in or as its bytes."""
    forms = [form[at : at + PART] for form in (key.encode(), base64.b64decode(key)) for at in range(0, 48, PART)]
    return {path.relative_to(data).as_posix() for path, content in contents(data) if any(f in content for f in forms)}


def test_after_forget_no_word_of_her_sessions_and_what_they_left_is_in_a_file_nor_the_key_of_their_seals(
    tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    data, words = tmp_path / "data", iter(WORDS)
    scripted(endpoint, words)
    environment = models(endpoint, KLEDGER_MODEL_SUMMARISE="small")
    with running(data, env=environment) as node, node.client() as op:
        mei, bob = op.acting_as(user="mei"), op.acting_as(user="bob")
        converse(mei, words)
        memories = remembered(mei)
        assert {each["layer"] for each in memories} == {"short", "semantic"}
        bob.session("s1").append([{"id": "m-1", "role": "user", "content": "bobs-own-word"}])
        caught_up(op)
        assert next(words, None) is None
        result_of(op, "snapshot")
        result_of(op, "backup", into=tmp_path / "backup")
        assert backed_up_with(tmp_path / "backup", WORDS) == [], "a backup has no word in clear even before"
        in_clear = {name.partition("/")[0] for name in files_with(data, WORDS)}
        assert in_clear == {"views", "snapshots"}, "the streams have no word in clear even before"
        said = asyncio.run(kept(node, SESSIONS_STREAM, "sessions.default.user=3Amei.>"))
        assert {subject.split(".")[4] for subject in said} == {"head", "said", "summary", "scratchpad"}
        keys = asyncio.run(kept(node, KEYS_STREAM, "$KV.KLEDGER_KEYS.key.user=3Amei"))
        (key,) = (orjson.loads(record)["key"] for record in keys.values())
        assert files_with_a_part_of(key, data), "where it is, it is found"
        hers = {text for text in endpoint.texts if any(word in text for word in WORDS)}

        receipt = result_of(op, "forget", subject="user:mei")["receipt"]
        assert receipt["left_in_clear"] == []
        assert files_with(data, WORDS) == {}
        assert asyncio.run(kept(node, SESSIONS_STREAM, "sessions.default.user=3Amei.>")) == {}
        assert files_with_a_part_of(key, data) == set()
        assert len(hers) >= 3
        assert_no_embedding_of(hers, data)
        with pytest.raises(UnknownSession):
            mei.session("s1").messages()
        with pytest.raises(SubjectForgotten):
            mei.session("s2").append([{"id": "m-1", "role": "user", "content": "again"}])
        assert bob.session("s1").messages()["messages"][0]["content"] == "bobs-own-word"
        result_of(op, "backup", into=tmp_path / "afterwards")
        assert backed_up_with(tmp_path / "afterwards", WORDS) == []
        calls = endpoint.chat.calls
        assert result_of(op, "verify")["equal"]
        assert result_of(op, "rebuild")["equal"]
        assert endpoint.chat.calls == calls
    assert files_with(data, WORDS) == {}
    assert files_with_a_part_of(key, data) == set()
    for file in data.rglob("*.duckdb"):
        assert rows_with(file, WORDS) == {}, file
    assert not any(word in node.log.read_text("utf-8") for word in WORDS)

"""A plain NATS client in another language publishes events by hand, with the reference and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload
from ledger.broker.access import BrokerAccess
from ledger.events.knowledge import KnowledgeSaved
from ledger.store.jetstream import JetStreamLedger
from ledger.wire.envelope import decode_envelope, decode_fact
from ledger.wire.subjects import parse_subject
from tests.journeys.running_node import RunningNode, caught_up
from tests.npm import installed
from tests.patience import PATIENCE
from tests.temporary_files import OF_THE_SESSION

CLIENT = Path(__file__).parent / "foreign_client"
ACTOR = "agent:node.js 客户端"


@pytest.fixture(scope="session")
def foreign_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client with its packages installed; skips where that cannot be done."""
    directory = tmp_path_factory.mktemp(f"{OF_THE_SESSION}foreign") / "client"
    shutil.copytree(CLIENT, directory)
    return installed(directory, "a client in JavaScript")


async def publish(client: Path, access: BrokerAccess) -> dict[str, Any]:
    """Run the client as the writer; what the broker answered it."""
    credentials = access.credentials("writer")
    assert credentials is not None
    process = await asyncio.create_subprocess_exec(
        "node",
        "publish.mjs",
        cwd=client,
        env={**os.environ, "NATS_URL": access.url, "NATS_USER": credentials[0], "NATS_PASSWORD": credentials[1]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        told, failed = await process.communicate()
    assert process.returncode == 0, failed.decode()
    answers: dict[str, Any] = json.loads(told)
    return answers


async def test_an_event_published_by_hand_from_node_js_is_an_event_like_any_other(
    foreign_client: Path, access: BrokerAccess, jetstream_ledger: JetStreamLedger
) -> None:
    answers = await publish(foreign_client, access)
    assert [(answers[name]["seq"], answers[name]["duplicate"]) for name in ("first", "again", "malformed", "next")] == [
        (1, False),
        (1, True),
        (2, False),
        (3, False),
    ]
    first, malformed, following = [event async for events in jetstream_ledger.read() for event in events]
    parts = parse_subject(first.subject)
    assert (parts.entity_id, parts.event, parts.actor) == ("foreign/知识.1", "saved", ACTOR)
    envelope = decode_envelope(first.body)
    assert (envelope.id, envelope.actor, envelope.traceid, envelope.messageid) == (
        "foreign-1",
        ACTOR,
        "trace-foreign",
        "message-1",
    )
    fact = decode_fact(envelope)
    assert isinstance(fact, KnowledgeSaved)
    assert fact.content == "用 sharp 库把 PNG 转成 WebP，体积约减半。"
    with pytest.raises(InvalidPayload, match="content") as refusal:
        decode_fact(decode_envelope(malformed.body))
    assert "types" in refusal.value.message
    assert isinstance(decode_fact(decode_envelope(following.body)), KnowledgeSaved)


async def test_both_kinds_of_writers_share_one_history(
    foreign_client: Path, access: BrokerAccess, jetstream_ledger: JetStreamLedger
) -> None:
    await publish(foreign_client, access)
    assert await jetstream_ledger.last_position_of("default", "knowledge", "foreign/知识.1") == 1
    again = await publish(foreign_client, access)
    assert all(answer["duplicate"] for answer in again.values())
    assert (await jetstream_ledger.head()).position == 3


async def test_a_node_finds_what_node_js_published_and_says_why_the_malformed_one_does_not_count(
    foreign_client: Path, shared_node: RunningNode, ledger: LedgerClient
) -> None:
    caught_up(ledger)
    answers = await publish(foreign_client, shared_node.access)
    seeing = ledger.seeing(answers["next"]["seq"])
    for asked, item_id in (
        ("怎么压缩图片", "foreign/知识.1"),
        ("compress images with the sharp library", "foreign-3"),
    ):
        found = seeing.search(asked, top_k=1, record=False)["results"][0]
        assert (found["id"], found["owner"]) == (item_id, ACTOR)
    assert {edge["entity_id"] for edge in seeing.lineage("trace:trace-foreign")["edges"]} == {
        "foreign/知识.1",
        "foreign-3",
    }
    caught_up(ledger)
    refused = ledger.sql(
        f"SELECT code, reason, event_id FROM refused_events WHERE position = {answers['malformed']['seq']}"
    )["rows"]
    assert [(code, event_id) for code, _, event_id in refused] == [("invalid_payload", "foreign-2")]
    assert "content" in refused[0][1]
    assert seeing.status()["healthy"] is True

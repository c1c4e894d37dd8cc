"""Events that no door of ours has seen: a plain NATS client publishes what it likes, and the views keep right."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.js.errors import APIError

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode, caught_up, head, result_of, until

ACTOR = "agent:by-hand"


def envelope(item_id: str, **changed: Any) -> dict[str, Any]:
    """A good event that saves an item, with some attributes changed or (None) left out."""
    document = {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "type": "knowledge.saved",
        "source": "urn:example:hand",
        "subject": f"knowledge/{item_id}",
        "time": "2026-03-05T12:00:00Z",
        "datacontenttype": "application/json",
        "dataschema": "urn:kledger:knowledge.saved:2",
        "actor": ACTOR,
        "data": data(f"Written by hand as {item_id}"),
        **changed,
    }
    return {name: value for name, value in document.items() if value is not None}


def data(task: str, **changed: Any) -> dict[str, Any]:
    """What a good event says."""
    said = {"types": ["tool"], "task": task, "content": "用手写的。", "scopes": ["public"], "owner": ACTOR}
    return {**said, **changed}


def subject(item_id: str, verb: str = "saved", actor: str = "agent.by-hand") -> str:
    return f"ledger.default.knowledge.{item_id}.{verb}.{actor}"


def text(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


@pytest.fixture
async def writer(shared_node: RunningNode) -> AsyncIterator[Client]:
    """A plain client with the writer's credentials."""
    user = shared_node.access.credentials("writer")
    assert user is not None
    client = await nats.connect(shared_node.access.url, user=user[0], password=user[1])
    yield client
    await client.close()


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def with_tags(item_id: str, tags: bytes) -> bytes:
    """A good event with its tags written as these bytes."""
    marked = envelope(item_id, data=data("t", tags={"x": "TAGS"}))
    return text(marked).replace(b'{"x": "TAGS"}', tags)


# What is published under which subject ("" is the right one), and the code that it is refused with.
MALFORMED: dict[str, tuple[str, bytes, str]] = {
    "bad JSON": ("", b'{"specversion": "1.0", ', "bad_json"),
    "nothing": ("", b"", "bad_json"),
    "bytes that are no text": ("", b"\xff\xfe{}", "bad_json"),
    "a JSON text": ("", b'"knowledge.saved"', "invalid_payload"),
    "an array": ("", b"[]", "invalid_payload"),
    "a megabyte of nothing": ("", b"x" * 1_000_000, "bad_json"),
    "a hundred thousand brackets": ("", b"[" * 100_000, "bad_json"),
    "objects in objects in objects": ("", deep(50_000), "bad_json"),
    "no id": ("", text(envelope("bad", id=None)), "invalid_payload"),
    "an id that is a number": ("", text(envelope("bad", id=7)), "invalid_payload"),
    "another specification": ("", text(envelope("bad", specversion="0.3")), "invalid_payload"),
    "a time without its zone": ("", text(envelope("bad", time="2026-03-05T12:00:00")), "invalid_payload"),
    "no content": ("", text(envelope("bad", data=data("t", content=None))), "invalid_payload"),
    "types that are no list": ("", text(envelope("bad", data=data("t", types="tool"))), "invalid_payload"),
    "a score beyond five": ("", text(envelope("bad", data=data("t", score=9))), "invalid_payload"),
    "an illegal scope": ("", text(envelope("bad", data=data("t", scopes=["Planet mars"]))), "invalid_payload"),
    "an unknown type": (
        "ledger.default.knowledge.bad.sung.agent.by-hand",
        text(envelope("bad", type="knowledge.sung", dataschema="urn:kledger:knowledge.sung:1")),
        "unknown_event",
    ),
    "a version to come": (
        "",
        text(envelope("bad", dataschema="urn:kledger:knowledge.saved:99")),
        "unsupported_version",
    ),
    "a schema of something else": (
        "",
        text(envelope("bad", dataschema="urn:kledger:knowledge.rated:1")),
        "invalid_payload",
    ),
    "a forged actor": ("", text(envelope("bad", actor="user:ceo")), "illegal_subject"),
    "a forged owner": ("", text(envelope("bad", data=data("t", owner="user:ceo"))), "not_owner"),
    "a subject of another item": (subject("other"), text(envelope("bad")), "illegal_subject"),
    "a subject of another event": (subject("bad", "retired"), text(envelope("bad")), "illegal_subject"),
    "a subject that is too short": ("ledger.default.knowledge", text(envelope("bad")), "illegal_subject"),
    "a subject in another spelling": (subject("b=61d"), text(envelope("bad")), "illegal_subject"),
    "a rating of nothing": (
        subject("no-such-item", "rated"),
        text(
            envelope(
                "no-such-item",
                type="knowledge.rated",
                dataschema="urn:kledger:knowledge.rated:1",
                data={"verdict": "helpful"},
            )
        ),
        "unknown_knowledge",
    ),
}


def refusals(ledger: LedgerClient, after: int) -> dict[int, str]:
    rows = ledger.sql(f"SELECT position, code FROM refused_events WHERE position > {after} ORDER BY position")["rows"]
    return {int(position): str(code) for position, code in rows}


async def test_an_event_published_by_hand_is_searchable(
    shared_node: RunningNode, ledger: LedgerClient, writer: Client
) -> None:
    body = envelope("hand-1", traceid="trace-hand", data=data("Polish the brass doorknob 擦亮黄铜门把手"))
    ack = await writer.jetstream().publish(subject("hand-1"), text(body), headers={"Nats-Msg-Id": body["id"]})
    seeing = ledger.seeing(ack.seq)
    for asked in ("polish the brass doorknob", "黄铜门把手"):
        found = seeing.search(asked, top_k=1, record=False)["results"][0]
        assert (found["id"], found["owner"], found["position"]) == ("hand-1", ACTOR, ack.seq)
    assert {edge["entity_id"] for edge in seeing.lineage("trace:trace-hand")["edges"]} == {"hand-1"}
    again = await writer.jetstream().publish(subject("hand-1"), text(body), headers={"Nats-Msg-Id": body["id"]})
    assert (again.seq, again.duplicate) == (ack.seq, True)


async def test_each_malformed_event_is_refused_with_its_reason_and_the_next_good_one_counts(
    shared_node: RunningNode, ledger: LedgerClient, writer: Client
) -> None:
    before = caught_up(ledger)["stream"]["head"]
    expected: dict[int, tuple[str, str]] = {}
    good: list[tuple[str, int]] = []
    stream = writer.jetstream()
    for number, (what, (under, body, code)) in enumerate(MALFORMED.items()):
        ack = await stream.publish(under or subject("bad"), body)
        expected[ack.seq] = (what, code)
        item_id = f"next-{uuid.uuid4().hex}-{number}"
        ack = await stream.publish(subject(item_id), text(envelope(item_id)))
        good.append((item_id, ack.seq))
    caught_up(ledger.seeing(good[-1][1]))
    found = refusals(ledger, before)
    told = {what: found.get(position) for position, (what, _) in expected.items()}
    assert told == dict(expected.values())
    assert len(found) == len(MALFORMED)
    for item_id, position in good:
        assert ledger.get(item_id)["position"] == position
    reasons = ledger.sql(f"SELECT reason, body FROM refused_events WHERE position > {before}")["rows"]
    assert all(len(reason) > 10 for reason, _ in reasons)
    # what was judged one by one is judged the same in one great batch
    verified = result_of(ledger, "verify")
    assert (verified["equal"], verified["differences"]) == (True, [])
    assert ledger.status()["healthy"] is True


async def test_a_repeated_event_id_counts_once_whatever_it_says(
    shared_node: RunningNode, ledger: LedgerClient, writer: Client
) -> None:
    stream, item_id = writer.jetstream(), f"once-{uuid.uuid4().hex}"
    body = envelope(item_id)
    first = await stream.publish(subject(item_id), text(body))
    same = await stream.publish(subject(item_id), text(body))
    other_id = f"{item_id}-other"
    other = await stream.publish(subject(other_id), text(envelope(other_id, id=body["id"])))
    assert same.seq == first.seq + 1  # no Nats-Msg-Id: the broker keeps both
    caught_up(ledger.seeing(other.seq))
    assert refusals(ledger, first.seq) == {same.seq: "duplicate_event", other.seq: "duplicate_event"}
    assert ledger.sql(f"SELECT count(*) FROM knowledge WHERE id LIKE '{item_id}%'")["rows"] == [[1]]


async def test_unusual_but_legal_events_count_or_are_refused_and_hold_up_nothing(
    shared_node: RunningNode, ledger: LedgerClient, writer: Client
) -> None:
    """Whatever the verdict, folding goes on, and one by one or in a batch it is the same."""
    before = caught_up(ledger)["stream"]["head"]
    stream, run = writer.jetstream(), uuid.uuid4().hex
    bodies = {
        "large": text(envelope(f"large-{run}", data=data("t", content="知识" * 160_000))),
        "deep": with_tags(f"deep-{run}", deep(30)),
        "too-deep": with_tags(f"too-deep-{run}", deep(40)),
        "deeper": with_tags(f"deeper-{run}", deep(200)),
        "deepest": with_tags(f"deepest-{run}", deep(1_000)),
        "nul": text(envelope(f"nul-{run}", data=data("before\0after"))),
        "surrogate": with_tags(f"surrogate-{run}", rb'{"x": "\ud800"}'),
        "nan": with_tags(f"nan-{run}", b'{"x": NaN}'),
        "huge": with_tags(f"huge-{run}", b'{"x": 123456789012345678901234567890, "y": 1e999}'),
        "twice": with_tags(f"twice-{run}", b'{"x": 1, "x": 2}'),
        "spaced": json.dumps(envelope(f"spaced-{run}"), indent=3).encode(),
        "quotes": text(envelope(f"quotes-{run}", data=data("'; DROP TABLE events; --", content='\\"\u2028\U0001f980'))),
    }
    for name, body in bodies.items():
        await stream.publish(subject(f"{name}-{run}"), body)
    last = await stream.publish(subject(f"last-{run}"), text(envelope(f"last-{run}")))
    caught_up(ledger.seeing(last.seq))
    refused = refusals(ledger, before)
    accepted = {row[0] for row in ledger.sql(f"SELECT id FROM knowledge WHERE id LIKE '%-{run}'")["rows"]}
    assert len(refused) + len(accepted) == len(bodies) + 1
    assert set(refused.values()) <= {"bad_json", "invalid_payload"}
    assert {f"{name}-{run}" for name in ("large", "deep", "spaced", "quotes", "last")} <= accepted
    assert accepted.isdisjoint({f"{name}-{run}" for name in ("nan", "nul", "too-deep", "deepest")})
    for item_id in accepted:
        assert ledger.get(item_id)["version"] == 1
    verified = result_of(ledger, "verify")
    assert (verified["equal"], verified["differences"]) == (True, [])


@pytest.mark.parametrize("token", ["*", ">", "\0", "a\0b", "知识", "a=", "=0a", "a b".replace(" ", "\u00a0")])
def test_a_subject_that_only_a_raw_client_can_send_is_refused(
    shared_node: RunningNode, ledger: LedgerClient, token: str
) -> None:
    before = caught_up(ledger)["stream"]["head"]
    user = shared_node.access.credentials("writer")
    assert user is not None
    address = urlsplit(shared_node.access.url)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as raw:
        hello = {"user": user[0], "pass": user[1], "verbose": False, "pedantic": False}
        body = text(envelope("bad"))
        raw.sendall(b"CONNECT " + text(hello) + b"\r\n")
        raw.sendall(f"PUB {subject(token)} {len(body)}\r\n".encode() + body + b"\r\nPING\r\n")
        told = b""
        while b"PONG" not in told:
            part = raw.recv(4096)
            assert part, told
            told += part
    assert b"-ERR" not in told
    # The broker has answered the PING once it has read the message, which its stream stores after that.
    until(lambda: caught_up(ledger)["stream"]["head"] > before, "the stream has it")
    after = caught_up(ledger)["stream"]["head"]
    assert after == before + 1
    assert refusals(ledger, before) == {after: "illegal_subject"}


async def test_a_writer_can_publish_and_nothing_else(
    shared_node: RunningNode, ledger: LedgerClient, writer: Client
) -> None:
    before = head(ledger)
    for api in ("STREAM.PURGE.LEDGER", "STREAM.DELETE.LEDGER", "STREAM.UPDATE.LEDGER", "STREAM.MSG.DELETE.LEDGER"):
        with pytest.raises(nats.errors.TimeoutError):
            await writer.request(f"$JS.API.{api}", b'{"seq": 1}', timeout=0.3)
    with pytest.raises((nats.errors.Error, APIError)):
        await writer.jetstream().publish("ledger.too.large", b"x" * (1024 * 1024 + 1))
    assert head(ledger) == before

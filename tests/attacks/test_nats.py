"""Attacks by a foreign client with a publisher's rights, on a real server with the configuration that we write.

The broker refuses what is not the publisher's to say; what its rights cannot tell apart, the fold refuses.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError
from nats.js.errors import NoStreamResponseError

from kledger import LedgerClient
from ledger.broker.connection import BrokerConnection
from ledger.broker.publisher_config import Publisher, access_with, write_nats_config
from ledger.event import JsonObject
from tests.attacks.yard import BOB, SCRIBE, Yard, opened
from tests.journeys.running_node import caught_up, head, result_of, until
from tests.journeys.test_publishing_by_hand import data, deep, envelope, text
from tests.ledger.test_any_bytes import HEADERS, SUBJECTS, Message, published
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with opened(tmp_path_factory.mktemp("yard")) as yard:
        yield yard


@pytest.fixture
def ledger(yard: Yard) -> Iterator[LedgerClient]:
    with yard.node.client() as client:
        yield client


@pytest.fixture
async def scribe(yard: Yard) -> AsyncIterator[Client]:
    client = await yard.connect(SCRIBE)
    yield client
    await client.close()


def good(item_id: str, **changed: Any) -> dict[str, Any]:
    said = {"actor": SCRIBE, "data": data(f"by {item_id}", owner=SCRIBE, scopes=[SCRIBE])}
    return envelope(item_id, **{**said, **changed})


def subject(item_id: str, verb: str = "saved", actor: str = "agent.scribe", entity: str = "knowledge") -> str:
    return f"ledger.default.{entity}.{item_id}.{verb}.{actor}"


async def test_a_publisher_publishes_as_itself(yard: Yard, ledger: LedgerClient, scribe: Client) -> None:
    ack = await scribe.jetstream().publish(subject("scribes"), text(good("scribes")))
    found = ledger.acting_as(agent="scribe").seeing(ack.seq).get("scribes")
    assert (found["owner"], found["position"]) == (SCRIBE, ack.seq)


BEYOND = {
    "as another actor": subject("x", actor="user.bob"),
    "as an actor of another kind": subject("x", actor="user.scribe"),
    "as the operator of a node": subject("x", actor="user.local"),
    "for another tenant": "ledger.lantern.knowledge.x.saved.agent.scribe",
    "with one token less": "ledger.default.knowledge.saved.agent.scribe",
    "with one token more": "ledger.default.knowledge.x.y.saved.agent.scribe",
    "to every subject": "ledger.>",
    "beside the ledger": "other.default.knowledge.x.saved.agent.scribe",
    "to the kept embeddings": "embedding.model.x",
    "to the node's own requests": "kledger.health",
    "to another's inbox": Publisher(BOB, "default", "").inbox + ".x",
    "to delete the stream": "$JS.API.STREAM.DELETE.LEDGER",
    "to purge the stream": "$JS.API.STREAM.PURGE.LEDGER",
    "to cut the stream": "$JS.API.STREAM.UPDATE.LEDGER",
    "to delete a message": "$JS.API.STREAM.MSG.DELETE.LEDGER",
    "to read a message": "$JS.API.STREAM.MSG.GET.LEDGER",
    "to read a message directly": "$JS.API.DIRECT.GET.LEDGER",
    "to make a consumer": "$JS.API.CONSUMER.CREATE.LEDGER.x",
    "to the server itself": "$SYS.REQ.SERVER.PING",
}


@pytest.mark.parametrize("what", BEYOND)
async def test_the_broker_refuses_what_is_not_the_publishers(yard: Yard, ledger: LedgerClient, what: str) -> None:
    before = head(ledger)
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    client = await yard.connect(SCRIBE, error_cb=heard.put)
    try:
        with pytest.raises((TimeoutError, NoStreamResponseError)):
            await client.request(BEYOND[what], text(good("x")), timeout=0.3, old_style=True)
        async with asyncio.timeout(PATIENCE):
            assert "permissions violation for publish" in str(await heard.get()).lower()
    finally:
        await client.close()
    assert head(ledger) == before


@pytest.mark.parametrize(
    "listened", ["ledger.>", ">", "_INBOX.>", "kledger.>", "$JS.>", Publisher(BOB, "default", "").inbox + ".>"]
)
async def test_a_publisher_hears_nobody_else(yard: Yard, listened: str) -> None:
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    client = await yard.connect(SCRIBE, error_cb=heard.put)
    try:
        await client.subscribe(listened)
        async with asyncio.timeout(PATIENCE):
            assert "permissions violation for subscription" in str(await heard.get()).lower()
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("user", "password"),
    [
        (SCRIBE, "guess"),
        (SCRIBE, ""),
        (SCRIBE, None),
        (BOB, "{scribe}"),
        ("admin", "{scribe}"),
        ("node", "{scribe}"),
        ("writer", ""),
        (None, None),
    ],
)
def test_another_principals_name_or_password_opens_nothing(yard: Yard, user: str | None, password: str | None) -> None:
    known = yard.publisher(SCRIBE).password
    assert lets_in(yard.url, SCRIBE, known)
    assert not lets_in(yard.url, user, password and password.replace("{scribe}", known))


def lets_in(url: str, user: str | None, password: str | None) -> bool:
    """Whether the server takes this name and password."""
    host, _, port = url.removeprefix("nats://").partition(":")
    said = {name: value for name, value in (("user", user), ("pass", password)) if value is not None}
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(b"CONNECT " + text({"verbose": False, "pedantic": False, **said}) + b"\r\nPING\r\n")
        told = b""
        while b"PONG" not in told and b"-ERR" not in told and (part := raw.recv(4096)):
            told += part
    return b"PONG" in told


@pytest.mark.parametrize(
    "aim",
    [
        "$JS.API.STREAM.DELETE.LEDGER",
        "$JS.API.STREAM.PURGE.SESSIONS",
        subject("aimed", actor="user.bob"),
        "$KV.KLEDGER_KEYS.key.user=3Amei",
        "sessions.default.user=3Abob.said.head",
        "parked.1",
        "kledger.health",
    ],
)
async def test_an_answer_cannot_be_aimed_where_the_publisher_may_not_speak(
    yard: Yard, ledger: LedgerClient, scribe: Client, aim: str
) -> None:
    """The server answers a publish itself, wherever the reply subject points to."""
    before = caught_up(ledger)["stream"]["head"]
    opened = {"Nats-Batch-Id": f"aims-{uuid.uuid4()}", "Nats-Batch-Sequence": "1"}  # its answer is empty
    await scribe.publish(subject("aims"), text(good("aims", data=None)), reply=aim, headers=opened)
    await scribe.publish(subject("aims"), text(good("aims", data=None)), reply=aim)
    ack = await scribe.jetstream().publish(subject("after"), text(good("after", data=None)))
    caught_up(ledger.seeing(ack.seq))
    refused = ledger.sql(f"SELECT subject, code FROM refused_events WHERE position > {before}")["rows"]
    assert {code for _, code in refused} == {"invalid_payload"}
    assert len(refused) == head(ledger) - before, "nothing of it counts"
    assert ledger.sql("SELECT count(*) FROM events WHERE entity_id = 'aimed'")["rows"] == [[0]]
    admin = await BrokerConnection.open(access_with(yard.url, yard.written.credentials), "admin", name="test")
    streams = (await admin.api("STREAM.LIST"))["streams"]
    await admin.close()
    kept = {one["config"]["name"]: one["state"]["last_seq"] for one in streams}
    assert kept == {"LEDGER": head(ledger), "KV_KLEDGER_KEYS": 1, "KLEDGER_PARKED": 0, "SESSIONS": 0}


def changing(item_id: str, verb: str, said: dict[str, Any]) -> tuple[str, bytes]:
    about = {"type": f"knowledge.{verb}", "dataschema": f"urn:kledger:knowledge.{verb}:1", "data": said}
    return subject(item_id, verb), text(good(item_id, **about))


FORGED: dict[str, tuple[str, bytes, str]] = {
    "another actor in the body": (subject("f"), text(good("f", actor=BOB)), "illegal_subject"),
    "another actor and owner in the body": (
        subject("f"), text(good("f", actor=BOB, data=data("t", owner=BOB))), "illegal_subject",
    ),
    "an item that somebody else is to own": (subject("f"), text(good("f", data=data("t", owner=BOB))), "not_owner"),
    "an item that a team is to own": (subject("f"), text(good("f", data=data("t", owner="team:web"))), "not_owner"),
    "a save over another's item": (subject("bobs"), text(good("bobs")), "knowledge_exists"),
    "another's item stated anew": (*changing("bobs", "revised", {"content": "forged"}), "not_owner"),
    "another's item made public": (*changing("bobs", "revised", {"scopes": ["public"]}), "not_owner"),
    "another's item taken over": (*changing("bobs", "revised", {"owner": SCRIBE}), "not_owner"),
    "another's item retired": (*changing("bobs", "retired", {}), "not_owner"),
    "another's item restored": (*changing("bobs", "restored", {}), "not_owner"),
    "another's profile": (
        subject("user=3Abob=2Fuser", "disabled", entity="profile"),
        text(good("x", subject="profile/user:bob/user", type="profile.disabled",
                  dataschema="urn:kledger:profile.disabled:1", data={"owner": BOB, "memory_type": "user"})),
        "not_owner",
    ),
    "another item than the subject's": (subject("f"), text(good("g")), "illegal_subject"),
    "another event than the subject's": (subject("f", "retired"), text(good("f")), "illegal_subject"),
    "another tenant in the body": (subject("f"), text(good("f", subject="lantern/knowledge/f")), "illegal_subject"),
    "a scope that is SQL": (
        subject("f"), text(good("f", data=data("t", owner=SCRIBE, scopes=["' --"]))), "invalid_payload",
    ),
    "an actor that is SQL": (subject("f"), text(good("f", actor="agent:scribe' --")), "illegal_subject"),
    "a schema that is SQL": (subject("f"), text(good("f", dataschema="urn:kledger:x'--")), "invalid_payload"),
    "a time that is SQL": (subject("f"), text(good("f", time="now(); DROP TABLE events")), "invalid_payload"),
    "brackets without end": (subject("f"), b"[" * 100_000, "bad_json"),
    "objects in objects in objects": (subject("f"), deep(50_000), "bad_json"),
    "nothing": (subject("f"), b"", "bad_json"),
}  # fmt: skip


async def test_each_forged_event_is_refused_by_the_fold_with_its_code(
    yard: Yard, ledger: LedgerClient, scribe: Client
) -> None:
    bob = await yard.connect(BOB)
    said = envelope("bobs", actor=BOB, data=data("bob's own", owner=BOB, scopes=[BOB]))
    ack = await bob.jetstream().publish(subject("bobs", actor="user.bob"), text(said))
    await bob.close()
    twice = text(good("twice"))
    ack = await scribe.jetstream().publish(subject("twice"), twice)
    before = caught_up(ledger.seeing(ack.seq))["stream"]["head"]
    items = "SELECT id, version, owner, status, content, scopes::VARCHAR FROM knowledge ORDER BY id"
    known = ledger.sql(items)["rows"]
    expected: dict[int, str] = {}
    for under, body, code in FORGED.values():
        expected[(await scribe.jetstream().publish(under, body)).seq] = code
    again = await scribe.jetstream().publish(subject("twice"), twice)
    expected[again.seq] = "duplicate_event"
    caught_up(ledger.seeing(again.seq))
    rows = ledger.sql(f"SELECT position, code FROM refused_events WHERE position > {before}")["rows"]
    assert {int(position): code for position, code in rows} == expected
    assert ledger.sql(items)["rows"] == known
    untouched = ledger.acting_as(user="of-whom-nothing-was-said").profiles.both()
    assert ledger.acting_as(user="bob").profiles.both() == untouched


async def test_events_of_any_bytes_are_refused_and_harm_nothing(yard: Yard, ledger: LedgerClient) -> None:
    odd: list[Message] = [(each.replace(b"user.ada", b"agent.scribe"), None, b"{}") for each in SUBJECTS]
    odd = [each for each in odd if each[0].endswith(b".agent.scribe")]
    odd += [(subject("odd").encode(), headers, body) for headers in HEADERS for body in (b"", text(good("odd")))]
    one = yard.publisher(SCRIBE)
    before = caught_up(ledger)["stream"]["head"]
    kept = await published(yard.url, one.password, odd, user=one.user, inbox=one.inbox)
    assert caught_up(ledger.seeing(before + kept))["stream"]["head"] == before + kept
    refused = ledger.sql(f"SELECT subject, code, reason FROM refused_events WHERE position > {before}")["rows"]
    assert len(refused) == kept - 1, "one of those for one item counts"
    assert {code for _, code, _ in refused} == {"bad_json", "illegal_subject", "invalid_payload", "knowledge_exists"}
    assert result_of(ledger, "verify")["equal"]
    assert result_of(ledger, "audit")["intact"]


async def test_the_log_takes_no_message_that_is_too_large(yard: Yard, ledger: LedgerClient) -> None:
    before = head(ledger)
    client = await yard.connect(SCRIBE)
    with pytest.raises(nats.errors.Error):
        await client.jetstream().publish(subject("x"), b"x" * (1024 * 1024 + 1))
    await client.close()
    assert head(ledger) == before


async def test_open_batches_of_a_publisher_that_never_commits_stop_nobodys_writes(
    yard: Yard, ledger: LedgerClient, scribe: Client
) -> None:
    """A server as it comes takes 50 open batches for all its writers together."""
    for n in range(120):
        headers = {"Nats-Batch-Id": f"held-{n}", "Nats-Batch-Sequence": "1"}
        answer = await scribe.request(subject(f"held-{n}"), text(good(f"held-{n}")), headers=headers, timeout=30)
        assert not answer.data, "the batch is open"
    before = head(ledger)
    bob = ledger.acting_as(user="bob")
    item: JsonObject = {"task": "t", "content": "c", "types": ["tool"], "scopes": ["public"]}
    reader = {"entity": "user:mei", "permission": "read"}
    asked = [
        {"id": "beside-open-batches", **item, "acl": [reader]},
        *({"id": f"beside-{n}", **item} for n in range(300)),
    ]
    saved = await asyncio.to_thread(bob.save_many, asked)
    assert (saved["saved"], saved["refused"]) == (301, 0)
    assert head(ledger) == before + 302


async def test_who_is_removed_is_cut_off_by_a_reload_and_the_others_go_on(yard: Yard, ledger: LedgerClient) -> None:
    write_nats_config(yard.directory, ["agent:leaver"])
    yard.server.send_signal(signal.SIGHUP)
    kept = json.loads(yard.written.credentials.read_bytes())["publishers"]
    assert kept["user:bob"] == yard.publisher(BOB).password
    leaver = Publisher("agent:leaver", "default", kept["agent:leaver"])

    await asyncio.to_thread(until, lambda: lets_in(yard.url, leaver.user, leaver.password), "the leaver is let in")
    gone = _Gone()
    client = await nats.connect(
        yard.url,
        user=leaver.user,
        password=leaver.password,
        inbox_prefix=leaver.inbox,
        allow_reconnect=False,
        error_cb=_silent,
        closed_cb=gone.happened,
    )
    body = text(good("l", actor="agent:leaver", data=data("t", owner="agent:leaver", scopes=["public"])))
    await client.jetstream().publish(subject("l", actor="agent.leaver"), body)
    write_nats_config(yard.directory, remove=["agent:leaver"])
    yard.server.send_signal(signal.SIGHUP)
    async with asyncio.timeout(PATIENCE):
        await gone.event.wait()
    assert not lets_in(yard.url, leaver.user, leaver.password)
    scribe = await yard.connect(SCRIBE)
    ack = await scribe.jetstream().publish(subject("still"), text(good("still")))
    await scribe.close()
    assert ledger.acting_as(agent="scribe").seeing(ack.seq).get("still")["owner"] == SCRIBE


class _Gone:
    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def happened(self) -> None:
        self.event.set()


async def _silent(_error: Exception) -> None:
    """That the server hangs up is what the test waits for."""


def test_passwords_are_readable_by_their_owner_alone_and_in_no_answer_of_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from producers.cli.main import app

    ran = CliRunner().invoke(app, ["nats-config", str(tmp_path / "b"), "--publisher", "agent:阿 b.c", "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    (one,) = told["publishers"]
    assert one["subjects"] == "ledger.default.*.*.*.agent.=E9=98=BF=20b=2Ec"
    kept = json.loads(Path(told["credentials"]).read_bytes())
    for password in (*kept["roles"].values(), *kept["publishers"].values()):
        assert password not in ran.output
    for name in ("config", "credentials"):
        assert Path(told[name]).stat().st_mode & 0o777 == 0o600
    refused = CliRunner().invoke(app, ["nats-config", str(tmp_path / "b"), "--publisher", "Planet Mars"])
    assert (refused.exit_code, "illegal_scope" in refused.output) == (1, True)
    nodes_own = CliRunner().invoke(app, ["nats-config", str(tmp_path / "b"), "--publisher", "user:local"])
    assert (nodes_own.exit_code, "illegal_scope" in nodes_own.output) == (1, True)
    missing = CliRunner().invoke(app, ["nats-config", str(tmp_path / "b"), "--remove", "user:nobody"])
    assert (missing.exit_code, "no publisher" in missing.output) == (1, True)

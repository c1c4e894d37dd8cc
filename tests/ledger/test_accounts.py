"""No user but admin can cut, delete or forge the log: each attack is tried, and the stream compared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import nats
import orjson
import pytest
from nats.aio.msg import Msg

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable
from ledger.broker.access import BrokerAccess, Role
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import ensure_stream, stream_config
from ledger.event import JsonObject, NewEvent
from ledger.store.jetstream import JetStreamLedger
from ledger.wire.publication import error_code
from tests.patience import PATIENCE

Make = Callable[..., NewEvent]
DAILY: tuple[Role, ...] = ("writer", "reader", "node")


@pytest.fixture(params=DAILY)
async def attacker(request: pytest.FixtureRequest, access: BrokerAccess) -> AsyncIterator[BrokerConnection]:
    """A connection with the rights of a day-to-day role."""
    connection = await BrokerConnection.open(access, request.param, name="attacker")
    yield connection
    await connection.close()


@pytest.fixture
async def kept(jetstream_ledger: JetStreamLedger, new_saved: Make) -> int:
    """How many events the stream holds before the attack."""
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    return 10


async def state(admin: BrokerConnection) -> tuple[JsonObject, JsonObject]:
    info = await admin.api("STREAM.INFO.LEDGER")
    counted = {name: info["state"][name] for name in ("messages", "first_seq", "last_seq", "bytes")}
    return counted, info["config"]


ATTACKS: dict[str, tuple[str, object]] = {
    "delete the stream": ("STREAM.DELETE.LEDGER", None),
    "purge it": ("STREAM.PURGE.LEDGER", {}),
    "purge a subject": ("STREAM.PURGE.LEDGER", {"filter": "ledger.>"}),
    "cut it to five messages": ("STREAM.UPDATE.LEDGER", {**stream_config(), "max_msgs": 5}),
    "let it age": ("STREAM.UPDATE.LEDGER", {**stream_config(), "max_age": 200_000_000_000}),
    "lift the deny flags": ("STREAM.UPDATE.LEDGER", {**stream_config(), "deny_delete": False}),
    "delete a message": ("STREAM.MSG.DELETE.LEDGER", {"seq": 3}),
    "delete without erasing": ("STREAM.MSG.DELETE.LEDGER", {"seq": 3, "no_erase": True}),
    "restore over it": ("STREAM.RESTORE.LEDGER", {"config": stream_config()}),
    "take a snapshot": ("STREAM.SNAPSHOT.LEDGER", {"deliver_subject": "_INBOX.x"}),
    "step the leader down": ("STREAM.LEADER.STEPDOWN.LEDGER", None),
    "remove a peer": ("STREAM.PEER.REMOVE.LEDGER", {"peer": "kledger"}),
    "create another stream over it": (
        "STREAM.CREATE.OTHER",
        {"name": "OTHER", "subjects": ["kledger.x"], "sources": [{"name": "LEDGER"}]},
    ),
    "steal the subjects": ("STREAM.CREATE.STEAL", {"name": "STEAL", "subjects": ["ledger.stolen.>"]}),
    "remove the account": ("ACCOUNT.PURGE.LEDGER", None),
    "create a consumer the old way": ("CONSUMER.DURABLE.CREATE.LEDGER.x", {"stream_name": "LEDGER"}),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_daily_user_may_change_the_stream(
    admin: BrokerConnection, attacker: BrokerConnection, kept: int, attack: str
) -> None:
    before = await state(admin)
    subject, document = ATTACKS[attack]
    body = b"" if document is None else orjson.dumps(document)
    with pytest.raises(BrokerMisconfigured, match="may not do this"):
        await attacker.request(f"$JS.API.{subject}", body, timeout=PATIENCE)
    assert await state(admin) == before
    assert before[0]["messages"] == kept
    assert (await admin.api("STREAM.NAMES"))["streams"] == ["LEDGER"]


async def test_even_admin_cannot_delete_or_purge_messages_by_mistake(admin: BrokerConnection, kept: int) -> None:
    before = await state(admin)
    assert error_code(await admin.api("STREAM.PURGE.LEDGER", {}))
    assert error_code(await admin.api("STREAM.MSG.DELETE.LEDGER", {"seq": 3}))
    weaker = {**stream_config(), "deny_delete": False, "deny_purge": False}
    assert error_code(await admin.api("STREAM.UPDATE.LEDGER", weaker))
    assert await state(admin) == before
    assert before[0]["messages"] == kept


@pytest.mark.parametrize("role", ["reader", "node"])
@pytest.mark.parametrize(
    "target",
    [
        "$JS.API.STREAM.DELETE.LEDGER",
        "$JS.API.STREAM.PURGE.LEDGER",
        "$JS.API.STREAM.MSG.DELETE.LEDGER",
        "$JS.API.STREAM.UPDATE.LEDGER",
        "ledger.default.knowledge.forged.saved.user.ada",
    ],
)
async def test_a_push_consumer_cannot_be_aimed_at_the_api_or_the_log(
    access: BrokerAccess, admin: BrokerConnection, kept: int, role: Role, target: str
) -> None:
    # The server itself publishes what a push consumer delivers, so a user's own rights do not stop it.
    before = await state(admin)
    attacker = await BrokerConnection.open(access, role, name="attacker")
    for headers_only in (True, False):
        config = {"name": f"aim{headers_only}", "ack_policy": "none", "deliver_policy": "all"}
        aimed = {**config, "deliver_subject": target, "headers_only": headers_only}
        document = {"stream_name": "LEDGER", "config": aimed}
        await attacker.api(f"CONSUMER.CREATE.LEDGER.aim{headers_only}", document)
    done, _ = await asyncio.wait([asyncio.create_task(_changes(admin, before))], timeout=0.4)
    assert not done
    await attacker.close()
    assert before[0]["messages"] == kept


AIMS = (
    "$JS.API.STREAM.DELETE.LEDGER",
    "$JS.API.STREAM.DELETE.BESIDE",
    "$JS.API.STREAM.PURGE.BESIDE",
    "$JS.API.CONSUMER.DELETE.LEDGER.durable",
    "beside.forged",
    "kledger.health",
    "_INBOX_node.x",
    "_INBOX_reader.x",
)
_OPENED = {"Nats-Batch-Id": "aimed-{}", "Nats-Batch-Sequence": "1"}
ANSWERED: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "an event": ("ledger.default.knowledge.x.saved.user.ada", b"{}", {}),
    "a batch that is opened": ("ledger.default.knowledge.x.saved.user.ada", b"{}", _OPENED),
    "a look at an event": ("$JS.API.DIRECT.GET.LEDGER", b'{"seq": 1}', {}),
    "a look at an event that is not there": ("$JS.API.DIRECT.GET.LEDGER", b'{"seq": 99}', {}),
    "a look at the stream": ("$JS.API.STREAM.INFO.LEDGER", b"", {}),
}


@pytest.mark.parametrize("asked", ANSWERED)
async def test_no_answer_can_be_aimed_at_the_api_another_stream_or_the_node(
    access: BrokerAccess, admin: BrokerConnection, kept: int, asked: str
) -> None:
    # The server itself publishes an answer wherever the reply subject points to, and an empty one deletes a stream.
    subject, body, headers = ANSWERED[asked]
    await admin.api("STREAM.CREATE.BESIDE", {"name": "BESIDE", "subjects": ["beside.>"], "storage": "memory"})
    durable = {"stream_name": "LEDGER", "config": {"durable_name": "durable", "ack_policy": "explicit"}}
    await admin.api("CONSUMER.CREATE.LEDGER.durable", durable)
    await admin.request("beside.ours", b"{}")
    heard: asyncio.Queue[Msg] = asyncio.Queue()
    answered: asyncio.Queue[Msg] = asyncio.Queue()
    node = await BrokerConnection.open(access, "node", name="node")
    for inbox in ("_INBOX_node.x", "kledger.health"):
        await node.client.subscribe(inbox, cb=heard.put)
    await node.api("INFO")  # the broker knows of the subscriptions
    attacker = await BrokerConnection.open(access, "writer", name="attacker")
    await attacker.client.subscribe(inbox := attacker.client.new_inbox(), cb=answered.put)
    for number, aim in enumerate((*AIMS, inbox)):  # what is asked before is answered before
        given = {name: value.format(number) for name, value in headers.items()}
        await attacker.send(subject, body, given, reply=aim)
    async with asyncio.timeout(PATIENCE):
        await answered.get()
    await admin.api("CONSUMER.DELETE.LEDGER.nobody")
    beside = await admin.api("STREAM.INFO.BESIDE")
    assert beside["state"]["last_seq"] == beside["state"]["messages"] == 1
    assert not error_code(await admin.api("CONSUMER.INFO.LEDGER.durable"))
    assert (await admin.api("STREAM.INFO.LEDGER"))["state"]["messages"] >= kept
    await node.api("INFO")
    assert heard.empty()
    await attacker.close()
    await node.close()
    await admin.api("STREAM.DELETE.BESIDE")


async def _changes(admin: BrokerConnection, before: tuple[JsonObject, JsonObject]) -> None:
    """Ends when the stream is not as it was."""
    while await state(admin) == before:  # noqa: ASYNC110  # the stream is another process
        await asyncio.sleep(0.02)


async def test_rollup_ttl_and_schedule_headers_remove_nothing(
    access: BrokerAccess, admin: BrokerConnection, kept: int
) -> None:
    attacker = await BrokerConnection.open(access, "writer", name="attacker")
    for headers in (
        {"Nats-Rollup": "all"},
        {"Nats-Rollup": "sub"},
        {"Nats-TTL": "1s"},
        {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "ledger.x"},
        {"Nats-Incr": "1"},
    ):
        reply = await attacker.request("ledger.default.knowledge.item-1.saved.user.ada", b"{}", headers)
        assert error_code(orjson.loads(reply.data)), headers
    await attacker.close()
    counted, _ = await state(admin)
    assert (counted["messages"], counted["first_seq"]) == (kept, 1)


@pytest.mark.parametrize("subject", ["$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.LEDGER.PURGE", "embedding.x"])
async def test_a_writer_publishes_nowhere_but_on_the_ledgers_subjects(access: BrokerAccess, subject: str) -> None:
    writer = await BrokerConnection.open(access, "writer", name="attacker")
    with pytest.raises(BrokerMisconfigured, match="may not do this"):
        await writer.request(subject, b"{}", timeout=PATIENCE)
    await writer.close()


async def test_a_reader_publishes_no_event(access: BrokerAccess, new_saved: Make) -> None:
    ledger = await JetStreamLedger.connect(access, role="reader")
    with pytest.raises(BrokerMisconfigured, match="reader"):
        await ledger.append(new_saved("item-1"))
    with pytest.raises(BrokerMisconfigured, match="reader"):
        await ledger.append_many([new_saved("item-1"), new_saved("item-2")])
    assert (await ledger.head()).position == 0
    await ledger.close()


async def test_a_writer_reads_no_stream(
    access: BrokerAccess, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append(new_saved("item-1"))
    ledger = await JetStreamLedger.connect(access, role="writer")
    assert (await ledger.append(new_saved("item-2", expects=0))).position == 2
    assert await ledger.last_position_of("default", "knowledge", "item-2") == 2
    with pytest.raises(BrokerMisconfigured, match="writer"):
        await anext(ledger.read())
    await ledger.close()


async def test_nobody_listens_to_what_a_reader_is_sent(access: BrokerAccess) -> None:
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    spy = await nats.connect(access.url_for("writer"), error_cb=heard.put)
    try:
        for subject in (f"{access.inbox_prefix('node')}.>", f"{access.inbox_prefix('reader')}.>", "ledger.>", ">"):
            await spy.subscribe(subject)
            async with asyncio.timeout(PATIENCE):
                assert "permissions violation for subscription" in str(await heard.get())
    finally:
        await spy.close()


async def test_without_or_with_wrong_credentials_nobody_gets_in(access: BrokerAccess) -> None:
    with pytest.raises(BrokerMisconfigured, match="refuses the credentials"):
        await BrokerConnection.open(BrokerAccess(access.url), "admin")
    wrong = BrokerAccess.from_url(access.url.replace("://", "://admin:guess@"))
    with pytest.raises(BrokerMisconfigured, match="refuses the credentials"):
        await ensure_stream(wrong)


async def test_one_user_of_an_outside_broker_serves_every_role(access: BrokerAccess, new_saved: Make) -> None:
    outside = BrokerAccess.from_url(access.url_for("admin"))
    assert access.passwords["admin"] not in repr(outside)
    assert access.passwords["admin"] not in repr(access)
    await ensure_stream(outside)
    ledger = await JetStreamLedger.connect(outside, role="node")
    assert (await ledger.append(new_saved("item-1"))).position == 1
    assert [len(events) async for events in ledger.read()] == [1]
    await ledger.close()


async def test_the_node_answers_requests(access: BrokerAccess) -> None:
    node = await BrokerConnection.open(access, "node", name="answers")
    asking = await BrokerConnection.open(access, "node", name="asks")
    with pytest.raises(BrokerUnavailable, match="nothing at the broker"):
        await asking.request("kledger.vectors.search", b"{}", timeout=PATIENCE)

    async def answer(message: Msg) -> None:
        await message.respond(message.data[::-1])

    await node.client.subscribe("kledger.vectors.>", cb=answer)
    # The library's flush may ask the server whether it has read everything before it has sent everything.
    async with asyncio.timeout(PATIENCE):
        while (said := await _answered(asking, "kledger.vectors.search", b"abc")) is None:
            continue
    assert said == b"cba"
    await asking.close()
    await node.close()


async def _answered(asking: BrokerConnection, subject: str, body: bytes) -> bytes | None:
    try:
        return (await asking.request(subject, body, timeout=2)).data
    except BrokerUnavailable:
        return None


@pytest.mark.parametrize("url", ["http://x:4222", "nats://", "nats://host:notaport", "://", "nats://host:99999", ""])
def test_an_address_that_is_none_is_refused_with_its_form(url: str) -> None:
    with pytest.raises(BrokerMisconfigured, match="address"):
        BrokerAccess.from_url(url)


def test_an_address_keeps_its_credentials_apart() -> None:
    access = BrokerAccess.from_url("nats://ada:p%40ss@broker.example:4333")
    assert access.url == "nats://broker.example:4333"
    assert access.credentials("writer") == ("ada", "p@ss")
    assert access.url_for("node") == "nats://ada:p%40ss@broker.example:4333"
    assert BrokerAccess.from_url("broker.example").url == "nats://broker.example:4222"
    assert BrokerAccess.from_url("nats://[::1]:4222").url == "nats://[::1]:4222"

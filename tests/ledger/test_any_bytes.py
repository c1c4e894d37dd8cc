"""What a publisher puts into subjects, headers and bodies is read, and read alike by every way to read the log.

The broker takes any bytes in a subject but blanks and ends of lines, and any block as headers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import NewEvent, StoredEvent
from ledger.integrity.chain import leaf_hash
from ledger.store import pull_consumer
from ledger.store.jetstream import JetStreamLedger
from ledger.store.stale_copies import check_still_there, event_at
from tests.patience import PATIENCE

PLAIN = b"ledger.default.knowledge.%s.saved.user.ada"
_ODD = [bytes([byte]) for byte in range(1, 256) if byte not in b"\t\n\r .*>"]
SUBJECTS = [
    *(PLAIN % (b"a" + byte + b"b") for byte in _ODD),
    *(PLAIN % b"a" + byte for byte in _ODD),
    PLAIN % b"\xe7\x9f",
    PLAIN % b"\xed\xa0\x80",
    b"ledger.\x0b",
    *(b"ledger.%s" % odd for odd in (b"*.>", b"*", b">", b"$JS.API.STREAM.DELETE.LEDGER", b"*" * 200)),
    *(b"ledger.default." + b"x" * size for size in (3_000, 3_880, 3_890, 4_020)),
    *(b"ledger.default." + odd * 1_000 for odd in (b"\xff", b"\xe2\x82", b"ab\x0b")),
    b"ledger.default." + b".".join([b"*"] * 2_000),
    b"ledger." + b"\xff" * 4_020,
]
_LONG = "é ".encode() * 20_000
HEADERS = (
    [
        b"NATS/1.0\r\nNats-Msg-Id: %s\r\n\r\n" % value
        for value in (
            b"a",
            b" a ",
            b"\x0ba\x0b",
            b"\xff\xfe",
            b"a\x1cb",
            "知".encode(),
            b"a" * 3_000,
            _LONG,
            b"\xff" * 60_000,
        )
    ]
    + [
        b"NATS/1.0 %s\r\n%s\r\n" % (status, more)
        for status in (
            b"404",
            b"408 Request Timeout",
            b"503",
            b"100 FlowControl Request",
            b"\xff\xff\xff",
            b"2\xff4 \xff",
        )
        for more in (b"", b"Nats-Msg-Id: with %s\r\n" % status, b"Nats-Sequence: 1\r\nNats-Subject: forged\r\n")
    ]
    + [
        b"NATS/1.0\r\nStatus: 503\r\n\r\n",
        b"NATS/1.0\r\nStatus: 404\r\nNats-Pending-Messages: x\r\n\r\n",
        b"NATS/1.0\r\nNats-Msg-Id: twice\r\nNats-Msg-Id: otherwise\r\n\r\n",
        b"NATS/1.0\r\n Nats-Msg-Id : with blanks\r\n\r\n",
        b"NATS/1.0\r\nNats-Sequence: 7\r\nNats-Time-Stamp: never\r\nNats-Subject: forged\r\nNats-Stream: X\r\n\r\n",
        b"NATS/1.0\r\nNats-Msg-Id: not ended",
        b"NATS/1.0\r\nNats-Msg-Id: half ended\r\n",
        b"NATS/1.0\r\nX: y\r\n\r\nNats-Msg-Id: behind the end",
        b"NATS/1.0\r\nX: y\r\n\r\nNats-Msg-Id: behind the end again\r\n\r\n",
        b"NATS/1.0",
        b"NATS/1.0\r\n",
        b"\r\n",
        b"abcd",
        b"x" * 5_000,
        b"\xff" * 40,
    ]
)


Message = tuple[bytes, bytes | None, bytes]
"""Subject, headers and body."""


async def published(
    url: str, password: str, messages: Sequence[Message], *, user: str = "writer", inbox: str = "_INBOX"
) -> int:
    """Publish these as they are, and return how many of them the broker has kept."""
    host, _, port = url.removeprefix("nats://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    said = {"verbose": False, "pedantic": False, "headers": True, "user": user, "pass": password}
    to = f"{inbox}.raw".encode()
    writer.write(b"CONNECT %s\r\nSUB %s 1\r\n" % (json.dumps(said).encode(), to))
    kept = 0
    try:
        async with asyncio.timeout(PATIENCE):
            for subject, headers, body in messages:
                if headers is None:
                    writer.write(b"PUB %s %s %d\r\n%s\r\n" % (subject, to, len(body), body))
                else:
                    sizes = b"%d %d" % (len(headers), len(headers) + len(body))
                    writer.write(b"HPUB %s %s %s\r\n%s%s\r\n" % (subject, to, sizes, headers, body))
                while not (line := await reader.readline()).startswith(b"MSG"):
                    assert not line.startswith(b"-ERR"), (line, subject, headers)
                    assert line, "the server hung up"
                answer = json.loads(await reader.readexactly(int(line.split()[-1])))
                kept += "error" not in answer and not answer.get("duplicate")
    finally:
        writer.close()
        await writer.wait_closed()
    return kept


async def written(access: BrokerAccess, messages: Sequence[Message]) -> int:
    """The same, as the user `writer`."""
    return await published(access.url, access.passwords["writer"], messages)


async def read_again(access: BrokerAccess, count: int) -> list[StoredEvent]:
    """All of the log, read as the folds read it; compared with each event as it is looked at alone."""
    ledger = await JetStreamLedger.connect(access, role="node")
    connection = await BrokerConnection.open(access, "node", name="looks")
    try:
        async with asyncio.timeout(PATIENCE):
            events = [event async for some in ledger.read() for event in some]
        assert [event.position for event in events] == list(range(1, count + 1))
        for event in events:
            assert await event_at(connection, "LEDGER", event.position, 0) == event
            await check_still_there(connection, "LEDGER", event, 0)
            leaf_hash(event)
    finally:
        await connection.close()
        await ledger.close()
    return events


async def test_a_subject_of_any_bytes_is_read(access: BrokerAccess) -> None:
    kept = await written(access, [(subject, None, b"{}") for subject in SUBJECTS])
    assert kept == len(SUBJECTS)
    for event in await read_again(access, kept):
        event.subject.encode()


async def test_headers_of_any_bytes_are_read(access: BrokerAccess) -> None:
    messages = [(PLAIN % b"a", headers, body) for headers in HEADERS for body in (b"", b"{}")]
    await read_again(access, await written(access, messages))


@pytest.mark.parametrize("headers", [b"NATS/1.0\r\nStatus: 503\r\n\r\n", b"NATS/1.0 503\r\n\r\n", b"abcd"])
async def test_an_item_of_whose_history_the_last_event_looks_like_a_status_is_written(
    access: BrokerAccess, new_saved: Callable[..., NewEvent], headers: bytes
) -> None:
    event = new_saved("item-1")
    ledger = await JetStreamLedger.connect(access)
    before = (await ledger.append(event)).position
    assert await written(access, [(PLAIN % b"item-1", headers, b"")]) == 1
    assert await ledger.last_position_of("default", "knowledge", "item-1") == before + 1
    assert await ledger.next_position_of("default", "knowledge", "item-1", before) == before + 1
    await ledger.close()


async def test_what_headers_take_counts_as_what_bodies_take(
    access: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = b"NATS/1.0\r\nX: " + b"x" * 60_000 + b"\r\n\r\n"
    assert await written(access, [(PLAIN % b"a", large, b"")] * 80) == 80
    for bound in ("ARRIVED_BYTES", "REQUEST_BYTES"):
        monkeypatch.setattr(pull_consumer, bound, 600_000)
    ledger = await JetStreamLedger.connect(access, role="node")
    lengths = [len(events) async for events in ledger.read(batch=1_000)]
    assert sum(lengths) == 80
    assert max(lengths) <= 10 * (1 + pull_consumer.OPEN_REQUESTS)
    await ledger.close()

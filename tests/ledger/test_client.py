"""Does our client read and write messages as the library does?"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, cast

import nats.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.protocol.parser import Parser

from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection, close_client
from ledger.broker.frames import lines_of
from ledger.broker.nats_parser import QuickClient, QuickParser, Raw, reader_of
from ledger.wire.publication import MSG_ID
from tests.patience import PATIENCE, comes_true

_parts = st.sampled_from(
    [b"Nats-Msg-Id", b":", b" ", b"\t", b"\r\n", b"\n", b"a", b"\x1c", b"\xff", "知".encode(), b""]
)

# The library takes a vertical tab and a form feed at the end of a value for blanks: they may be a subject's.
_bytes = st.binary(max_size=60).filter(lambda raw: not {0x0B, 0x0C} & {*raw})
_lines = st.one_of(_bytes, st.lists(_parts, max_size=20).map(b"".join))


@given(_lines)
def test_any_block_of_headers_is_read_as_the_library_reads_it(raw: bytes) -> None:
    assert QuickClient._parse_header_lines(raw) == Client._parse_header_lines(raw)


@given(st.sampled_from([b"", b" 503", b" 503 gone"]), _lines)
def test_the_id_of_any_message_is_the_one_that_the_library_reads(status: bytes, lines: bytes) -> None:
    block = b"NATS/1.0" + status + b"\r\n" + lines + b"\r\n\r\n"
    found = reader_of(MSG_ID)(block)
    try:
        headers = asyncio.run(Client()._process_headers(block)) or {}
    except UnicodeDecodeError:  # the library cannot read it at all
        return
    assert found == headers.get(MSG_ID)


_messages = st.lists(
    st.tuples(
        st.sampled_from([b"1", b"2"]),
        st.sampled_from([b"", b"$JS.ACK.7 "]),
        st.sampled_from([b"", b"NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n", b"NATS/1.0 408\r\n\r\n"]),
        st.one_of(st.binary(max_size=40), st.sampled_from([b"HMSG a 1 2 3\r\n", b"\r\n", b"PING\r\n"])),
    ),
    max_size=8,
)


class Heard:
    """In the place of a client: what the parser told it."""

    def __init__(self) -> None:
        self.told: list[tuple[bytes, ...]] = []

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self.told.append((b"%d" % sid, subject, reply, data, headers or b""))

    async def _process_ping(self) -> None:
        self.told.append((b"ping",))


@given(
    _messages,
    st.lists(st.integers(0, 400), max_size=6),
    st.sets(st.sampled_from([1, 2])),
    st.sets(st.sampled_from([1, 2])),
)
def test_messages_in_any_pieces_are_those_that_the_library_hears(
    sent: list[tuple[bytes, bytes, bytes, bytes]], cuts: list[int], taken: set[int], answered: set[int]
) -> None:
    wire = b"PING\r\n".join(_written(*message) for message in sent)
    places = sorted({0, *(min(cut, len(wire)) for cut in cuts), len(wire)})
    pieces = [wire[start:end] for start, end in itertools.pairwise(places)]
    library, ours = Heard(), Heard()

    def quick(heard: Heard) -> QuickParser:
        def taking(sid: int) -> Callable[[Raw], None]:
            return lambda raw: heard.told.append((b"%d" % sid, raw.subject, raw.reply, raw.body, raw.headers or b""))

        def answering(sid: int) -> Callable[[bytes, bytes], None]:
            return lambda subject, body: heard.told.append((b"%d" % sid, subject, b"", body, b""))

        takers = {sid: taking(sid) for sid in taken}, {sid: answering(sid) for sid in answered}
        return QuickParser(cast(Client, heard), *takers)

    parsers = Parser(library), quick(ours)
    for piece in pieces:
        asyncio.run(parsers[0].parse(piece))
        asyncio.run(parsers[1].parse(piece))
    assert ours.told == library.told


async def test_answers_come_in_their_order_however_the_socket_cuts_them(access: BrokerAccess) -> None:
    connection = await BrokerConnection.open(access, "admin")
    heard: list[int] = []

    async def hear(message: Msg) -> None:
        heard.append(int(message.data))

    await connection.client.subscribe("echo", cb=hear)
    asked = [await connection.ask("$JS.API.INFO") for _ in range(200)]
    for number in range(2_000):
        await connection.send("echo", b"%d" % number + b" " * (number % 700), {})
    async with asyncio.timeout(PATIENCE):
        answers = await asyncio.gather(*(each.answer for each in asked))
        while len(heard) < 2_000:  # noqa: ASYNC110  # the subscription's task moves it on
            await asyncio.sleep(0.01)
    assert heard == list(range(2_000))
    assert all(b"io.nats.jetstream" in answer.data for answer in answers)
    await connection.close()


def _written(sid: bytes, reply: bytes, headers: bytes, body: bytes) -> bytes:
    sizes = b"%d %d" % (len(headers), len(headers + body)) if headers else b"%d" % len(body)
    return (b"HMSG" if headers else b"MSG") + b" a.b %s %s%s\r\n%s%s\r\n" % (sid, reply, sizes, headers, body)


_subjects = st.one_of(
    st.text(max_size=8), st.sampled_from(["ledger.default.knowledge.k.rated.user.ada", "a b", "a\r\nPUB"])
)
_values = st.one_of(st.text(max_size=8), st.sampled_from(["8d1f-77", " a ", "1\r\nNats-Batch-Commit: 1", "知识"]))
_headers = st.dictionaries(st.sampled_from(["Nats-Msg-Id", "Nats-Batch-Sequence", "a b", " x "]), _values, max_size=3)
_outgoing = st.lists(
    st.tuples(_subjects, st.binary(max_size=20), _headers, st.sampled_from([{}, {"n": "7"}])), max_size=4
)


@given(_outgoing, _subjects)
def test_messages_sent_together_are_the_bytes_that_the_library_sends(
    sent: list[tuple[str, bytes, dict[str, str], dict[str, str]]], reply: str
) -> None:
    library, ours = _unconnected(), _unconnected()
    messages = [(subject, body, headers, lines_of(more)) for subject, body, headers, more in sent]

    async def one_by_one() -> None:
        for subject, body, headers, more in sent:
            await library.publish(subject, body, reply, headers | more)

    try:
        asyncio.run(one_by_one())
    except nats.errors.Error as refused:
        with pytest.raises(type(refused)):
            asyncio.run(ours.publish_together(messages, reply))
        assert ours._pending == []  # none of them, where the library has sent those before
        return
    asyncio.run(ours.publish_together(messages, reply))
    assert b"".join(ours._pending) == b"".join(library._pending)
    assert ours.stats == library.stats
    assert ours._pending_data_size == library._pending_data_size


def test_no_more_is_kept_for_a_lost_connection_than_the_library_keeps() -> None:
    client = _unconnected()
    with pytest.raises(nats.errors.OutboundBufferLimitError):
        asyncio.run(client.publish_together([("a", b"x" * 2_000, {}, "")] * 600))
    assert client._pending == []


class _Socket:
    """A transport that keeps what it is given, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.written: list[list[bytes]] = []
        self._error = error

    def writelines(self, pieces: list[bytes]) -> None:
        if self._error is not None:
            raise self._error
        self.written.append(list(pieces))

    async def drain(self) -> None:
        """As if the socket took everything at once."""


def _connected(socket: Any) -> QuickClient:
    client = _unconnected()
    client._status, client._transport = Client.CONNECTED, socket
    return client


def test_what_is_published_in_one_turn_is_written_once_and_much_at_once() -> None:
    async def check() -> None:
        client = _connected(socket := _Socket())
        for _ in range(8):
            await client.publish_together([("a", b"x" * 1_000, {}, "")])
        assert socket.written == []
        await comes_true(lambda: bool(socket.written))
        await client.publish_together([("a", b"x" * 5_000, {}, "")])  # no turn is waited for
        assert [len(pieces) for pieces in socket.written] == [8, 1]
        for _ in range(70):
            await client.publish_together([("a", b"x" * 1_000, {}, "")])
        assert [len(pieces) for pieces in socket.written[2:]] == [64]  # of so much no turn is waited for either
        await comes_true(lambda: len(socket.written) == 4)
        assert (client._pending, client._pending_data_size) == ([], 0)

    asyncio.run(check())


def test_a_write_that_fails_is_the_loss_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Exception] = []

    async def take(error: Exception) -> None:
        met.append(error)

    async def check() -> None:
        client = _connected(_Socket(lost := ConnectionResetError("gone")))
        client._error_cb = take
        monkeypatch.setattr(client, "_process_op_err", take)
        await client.publish_together([("a", b"1", {}, "")])
        await comes_true(lambda: met == [lost, lost])

    asyncio.run(check())


def test_what_was_to_be_written_when_the_connection_was_lost_stays_for_the_next() -> None:
    async def check() -> None:
        client = _connected(socket := _Socket())
        await client.publish_together([("a", b"1", {}, "")])
        client._status = Client.RECONNECTING
        await comes_true(lambda: not client._leaving)
        assert socket.written == []
        assert len(client._pending) == 1

    asyncio.run(check())


def _unconnected() -> QuickClient:
    """A client that keeps what it is to send until it is connected."""
    client = QuickClient()
    client._max_pending_size, client._max_payload = 1_000_000, 1_000_000
    return client


class _Reconnecting:
    """A client that a reconnection opens again so many times as it is closed."""

    def __init__(self, opened_again: int) -> None:
        self._left, self.is_closed = opened_again, False

    async def close(self) -> None:
        self._left -= 1
        self.is_closed = self._left < 0
        if not self.is_closed:
            raise asyncio.CancelledError  # as the library's own, of the reconnection


@pytest.mark.parametrize("opened_again", [0, 1, 2])
async def test_a_client_whose_reconnection_ends_as_it_is_closed_is_closed_once_more(opened_again: int) -> None:
    client = _Reconnecting(opened_again)
    await close_client(client)  # type: ignore[arg-type]  # a client by its methods
    assert client.is_closed

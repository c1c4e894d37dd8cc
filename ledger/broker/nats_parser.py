"""How does the client library read messages? As it always does, in a third of the time.

nats-py 2.16 looks at each letter of each header's name: 4 µs of the 13 that reading an event with five headers takes.
Names repeat, so each is judged once. What answers a reader's request goes to the reader as it came: matching it against
each kind of line, a message object, a queue and a task between them took twice as long as all the rest.
`tests/ledger/test_client.py` holds this to what the library does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

from ledger.wire.publication import MSG_ID

_ID = MSG_ID.encode()
_CRLF = b"\r\n"
_ID_LINE = _CRLF + _ID + b":"
_MESSAGE = b"HMSG "


class Raw(NamedTuple):
    """A message as it came: `headers` is the whole block, from `NATS/1.0` on, None where there is none."""

    subject: bytes
    reply: bytes
    body: bytes
    headers: bytes | None


@lru_cache(maxsize=1_000)
def _name(raw: bytes) -> str | None:
    """A header's name, or None for what is none: not ASCII, or with blanks in it."""
    try:
        name = raw.strip().decode("ascii")
    except UnicodeDecodeError:
        return None
    return name if not name or name.split() == [name] else None


def headers_in(block: bytes | None) -> dict[str, str]:
    """The headers of a message that an event came in."""
    return QuickClient._parse_header_lines(block.partition(_CRLF)[2]) if block else {}


def message_id_in(block: bytes | None) -> str:
    """The `Nats-Msg-Id` among them, empty where there is none."""
    if not block or _ID not in block:
        return ""
    begins = block.find(_ID_LINE) + len(_ID_LINE)
    if begins < len(_ID_LINE) or block.find(_ID, begins) >= 0:  # spelled otherwise, or more than once
        return headers_in(block).get(MSG_ID, "")
    return block[begins : block.find(_CRLF, begins)].strip().decode("utf-8", "replace")


Takers = dict[int, Callable[[Raw], None]]
"""Who gets the messages of a subscription, by its number."""


class QuickParser(Parser):
    """The library's parser of what the server sends, after the messages that somebody takes as they are."""

    def __init__(self, client: Client, takers: Takers) -> None:
        super().__init__(client)
        self._takers = takers

    async def parse(self, data: bytes = b"") -> None:
        """Give messages to their takers, and everything else, in its order, to the library."""
        if self.state == AWAITING_CONTROL_LINE and self._takers:
            data = bytes(self.buf) + data if self.buf else data
            self.buf = bytearray()
            at, whole = self._hand_over(data)
            data = data[at:]
            if not whole:
                self.buf = bytearray(data)
                return
        if data:
            await super().parse(data)

    def _hand_over(self, data: bytes) -> tuple[int, bool]:
        """How far it came, and whether what follows is the library's; else it is a taker's, and half of it is here."""
        at = 0
        while data.startswith(_MESSAGE, at):
            begins = data.find(_CRLF, at) + 2
            words = data[at:begins].split() if begins > 1 else []
            if len(words) != 6 or (taker := self._takers.get(int(words[2]))) is None:
                break
            body, ends = begins + int(words[4]), begins + int(words[5])
            if len(data) < ends + 2:
                return at, False
            taker(Raw(words[1], words[3], data[body:ends], data[begins:body]))
            at = ends + 2
        return at, True


class QuickClient(Client):
    """nats-py's client, quick with headers, and with answers that are handed over."""

    def __init__(self) -> None:
        super().__init__()
        self._takers: Takers = {}
        self._ps = QuickParser(self, self._takers)

    def hand_over(self, subscription: Subscription, taker: Callable[[Raw], None]) -> None:
        """What comes to this subscription and can be replied to goes straight to `taker`; the rest to its callback."""
        self._takers[subscription._id] = taker

    def hand_over_no_more(self, subscription: Subscription) -> None:
        """The taker gets nothing more."""
        self._takers.pop(subscription._id, None)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> None:
        taker = self._takers.get(sid) if reply else None
        if taker is None:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            taker(Raw(subject, reply, data, headers))

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        out: dict[str, str] = {}
        for line in raw.split(_CRLF):
            name, colon, value = line.partition(b":")
            if colon and (key := _name(name)) is not None:
                out[key] = value.strip().decode("utf-8", "replace")
        return out

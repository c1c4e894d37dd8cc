"""The streams beside the log while a node runs: whether they are there, and as they have to be.

A node looks at them as it starts. Whoever has the broker's account may set or delete them later, and what a key sealed
that no bucket has is lost with the process that knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kledger.contract.errors import BrokerMisconfigured, LedgerError
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM
from ledger.broker.stream_settings import refuse, wrong_settings
from ledger.event import JsonObject
from ledger.wire.publication import PASSING, error_code, error_of

_PROBE_TIMEOUT = 2.0
_ASKED_AGAIN_AFTER = 5.0
"""Seconds between two looks, however often health is asked."""


class Beside(NamedTuple):
    """A stream as it is wanted, what it does, and what helps where it is gone."""

    wanted: JsonObject
    what: str
    help: str


class StreamsBeside:
    """What is known of some streams. The connection's user has to have the right to get stream info of each."""

    def __init__(self, connection: BrokerConnection, streams: Sequence[Beside], clock: Callable[[], float]) -> None:
        self._connection, self._streams, self._clock = connection, streams, clock
        self._looked = float("-inf")
        self._reasons: list[str] = []

    async def reasons(self) -> list[str]:
        """Why not all of them keep what they are given. Of a broker that does not answer others tell."""
        if self._clock() - self._looked >= _ASKED_AGAIN_AFTER:
            self._looked = self._clock()
            self._reasons = [why for each in self._streams if (why := await self._why_not(each))]
        return self._reasons

    async def _why_not(self, each: Beside) -> str | None:
        name = each.wanted["name"]
        try:
            info = await self._connection.api(f"STREAM.INFO.{name}", timeout=_PROBE_TIMEOUT)
            code = error_code(info)
            if code == NO_STREAM:
                return f"the stream {name}, which {each.what}, is gone: {each.help}"
            if code:
                return None if code in PASSING else error_of(info, f"a look at the stream {name}").message
            refuse(info["config"], wrong_settings(info["config"], each.wanted), each.what)
        except BrokerMisconfigured as error:
            return error.message
        except LedgerError:
            return None
        return None

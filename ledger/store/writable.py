"""Whether the broker takes events, asked without storing one: it may answer every read and keep nothing.

Its stream may be sealed or full, its account at a limit or without the right to publish, its subjects another stream's.
A publication that expects a last position that no log has is refused for that alone where all else is well. What a
server looks at after that, its limits, the settings of the stream tell, or the last append that met them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LedgerError
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import check_settings
from ledger.event import JsonObject
from ledger.wire.publication import (
    EXPECTED_OF_ALL,
    NO_SPACE,
    PASSING,
    WRONG_LAST_SEQUENCE,
    error_code,
    error_of,
    parse_answer,
)
from ledger.wire.subjects import event_subject

_NO_LOG_HAS = 2**63 - 1
_PROBE_TIMEOUT = 2.0
_ASKED_AGAIN_AFTER = 5.0
"""Seconds between two probes, however often health is asked."""
_REMEMBERED_FOR = 300.0
"""Seconds for which an append that found no room counts, where nobody appends anything since."""


class Writable:
    """What is known of whether a stream takes events."""

    def __init__(self, connection: BrokerConnection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection, self._clock = connection, clock
        self._no_room: tuple[float, str] | None = None
        self._probed = float("-inf")
        self._refused: str | None = None

    def wrote(self) -> None:
        """An append succeeded."""
        self._no_room = self._refused = None

    def met(self, error: LedgerError, code: int) -> LedgerError:
        """The error of an append that the broker answered with `code`, noted where it speaks of all appends."""
        if code in NO_SPACE:
            self._no_room = self._clock(), error.message
        return error

    async def hindrance(self, config: JsonObject, org: str) -> str | None:
        """Why the stream with these settings does not take the events of a tenant, None where it does."""
        try:
            check_settings(config)
        except LedgerError as error:
            return error.message
        if self._no_room and self._clock() - self._no_room[0] < _REMEMBERED_FOR:
            return self._no_room[1]
        if self._clock() - self._probed >= _ASKED_AGAIN_AFTER:
            self._refused = await self._probe(org)
            self._probed = self._clock()
        return self._refused

    async def _probe(self, org: str) -> str | None:
        subject = event_subject(org, "probe", "probe", "probe", "system:probe")
        headers = {EXPECTED_OF_ALL: str(_NO_LOG_HAS)}
        try:
            reply = await self._connection.request(subject, b"{}", headers, timeout=_PROBE_TIMEOUT)
            answer = parse_answer(reply.data)
        except (BrokerUnavailable, BrokerMisconfigured) as error:
            return error.message
        code = error_code(answer)
        return None if not code or code in WRONG_LAST_SEQUENCE | PASSING else error_of(answer, "events").message

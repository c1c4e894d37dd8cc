"""Parked events (dead letters): decisions about events that a fold failed on, in a small stream of their own.

The stream has one subject for each event (`parked.<position>`) and one message for each decision; messages are never
removed. So every node, and every rebuild on a new machine, decides alike: the views follow from the log and from these
decisions. A decision names the event by position and by the SHA-256 of its subject and body, and counts for that event
alone.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import get_args

import orjson
import structlog

from kledger.contract.errors import BrokerUnavailable, IllegalState, UnknownReference
from kledger.contract.words import ParkedState
from ledger.broker.access import PARKED_STREAM, PARKED_SUBJECTS, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject, StoredEvent
from ledger.wire.publication import EXPECTED, PASSING, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer

"""Waiting for an operator; left out of the views for good; folded again like any other event."""

log = structlog.get_logger(__name__)

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one event. `fingerprint` is `fingerprint_of` the event, `time` RFC 3339 in UTC."""

    position: int
    fingerprint: str
    state: ParkedState
    reason: str
    tries: int
    time: str


Parked = Mapping[int, Decision]
"""The decisions that keep an event out of the views, by position."""

NONE_PARKED: Parked = {}


def fingerprint_of(event: StoredEvent) -> str:
    """The SHA-256 of an event's subject and body, 64 hexadecimal digits."""
    digest = hashlib.sha256(len(event.subject.encode()).to_bytes(8, "big"))
    digest.update(event.subject.encode())
    digest.update(event.body)
    return digest.hexdigest()


def as_json(decisions: Iterable[Decision]) -> list[JsonObject]:
    """Serialize decisions as JSON objects, for another process."""
    return [asdict(decision) for decision in decisions]


def read_told(documents: Iterable[JsonObject]) -> dict[int, Decision]:
    """Parse the output of `as_json`; by position."""
    return {document["position"]: Decision(**document) for document in documents}


def stream_settings(replicas: int = 1) -> JsonObject:
    """The configuration of the decisions' stream, for the JetStream API."""
    return {
        "name": PARKED_STREAM,
        "description": "Which events are parked, and what was decided about them, for good",
        "subjects": [PARKED_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "discard": "old",
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
    }


async def ensure_parked_stream(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the decisions' stream if it does not exist; connects as `admin`.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    await ensure(access, PARKED_STREAM, stream_settings(replicas), "keeps decisions about events")


class ParkedEvents:
    """The decisions, as far as `refresh` has read them. The connection's role must read and publish `parked.>`."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._read = 0
        self._last: dict[int, Decision] = {}
        self._numbers: dict[str, int] = {}  # the last message of each subject, whatever it says
        self._reading = asyncio.Lock()

    @property
    def decisions(self) -> list[Decision]:
        """The last decision about each event, by position."""
        return [decision for _, decision in sorted(self._last.items())]

    @property
    def parked(self) -> Parked:
        """The decisions that keep an event out of the views."""
        return {decision.position: decision for decision in self.decisions if decision.state != "released"}

    @property
    def waiting(self) -> list[int]:
        """The positions of the events that wait for an operator."""
        return [decision.position for decision in self.decisions if decision.state == "parked"]

    async def refresh(self) -> None:
        """Read the decisions since the last call. Raises BrokerUnavailable, BrokerMisconfigured."""
        async with self._reading:
            info = await self._connection.api(f"STREAM.INFO.{PARKED_STREAM}")
            if error_code(info):
                raise error_of(info, f"a look at the stream {PARKED_STREAM}")
            end = int(info["state"]["last_seq"])
            while self._read < end:
                until = min(self._read + _AT_ONCE, end)
                decisions = await asyncio.gather(*(self._get(number) for number in range(self._read + 1, until + 1)))
                for number, (subject, decision) in enumerate(decisions, self._read + 1):
                    self._numbers[subject] = number
                    if decision is not None:
                        self._last[decision.position] = decision
                self._read = until

    async def decide(
        self, event_at: int, state: ParkedState, *, fingerprint: str = "", reason: str = "", tries: int = 0
    ) -> Decision:
        """Record a decision and return the one that counts: of two nodes that decide at once, the first one's.

        Only a parked event can be dismissed or released; reason, tries and fingerprint are taken over. Raises
        UnknownReference (the event is not parked), IllegalState (it is in that state already), BrokerUnavailable.
        """
        await self.refresh()
        before = self._last.get(event_at)
        subject = f"parked.{event_at}"
        if state == "parked":
            if before is not None and before.state != "released" and before.fingerprint == fingerprint:
                return before  # another node has parked it
        elif before is None or before.state == "released":
            raise UnknownReference(f"no event is parked at position {event_at}: kledger refused list shows which are")
        elif before.state == state:
            raise IllegalState(f"the event at position {event_at} is {state} already")
        else:
            fingerprint, reason, tries = before.fingerprint, before.reason, before.tries
        decision = Decision(event_at, fingerprint, state, reason, tries, datetime.now(UTC).isoformat())
        reply = await self._connection.request(
            subject, orjson.dumps(asdict(decision)), {EXPECTED: str(self._numbers.get(subject, 0))}
        )
        answer = parse_answer(reply.data)
        code = error_code(answer)
        if code in WRONG_LAST_SEQUENCE | PASSING:
            raise BrokerUnavailable(f"another decision about position {event_at} is under way: retry")
        if code:
            raise error_of(answer, f"a decision about position {event_at}")
        await self.refresh()
        return self._last[event_at]

    async def close(self) -> None:
        """Release the connection."""
        await self._connection.close()

    async def _get(self, number: int) -> tuple[str, Decision | None]:
        """The subject of a message and its decision; None where it is none: a user of the same account put it there."""
        # From the leader: a replica may not have it yet.
        answer = await self._connection.api(f"STREAM.MSG.GET.{PARKED_STREAM}", {"seq": number})
        if error_code(answer):
            raise error_of(answer, f"decision {number} of {PARKED_STREAM}")
        message = answer["message"]
        try:
            decision = Decision(**orjson.loads(base64.b64decode(message.get("data") or "")))
        except (TypeError, ValueError):
            log.warning("a message that is no decision is left out", stream=PARKED_STREAM, number=number)
            return message["subject"], None
        if decision.state not in get_args(ParkedState):
            raise BrokerUnavailable(f"decision {number} of {PARKED_STREAM} says {decision.state}: update this node")
        return message["subject"], decision

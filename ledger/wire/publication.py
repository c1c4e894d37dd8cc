"""Publication: subject, body and headers of one event, and the errors for the broker's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from kledger.contract.errors import (
    BrokerMisconfigured,
    BrokerUnavailable,
    LedgerError,
    PayloadTooLarge,
    VersionConflict,
)
from ledger.event import JsonObject, NewEvent
from ledger.wire.envelope import encode_all, encode_for, shorter, subject_of
from ledger.wire.subjects import encode_token, history_filter

MSG_ID = "Nats-Msg-Id"
EXPECTED = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
EXPECTED_OF_ALL = "Nats-Expected-Last-Sequence"

# https://github.com/nats-io/nats-server/blob/main/server/errors.json
WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
DUPLICATE_IN_BATCH = 10201
TOO_LARGE = frozenset({10054, 10097})
# Transient: no leader, or one that is not ready; the same id is being stored just now; a batch cut by a lost
# connection; too many batches open.
PASSING = frozenset({10008, 10009, 10158, 10176, 10210})
BATCH_INCOMPLETE = 10176
"""Of a batch that was cut, or of which a message found no room."""
NO_SPACE = frozenset({10002, 10023, 10028, 10047, 10077})
# Room for the batch headers beside those of the event itself.
_BATCH_HEADER_BYTES = 160


class Publication(NamedTuple):
    """One event as it is published. The headers have the expected position of its entity, where one is expected."""

    event: NewEvent
    subject: str
    body: bytes
    headers: dict[str, str]


def publication(event: NewEvent, max_payload: int) -> Publication:
    """Encode an event for publishing. Raises PayloadTooLarge, IllegalSubject."""
    subject = subject_of(event)
    return _published(event, subject, encode_for(subject, event), max_payload)


def publications(events: Sequence[NewEvent], max_payload: int) -> list[Publication]:
    """Encode events for publishing, step by step (ledger/wire/envelope.py:encode_all), so a hundred or so at once.

    Raises PayloadTooLarge, IllegalSubject.
    """
    subjects = [subject_of(event) for event in events]
    bodies = encode_all(events, subjects)
    return [
        _published(event, subject, body, max_payload)
        for event, subject, body in zip(events, subjects, bodies, strict=True)
    ]


def _published(event: NewEvent, subject: str, body: bytes, max_payload: int) -> Publication:
    headers = {MSG_ID: encode_token(event.id)}
    if event.expects is not None:
        headers[EXPECTED] = str(event.expects)
        headers[EXPECTED_SUBJECT] = subject.rsplit(".", 3)[0] + ".>"  # as history_of, but cheaper
    if len(body) + len(headers[MSG_ID]) + len(subject) + 512 > max_payload:
        _check_size(event, body, headers, max_payload)
    return Publication(event, subject, body, headers)


def _check_size(event: NewEvent, body: bytes, headers: Mapping[str, str], max_payload: int) -> None:
    """Raise PayloadTooLarge: the server closes the connection of a client that sends more than max_payload."""
    size = len(body) + sum(len(k) + len(v) + 4 for k, v in headers.items()) + _BATCH_HEADER_BYTES
    if size > max_payload:
        raise PayloadTooLarge(
            f"{event.fact.name} of {event.entity_id[:80]!r} has {size:,} bytes with its headers, the broker "
            f"takes {max_payload:,}: {shorter(event)}"
        )


def history_of(event: NewEvent) -> str:
    """The subject filter of the entity's whole history."""
    return history_filter(event.org, event.fact.entity(), event.entity_id)


def is_about(event: NewEvent) -> tuple[str, str, str]:
    """The entity of an event, as a key."""
    return event.org, event.fact.entity(), event.entity_id


Identity = tuple[str, str, str]


def identity(event: NewEvent) -> Identity:
    """The dedupe key of an event: its tenant, its actor and its id."""
    return event.org, event.actor, event.id


def parse_answer(data: bytes) -> JsonObject:
    """Parse the broker's answer to a publication. Raises BrokerMisconfigured when it is not from JetStream."""
    try:
        answer = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise BrokerMisconfigured(
            f"something else than JetStream answers on the ledger's subjects: {data[:100]!r}; "
            "only the stream may listen there"
        )
    return answer


def error_code(answer: JsonObject) -> int:
    """The broker's code of an error answer, 0 when the answer is not an error."""
    error = answer.get("error")
    return int(error.get("err_code") or error.get("code") or -1) if isinstance(error, dict) else 0


def error_of(answer: JsonObject, what: str) -> LedgerError:
    """The LedgerError for an error answer about `what`."""
    error = answer["error"]
    code, description = error_code(answer), str(error.get("description", ""))
    if code in TOO_LARGE:
        return PayloadTooLarge(f"{what} is larger than the broker takes ({description})")
    if code == BATCH_INCOMPLETE:
        why = "retry, and where it stays so, see whether its disk is full"
        return BrokerUnavailable(f"the broker did not keep {what} ({code}: {description}): {why}")
    if code in PASSING:
        return BrokerUnavailable(f"the broker cannot take {what} now ({code}: {description}): retry")
    if code in NO_SPACE:
        why = "is its disk full, or a limit reached?"
        return BrokerUnavailable(f"the broker could not keep {what} ({code}: {description}): {why}")
    return BrokerMisconfigured(f"the broker refuses {what} ({code}: {description})")


def conflict(event: NewEvent, last: int | None) -> VersionConflict:
    """The error of a lost race (optimistic concurrency); `last` is the entity's last position now, where known."""
    now = "another event of the same batch comes before" if last is None else f"its last position is {last}"
    return VersionConflict(
        f"{event.fact.entity()} {event.entity_id[:200]!r} has moved on: position {event.expects} was expected, "
        f"{now}; read it again and decide anew",
        entity_id=event.entity_id,
        expected=event.expects,
        last=last,
    )

"""What may stand where a number, a moment or a subject's token is? Spellings at the edges of what any part can hold."""

from __future__ import annotations

import re
from typing import Any

import orjson
from hypothesis import strategies as st

from ledger.event import StoredEvent

NUMBERS = (
    *(
        b"-0.0",
        b"-0",
        b"0e0",
        b"-0e5",
        b"5e-324",
        b"1e-400",
        b"-1e-400",
        b"2.2250738585072011e-308",
        b"1e400",
        b"-1e400",
    ),
    *(b"0.1e1", b"1E0", b"0.30000000000000004", b"0.1000000000000000055511151231257827", b"1.0", b"1", b"01", b"+1"),
    *(b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809"),
    *(b"18446744073709551616", b"9" * 400, b"1." + b"0" * 400, b"NaN", b"Infinity", b'"1"', b"true", b"null"),
)
MOMENTS = (
    *(b"0001-01-01T00:00:00Z", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59.999999Z", b"0000-01-01T00:00:00Z"),
    *(
        b"9999-12-31T23:59:59-14:00",
        b"10000-01-01T00:00:00Z",
        b"-0001-01-01T00:00:00Z",
        b"+292277026596-12-04T15:30:08Z",
    ),
    *(
        b"infinity",
        b"-infinity",
        b"epoch",
        b"now",
        b"1234",
        b"",
        b"2026-01-01T00:00:00+23:59",
        b"2026-01-01T00:00:00-23:59",
    ),
    *(b"2026-01-01T00:00:00+24:00", b"2026-01-01T00:00:00.123456789Z", b"2026-01-01T00:00Z", b"2026-01-01 00:00:00Z"),
    *(
        b"2026-06-30T23:59:60Z",
        b"2026-01-01T24:00:00Z",
        b"2026-02-29T00:00:00Z",
        b"2026-01-01T00:00:00",
        b"20260101T000000Z",
    ),
)
TOKENS = (
    *(
        "=",
        "==",
        "=00",
        "=0A",
        "=20",
        "=2A",
        "=2E",
        "=3E",
        "=7F",
        "=FF",
        "=C0=80",
        "=ED=A0=80",
        "=F4=90=80=80",
        "=E7=8E=8B",
    ),
    *(
        "=F0=9F=98=80",
        "=e7=8e=8b",
        "=61",
        "=2F",
        "=25",
        "=3A",
        "%",
        "a%41",
        "*",
        "a b",
        "a" * 200,
        "a" * 201,
        "=E7=8E=8B" * 200,
    ),
)
LENGTHS = (1, 64, 200, 201, 512, 513, 4_000, 4_001, 10_000, 10_001)
COUNTS = (0, 1, 16, 17, 64, 65, 1_000, 1_001)

_ID = re.compile(rb'"id":"[^"]*"')
_NUMBER = re.compile(rb"(?<=:)-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?(?=[,}])")
_MOMENT = re.compile(rb'(?<="time":")[^"]*')


def with_number(event: StoredEvent, which: int, number: bytes) -> StoredEvent:
    """The event with another spelling in the place of one of its numbers."""
    there = list(_NUMBER.finditer(event.body))
    if not there:
        return event
    found = there[which % len(there)]
    return event._replace(body=event.body[: found.start()] + number + event.body[found.end() :])


def with_moment(event: StoredEvent, moment: bytes) -> StoredEvent:
    """The event with another moment of its own."""
    return event._replace(body=_MOMENT.sub(lambda _: moment, event.body, count=1))


def with_token(event: StoredEvent, which: int, token: str) -> StoredEvent:
    """The event under a subject with another token."""
    tokens = event.subject.split(".")
    tokens[which % len(tokens)] = token
    return event._replace(subject=".".join(tokens))


def with_size(event: StoredEvent, which: int, length: int, count: int) -> StoredEvent:
    """The event with one of its texts so long, or one of its lists with so many entries."""
    try:
        document = orjson.loads(event.body)
    except orjson.JSONDecodeError:
        return event
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        return event
    places: list[tuple[Any, Any]] = []
    holders: list[Any] = [document["data"]]
    while holders:
        holder = holders.pop()
        for at, part in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(part, str | list):
                places.append((holder, at))
            if isinstance(part, dict | list):
                holders.append(part)
    if not places:
        return event
    holder, at = places[which % len(places)]
    there = holder[at]
    if isinstance(there, str):
        holder[at] = (there or "x") + "x" * (length - len(there or "x"))
    else:
        holder[at] = (there[:1] or ["x"]) * count
    return event._replace(body=orjson.dumps(document))


def with_id_of(event: StoredEvent, other: StoredEvent) -> StoredEvent:
    """The event under the id of another one, whoever stated that."""
    found = _ID.search(other.body)
    return event if found is None else event._replace(body=_ID.sub(lambda _: found[0], event.body, count=1))


def edged(event: StoredEvent) -> st.SearchStrategy[StoredEvent]:
    """The event with something at its edge."""
    which = st.integers(0, 9)
    return st.one_of(
        st.builds(with_number, st.just(event), which, st.sampled_from(NUMBERS)),
        st.builds(with_size, st.just(event), which, st.sampled_from(LENGTHS), st.sampled_from(COUNTS)),
        st.builds(with_moment, st.just(event), st.sampled_from(MOMENTS)),
        st.builds(with_token, st.just(event), st.sampled_from([1, 1, 1, 2, 3, 3, 4, 5, 6]), st.sampled_from(TOKENS)),
    )

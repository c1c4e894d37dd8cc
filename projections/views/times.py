"""Moments as the views keep them: microseconds since 1970, read as RFC 3339 texts in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger.event import JsonObject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(microseconds: int) -> str:
    """RFC 3339 text in UTC of microseconds since 1970."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest:06d}Z"


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 of a moment."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def timestamp(moment: datetime) -> str:
    """A moment as an expression of SQL."""
    return f"make_timestamptz({microseconds(moment)})"


def with_times(row: JsonObject, *names: str) -> JsonObject:
    """The row with these columns, microseconds or null, as RFC 3339 texts."""
    return row | {name: None if row[name] is None else rfc3339(row[name]) for name in names}

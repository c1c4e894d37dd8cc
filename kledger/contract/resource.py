"""Value types of a resource, shared by requests and events."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue

from kledger.contract.bounds import MAX_ID, Document
from kledger.contract.scope_fields import SeenEntity
from kledger.contract.seal_mark import MARK

TIMES = ("acquired_at", "expires_at")
"""The metadata fields that are times."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_IN_ANY_CASE = re.compile(r"\d{4}-\d\d-\d\d[Tt][\d:.+-]+[Zz]?", re.ASCII)


def fault_of_id(resource_id: str) -> str | None:
    """The fault of a resource's id; None when it is valid."""
    if not 1 <= len(resource_id) <= MAX_ID:
        return f"has {len(resource_id)} characters, 1 to {MAX_ID} are allowed"
    if not resource_id.isprintable():
        return "has a character that cannot be printed: leave it out"
    if resource_id.startswith(MARK):
        return f"begins with {MARK}, as a sealed value does: choose another id"
    for part in resource_id.split("/"):
        if not part.strip():
            return "has an empty segment: write it like code/selenium/login, without a slash at either end"
        if part in (".", ".."):
            return f"has the segment {part!r}, which means another place in a path: name it otherwise"
    return None


_NO_MOMENT = "is no moment of the calendar: write for example 2026-03-07T10:00:00Z"


def moment_of(value: str) -> datetime:
    """Parse an RFC 3339 time, with its `T` and `Z`, as events state it; in UTC. Raises ValueError."""
    try:
        return bound_of(value).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(_NO_MOMENT) from error


def bound_of(value: str) -> datetime:
    """The same with its own offset: as a bound it may lie before the first moment of the calendar, or after the last.

    Of all that ISO 8601 allows this is what each reader reads alike: no dates alone, weeks, or leap seconds.
    """
    if not _MOMENT.fullmatch(value):
        raise ValueError("is not an RFC 3339 time: write for example 2026-03-07T10:00:00Z")
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(_NO_MOMENT) from error


def in_capitals(value: Any) -> Any:
    """A time that an interface was sent, with the capitals that events have: RFC 3339 allows `t` and `z` too."""
    return value.upper() if isinstance(value, str) and _IN_ANY_CASE.fullmatch(value) else value


def times_in_capitals(metadata: Any) -> Any:
    """The same for TIMES of a resource's metadata; for pydantic."""
    if not isinstance(metadata, dict):
        return metadata
    return {name: in_capitals(value) if name in TIMES else value for name, value in metadata.items()}


def times_or_value_error(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return `metadata` if its TIMES are valid times; for pydantic, which collects ValueErrors with their field."""
    for name in TIMES:
        value = metadata.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"{name} is not a text: write for example 2026-03-07T10:00:00Z")
        try:
            moment_of(value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from error
    return metadata


ContentType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.+/-]{0,63}$")]
_TIMES_SCHEMA: dict[str, JsonValue] = {
    "properties": {name: {"type": ["string", "null"], "format": "date-time"} for name in TIMES}
}
Metadata = Annotated[Document, AfterValidator(times_or_value_error), Field(json_schema_extra=_TIMES_SCHEMA)]
SharedWith = Annotated[list[SeenEntity], Field(max_length=64)]

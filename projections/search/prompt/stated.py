"""When what an item says was stated: for its date and its age in a text."""

from __future__ import annotations

from datetime import UTC, datetime

from ledger.event import JsonObject


def stated_at(item: JsonObject, kept: str) -> str:
    """The moment (RFC 3339) of an item whose present version the log kept at `kept`.

    What is imported was stated before: a first version counts from the time that its source says, if that is a time,
    and none after the log had it.
    """
    said = (item.get("source") or {}).get("timestamp")
    if item["version"] > 1 or not said:
        return kept
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return kept
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(moment, datetime.fromisoformat(kept)).isoformat()

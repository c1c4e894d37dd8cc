"""Error text for an as-of read at a position at which the caller could not read the entity.

What the caller may not read now is reported as missing. Of what they may read now, the text reveals no more than the
history does: the versions that they may read, and that there are earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.event import JsonObject


def not_then(what: str, then: int, versions: Sequence[JsonObject]) -> str:
    """Why there is no answer for `what` as of `then`; `versions` are those that the caller may read now."""
    first = versions[0]
    if first["version"] == 1 and first["valid_from"] > then:
        return f"{what} was not there yet at position {then}: ask as of {first['valid_from']} or later"
    return f"{what} was not open to you at position {then}: its history has the versions that are"

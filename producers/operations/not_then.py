"""What is said where somebody asks for what they read now as of a position at which they could not?

Of what they may not read now nothing is said: it is told of as what is not there. What is said here they find in the
history: the versions that they may read, and that there are earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.event import JsonObject


def not_then(what: str, then: int, versions: Sequence[JsonObject]) -> str:
    """Why `what` is not answered as of `then`, to whoever may read it now and these of its versions."""
    first = versions[0]
    if first["version"] == 1 and first["valid_from"] > then:
        return f"{what} was not there yet at position {then}: ask as of {first['valid_from']} or later"
    return f"{what} was not open to you at position {then}: its history has the versions that are"

"""Size limits and value types shared by all event models and all interfaces.

If an interface had a limit that the fold has not, publishing over NATS would bypass it. So the limits are in the event
models; requests are built of the same types (tests/contracts/test_bounds.py compares them field by field), and the fold
refuses events that exceed them.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field

from ledger.event import MAX_ID, JsonObject, fault_of_id

MAX_DEPTH = 32
"""The deepest nesting of a free-form JSON object."""
MOST_LISTED = 1_000
"""Entries of a list without a limit of its own. Each may become a row of a view."""
MOST_REASON = 10_000
"""Characters of the reason for a decision. Reasons from a model or an error are not limited by it."""
MOST_QUERY = 4_000
"""Characters of a search query."""
MOST_SHORT = 512
"""Characters of an identifier or a time: of an event, a trace, a message."""


def legal_id(value: str) -> str:
    """Return `value` if it is legal as a new id; for pydantic."""
    if (fault := fault_of_id(value)) is not None:
        raise ValueError(fault)
    return value


def check_document(value: JsonObject) -> JsonObject:
    """Return a free-form JSON object that every view can store. Raises ValueError."""
    _check_value(value, depth=1)
    return value


def _check_value(value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep: flatten it")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise ValueError(f"has the key {name!r}, and keys are strings")
            _check_text(name)
            _check_value(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_value(part, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"holds {value}, which JSON has no form for: leave it out or write it as text")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("holds an integer beyond 64 bits: write it as text")


def _check_text(value: str) -> None:
    if "\0" in value:
        raise ValueError("holds a NUL character, which the views cannot keep: remove it")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("holds a lone surrogate, which is not Unicode text: send UTF-8")


def without_sign_of_zero(value: float) -> float:
    """`value`, with 0.0 for -0.0, so that equal numbers are the same in every view."""
    return value + 0.0


Short = Annotated[str, Field(min_length=1, max_length=MOST_SHORT)]
Document = Annotated[JsonObject, AfterValidator(check_document)]
UNSIGNED_ZERO = AfterValidator(without_sign_of_zero)
"""Comes after the bounds of a number: pydantic names bounds that come after a function wrongly in a JSON schema."""
Number = Annotated[float, Field(allow_inf_nan=False), UNSIGNED_ZERO]
NewId = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(legal_id)]
Query = Annotated[str, Field(max_length=MOST_QUERY)]
Description = Annotated[str, Field(min_length=1, max_length=MOST_QUERY)]
Reason = Annotated[str, Field(max_length=MOST_REASON)]
Urls = Annotated[list[str], Field(max_length=MOST_LISTED)]
ResourceIds = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_LISTED)]

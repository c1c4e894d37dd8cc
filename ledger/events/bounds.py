"""How much may an event say? The limits that every model of an event shares, and every interface takes from here.

A limit that one interface has and the fold has not is a way round it: whoever may publish states what no request may.
So limits stand in the models of the events; requests are built of the same types (tests/contracts/test_bounds.py
compares them field by field), and the fold refuses what does not keep them.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field

from ledger.event import MAX_ID, JsonObject, fault_of_id

MAX_DEPTH = 32
"""How deep a free-form JSON object may be nested."""
MOST_LISTED = 1_000
"""Entries of a list that nothing else bounds. Each may become a row of a view."""
MOST_REASON = 10_000
"""Characters of why somebody decided something. What a model or an error says of its reasons is not cut."""
MOST_QUERY = 4_000
"""Characters of what is looked for."""
MOST_SHORT = 512
"""Characters of what names something: an event, a trace, a message, a moment."""


def legal_id(value: str) -> str:
    """Return `value` when it may be the id of something new; for pydantic."""
    if (fault := fault_of_id(value)) is not None:
        raise ValueError(fault)
    return value


def check_document(value: JsonObject) -> JsonObject:
    """Return a free-form JSON object that every view can keep; ValueError says what it holds instead."""
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
    """`value`, with 0.0 for -0.0: equal numbers are one number in every view, however it was written down."""
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

"""Size limits and value types shared by requests and events.

If an interface had a limit that the fold has not, publishing over NATS would bypass it. So requests and event models
are built of the same types (tests/contracts/test_bounds.py compares them field by field), and the fold refuses events
that exceed them.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from kledger.contract.entities import TYPE_PATTERN
from kledger.contract.json_text import WIDE, is_wide
from kledger.contract.seal_mark import MARK

MAX_ID = 200
"""Characters of an id."""
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


def fault_of_id(entity_id: str) -> str | None:
    """The fault of a new entity's id; None when it is valid."""
    if not 1 <= len(entity_id) <= MAX_ID:
        return f"has {len(entity_id)} characters, 1 to {MAX_ID} are allowed"
    if not entity_id.isprintable() or entity_id != entity_id.strip():
        return "has control characters or blanks around it: an id is printable text"
    if entity_id.startswith(MARK):
        return f"begins with {MARK}, as a sealed value does: choose another id"
    return None


def legal_id(value: str) -> str:
    """Return `value` if it is legal as a new id; for pydantic."""
    if (fault := fault_of_id(value)) is not None:
        raise ValueError(fault)
    return value


def check_document(value: dict[str, Any]) -> dict[str, Any]:
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
            if isinstance(part, str):
                _check_text(part)
            else:
                _check_value(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_value(part, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"holds {value}, which JSON has no form for: leave it out or write it as text")
    elif isinstance(value, int) and is_wide(value):
        raise ValueError(WIDE)


def check_text(value: str) -> str:
    """Return a text that every view and every reader of JSON can hold. Raises ValueError."""
    _check_text(value)
    return value


def _check_text(value: str) -> None:
    if "\0" in value:
        raise ValueError("holds a NUL character, which the views cannot keep: remove it")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("holds a lone surrogate, which is not Unicode text: send UTF-8")


def without_sign_of_zero(value: float) -> float:
    """`value`, with 0.0 for -0.0, so that equal numbers are the same in every view."""
    return value + 0.0


LATER = 1_795_824_000 * 10**9
"""2026-11-28T00:00:00Z, in nanoseconds: bounds that came after events were kept hold for those kept from then on.

What the log kept before counts as it did. It is the log's own time, so each node and each replay agrees."""


STRICTER = 1_796_083_200 * 10**9
"""2026-12-01T00:00:00Z: from then on no object of an event has a key twice, and an event names nobody who looks like
another."""


def kept_before(info: ValidationInfo, moment: int = LATER) -> bool:
    """Whether what is validated is an event that the log kept before a moment; never what an interface is sent."""
    kept: int | None = (info.context or {}).get("stored_ns")
    return kept is not None and kept < moment


_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that show nothing: fillers of Hangul, and Braille without a dot."""
_SHOWS_NOTHING = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Mc", "Me"})
"""Categories of Unicode; what it has not assigned yet may be a letter."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, control and zero-width characters, marks without a letter."""
    if "!" <= text[:1] <= "~":
        return False
    return all(letter in _UNSEEN or unicodedata.category(letter) in _SHOWS_NOTHING for letter in text)


def says_something(value: str, info: ValidationInfo) -> str:
    """Return a text that is not blank; for pydantic."""
    if is_blank(value) and not kept_before(info):
        raise ValueError("says nothing: it has only blanks or characters that show nothing")
    return value


SAYS_SOMETHING = AfterValidator(says_something)
Short = Annotated[str, Field(min_length=1, max_length=MOST_SHORT)]
Document = Annotated[dict[str, Any], AfterValidator(check_document)]
UNSIGNED_ZERO = AfterValidator(without_sign_of_zero)
"""Comes after the bounds of a number: pydantic names bounds that come after a function wrongly in a JSON schema."""
Number = Annotated[float, Field(allow_inf_nan=False), UNSIGNED_ZERO]
NewId = Annotated[str, Field(min_length=1, max_length=MAX_ID), AfterValidator(legal_id)]
RESERVED_IDS = frozenset({"search", "health", "held"})
"""Addresses of the HTTP interface stand where the ids of items do; no item is read by these ids."""


def _not_reserved(value: str) -> str:
    if value in RESERVED_IDS:
        raise ValueError(f"is {value!r}, which is an address of the interface itself: choose another id")
    return value


NewItemId = Annotated[NewId, AfterValidator(_not_reserved)]
Query = Annotated[str, Field(max_length=MOST_QUERY)]
Description = Annotated[str, Field(min_length=1, max_length=MOST_QUERY), SAYS_SOMETHING]
Reason = Annotated[str, Field(max_length=MOST_REASON)]
Urls = Annotated[list[str], Field(max_length=MOST_LISTED)]
ResourceIds = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MOST_LISTED)]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
TypeWord = Annotated[str, Field(pattern=TYPE_PATTERN)]
"""A type of scope."""
Priority = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False), UNSIGNED_ZERO]
Threshold = Annotated[float, Field(ge=0.5, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]
"""How similar items have to be. Below 0.5 nearly all items are, and each would be compared with each."""
THRESHOLD = 0.8
"""The lowest similarity of near-duplicates: the share of their words that both texts have."""

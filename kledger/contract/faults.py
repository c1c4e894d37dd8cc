"""The faults that validation finds, in plain words: what a field has to be, never how a program checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {
    "string": "a text",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "iterable": "a list",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "model_attributes": "an object",
    "dataclass": "an object",
    "date": "a date such as 2026-03-05",
    "time": "a time such as 12:00:00Z",
    "datetime": "a time such as 2026-03-05T12:00:00Z",
    "datetime_from_date": "a time such as 2026-03-05T12:00:00Z",
    "timezone": "a time with its offset, such as 2026-03-05T12:00:00Z",
    "time_delta": "a duration",
    "uuid": "a UUID",
    "url": "an address such as https://example.org",
    "json": "JSON",
}
# Longer ones first.
_ENDS = ("_exact_type", "_type", "_parsing", "_syntax_violation", "_scheme", "_object_invalid", "_invalid")
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "multiple_of": ("multiple_of", "a multiple of"),
}
_WORD = "a word of a-z, 0-9 and _ that begins with a letter, {most} characters at most, such as {example}"
_FORMS = {
    r"^[a-z][a-z0-9_]{0,63}$": _WORD.format(most=64, example="strategy or preference"),
    r"^[a-z][a-z0-9_]{0,31}$": _WORD.format(most=32, example="department"),
    r"^[a-z][a-z0-9_.+/-]{0,63}$": "a kind of content in a-z, 0-9 and _ . + / - that begins with a letter, 64 "
    "characters at most, such as code or text/plain",
    r"^[a-z][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,127}$": "a media type such as text/markdown",
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": "a time of day such as 09:30",
}
"""What the patterns of requests ask for; one that is not here is shown as it is."""
_SAID = {
    "extra_forbidden": "is not a field here: correct its spelling or leave it out",
    "missing": "is required",
    "string_unicode": "is not Unicode text (a lone surrogate?): send UTF-8",
    "int_from_float": "has to be a whole number",
    "int_parsing_size": "has too many digits",
    "finite_number": "has to be a number that is not infinite",
    "timezone_naive": "has to be a time without an offset",
    "timezone_aware": "has to be a time with its offset, such as 2026-03-05T12:00:00Z",
    "none_required": "has to be null or left out",
    "recursion_loop": "is nested too deep: flatten it",
}


def in_plain_words(fault: Mapping[str, Any]) -> str:
    """One fault of pydantic's list as what is said of the field: `has to be a list`."""
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    if kind in _SAID:
        return _SAID[kind]
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"has to be {words} {context.get(name)}"
    if kind in ("literal_error", "enum"):
        return f"has to be {context.get('expected')}"
    if kind in ("string_too_short", "too_short", "bytes_too_short"):
        least = context.get("min_length")
        return "is empty" if least == 1 else f"is too short: {least} {_unit(kind)} at least"
    if kind in ("string_too_long", "too_long", "bytes_too_long", "url_too_long"):
        return f"is too long: {context.get('max_length')} {_unit(kind)} at most"
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        return f"has to be {_FORMS.get(pattern, f'of the form {pattern}')}"
    for end in _ENDS:
        if kind.endswith(end) and (meant := _KINDS.get(kind.removesuffix(end))) is not None:
            return f"has to be {meant}"
    message = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind in ("value_error", "assertion_error"):
        return message
    message = message.removeprefix("Input should ").removeprefix("Value should ")
    return f"has to {message}" if message.startswith(("be ", "have ")) else f"is wrong: {message}"


def _unit(kind: str) -> str:
    if kind.startswith("bytes"):
        return "bytes"
    return "entries" if kind.startswith("too") else "characters"

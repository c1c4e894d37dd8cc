"""How does a JSON schema read to a client and to a model? Short, and without what many of them do not follow."""

from __future__ import annotations

from typing import Any

from ledger.event import JsonObject


def plain(schema: JsonObject) -> JsonObject:
    """A schema without references (many clients follow no `$ref`) and without titles (a model reads every word)."""
    forms = schema.pop("$defs", {})

    def resolved(part: Any, names: bool = False) -> Any:
        if isinstance(part, list):
            return [resolved(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolved(forms[part["$ref"].rpartition("/")[2]])
        # What stands below `properties` is the name of a field, even where it is called title.
        kept = part if names else {key: value for key, value in part.items() if key != "title"}
        return {key: resolved(value, names=key == "properties" and not names) for key, value in kept.items()}

    told: JsonObject = resolved(schema)
    return told


def left_out(schema: JsonObject) -> JsonObject:
    """A schema of arguments which does not tell that what may be left out may be null as well, to the same effect."""
    told: JsonObject = _without_null(schema)
    return told


def _without_null(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_null(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _without_null(value) for key, value in part.items()}
    if kept.get("default", ...) is None:
        del kept["default"]
        stated = [form for form in kept.pop("anyOf", ()) if form != {"type": "null"}]
        return {**(stated[0] if len(stated) == 1 else {"anyOf": stated} if stated else {}), **kept}
    return kept

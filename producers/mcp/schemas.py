"""JSON Schemas simplified for MCP clients and models: inlined, and without redundant keywords."""

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
        # A key directly below `properties` is a field name, even `title`.
        kept = part if names else {key: value for key, value in part.items() if key != "title"}
        inlined = {key: resolved(value, names=key == "properties" and not names) for key, value in kept.items()}
        if not names and inlined.get("additionalProperties") == {}:
            inlined["additionalProperties"] = True  # the same, in a form that every client reads
        return inlined

    whole: JsonObject = resolved(schema)
    return whole


def without_null(schema: JsonObject) -> JsonObject:
    """A schema of arguments in which optional ones are not nullable: to leave one out has the same effect as null."""
    simplified: JsonObject = _without_null(schema)
    return simplified


def without_defaults(form: JsonObject) -> JsonObject:
    """A form of a merge patch: its fields may be null, and one that is left out is not null."""
    fields = {name: {**field} for name, field in form["properties"].items()}
    for field in fields.values():
        field.pop("default", None)
    return {**form, "properties": fields}


def _without_null(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_null(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _without_null(value) for key, value in part.items()}
    if kept.get("default", ...) is None:
        del kept["default"]
        options = [form for form in kept.pop("anyOf", ()) if form != {"type": "null"}]
        return {**(options[0] if len(options) == 1 else {"anyOf": options} if options else {}), **kept}
    return kept

"""A JSON schema in a few words, for one cell of a table."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def kind(schema: Schema) -> str:
    """What a value has to be: its type, its bounds, its default."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    name = str(schema.get("type", "any"))
    if name == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if name == "object" and "properties" in schema:
        return "object of " + ", ".join(f"`{field}`" for field in schema["properties"])
    bounds = [f"{sign} {schema[bound]}" for bound, sign in (("minimum", "≥"), ("maximum", "≤")) if bound in schema]
    default = [f"default {schema['default']!r}"] if schema.get("default") is not None else []
    return ", ".join([name, *bounds, *default])

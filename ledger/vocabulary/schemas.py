"""JSON Schema 2020-12 of all events, generated from their models.

There is one schema for each event name and version, for the whole envelope with its data. An event that the schema
admits is accepted by the gate. The gate accepts a little more (an envelope without `specversion`, another spelling of a
time), on which no client should rely.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from pydantic import create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kledger.contract.entities import ENTITY_PATTERN
from kledger.contract.errors import UnsupportedVersion
from kledger.contract.scope_fields import entity_or_value_error, scope_or_value_error
from kledger.contract.scopes import PUBLIC
from ledger.event import Fact, JsonObject
from ledger.events import FACTS
from ledger.vocabulary.old_versions import EARLIER
from ledger.wire.envelope import Envelope, schema_name
from ledger.wire.upcasts import known_versions

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OWN_DEFINITIONS = "#/$defs/{model}"
# RFC 3339 with an offset: a moment without one means another moment on every machine.
TIME_PATTERN = r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"

_CHECKED_PATTERNS: dict[object, str] = {
    entity_or_value_error: ENTITY_PATTERN,
    scope_or_value_error: f"^(?:{PUBLIC}|{ENTITY_PATTERN.removeprefix('^').removesuffix('$')})$",
}
_LINEAGE = {
    "traceparent": "The W3C trace context of the call that caused this event.",
    "traceid": "The trace in which this was stated.",
    "messageid": "The message from which this was taken.",
    "causationid": "The event that caused this one.",
    "correlationid": "What this and other events belong to together, for example one conversation.",
}
_ATTRIBUTES = {
    "specversion": "The CloudEvents version.",
    "id": "Unique for each event; a retry keeps it, and the second one is dropped. A UUID is a good one.",
    "type": "The name of the event.",
    "source": "Who writes, as a URI reference: your program's name will do.",
    "subject": "{entity}/{entity_id}, the id written plainly; the subject of the message has it encoded.",
    "time": "When it was stated, RFC 3339 with an offset. The ledger orders by position, not by this.",
    "dataschema": "The name and version of the schema of `data`.",
    "actor": "Who states it, {kind}:{id}; it must be the actor that the subject of the message names.",
    **_LINEAGE,
}


class _Readable(GenerateJsonSchema):
    """Pydantic's schema without the titles that repeat each field's name, and with our patterns."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's signature
        """Never: the name of a field is its title."""
        return False

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonSchemaValue:
        """Add the pattern that corresponds to a validator function of ours."""
        described = super().function_after_schema(schema)
        pattern = _CHECKED_PATTERNS.get(schema["function"]["function"])
        return {**described, "pattern": pattern} if pattern else described


def forms() -> Iterator[tuple[type[Fact], int]]:
    """All events in all versions that can be read, oldest version first."""
    for fact in FACTS.values():
        for version in known_versions(fact):
            yield fact, version


def form_name(fact: type[Fact], version: int) -> str:
    """`knowledge.saved.v2`: the name of a version in file names and in the AsyncAPI document."""
    return f"{fact.name}.v{version}"


def event_schema(fact: type[Fact], version: int | None = None, ref_template: str = OWN_DEFINITIONS) -> JsonObject:
    """The JSON Schema of one event: the whole envelope, with its data.

    `version` defaults to the fact's current one; `ref_template` is the path of the definitions.
    Raises UnsupportedVersion for an unknown version.
    """
    version = version or fact.version
    form = fact if version == fact.version else EARLIER.get((fact.name, version))
    if form is None:
        raise UnsupportedVersion(
            f"{fact.name} has no version {version}; known are {', '.join(map(str, known_versions(fact)))}"
        )
    whole = create_model(form_name(fact, version), __base__=Envelope, data=(form, ...))
    schema = whole.model_json_schema(ref_template=ref_template, schema_generator=_Readable)
    properties = schema["properties"]
    for name, described in _ATTRIBUTES.items():
        properties[name] = {**properties[name], "description": described}
    for name in _LINEAGE:  # absent when there is none: CloudEvents has no null attributes
        properties[name] = {
            **properties[name].pop("anyOf")[0],
            "description": properties[name]["description"],
        }
    properties["type"] = {"const": fact.name, "description": _ATTRIBUTES["type"]}
    properties["subject"] |= {"pattern": f"^{fact.entity()}/."}
    properties["time"] |= {"pattern": TIME_PATTERN}
    properties["dataschema"] = {
        "const": schema_name(fact, version),
        "description": _ATTRIBUTES["dataschema"],
    }
    if form.added:  # null only in an event of an earlier version; that of this version states the last one
        described = schema["$defs"][form.__name__]
        described["required"] = [*described.get("required", ()), form.added[-1]]
        for name in form.added[-1:]:
            described["properties"][name] = {
                **described["properties"][name].pop("anyOf")[0],
                **{key: value for key, value in described["properties"][name].items() if key != "default"},
            }
    if form.at_least_one:  # checked by a validator, which pydantic does not show in the schema
        schema["$defs"][form.__name__]["anyOf"] = [
            {"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in form.at_least_one
        ]
    return {
        "$schema": DIALECT,
        "$id": schema_name(fact, version),
        "title": f"{fact.name}, version {version}",
        "description": cleandoc(form.__doc__ or ""),
        "type": "object",
        "required": ["specversion", *schema["required"]],
        "properties": properties,
        "$defs": schema["$defs"],
    }

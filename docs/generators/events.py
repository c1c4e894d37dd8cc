"""The page of events: what each says, where it is published, and one example as the program writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import orjson

from docs.generators.tables import GENERATED, table
from kledger.contract.entities import ENTITY_PATTERN, TYPE_PATTERN
from kledger.contract.scopes import ENTITY_TYPES, PUBLIC
from ledger.event import Fact
from ledger.events import FACTS
from ledger.vocabulary.asyncapi import GUIDE
from ledger.vocabulary.examples import EXAMPLES
from ledger.vocabulary.schemas import event_schema, form_name, forms
from ledger.wire.envelope import encode
from ledger.wire.subjects import event_subject

Schema = dict[str, Any]


def events_page() -> str:
    """docs/reference/events.md."""
    return "\n".join(
        [
            "# Events\n",
            GENERATED,
            "Every change is one of these. The whole vocabulary as one document for tools is "
            "[asyncapi.json](asyncapi.json); each form has a JSON Schema in [schemas](schemas). By hand, "
            "step by step: [publish from any NATS client](../how-to/publish-from-any-nats-client.md).\n",
            "## How to publish\n",
            GUIDE + "\n",
            "## The envelope\n",
            "Every event has these attributes (CloudEvents 1.0), and what it says under `data`.\n",
            _envelope(),
            f"The kinds of entities are {', '.join(f'`{kind}`' for kind in ENTITY_TYPES)}, and any other word "
            f"matching `{TYPE_PATTERN}`, which the doors take once it is registered (`scope_type.registered`). "
            "An id is printable characters in any script, up to 200 with the kind.\n",
            *(_event(fact) for fact in FACTS.values()),
        ]
    )


def _envelope() -> str:
    schema = event_schema(next(iter(FACTS.values())))
    rows = [
        (
            f"`{name}`",
            "yes" if name in schema["required"] else "",
            field.get("description", "`application/json`"),
        )
        for name, field in schema["properties"].items()
        if name != "data"
    ]
    return table(("attribute", "required", "meaning"), rows)


def _event(fact: type[Fact]) -> str:
    example = EXAMPLES[fact.name]
    subject = event_subject(example.org, fact.entity(), example.entity_id, fact.verb(), example.actor)
    body = json.dumps(orjson.loads(encode(example)), indent=2, ensure_ascii=False)
    versions = [version for each, version in forms() if each is fact]
    links = ", ".join(
        f"[version {version}{'' if version == fact.version else ' (still read)'}]"
        f"(schemas/{form_name(fact, version)}.json)"
        for version in versions
    )
    return "\n".join(
        [
            f"## {fact.name}\n",
            f"{cleandoc(fact.__doc__ or '')}\n",
            f"Schema: {links}.\n",
            table(("field of `data`", "required", "what it may be"), _fields(fact)),
            "Published to\n",
            f"```text\n{subject}\n```\n",
            "with the body\n",
            f"```json\n{body}\n```\n",
        ]
    )


def _fields(fact: type[Fact]) -> Iterator[tuple[str, str, str]]:
    schema = event_schema(fact)
    definitions: Schema = schema["$defs"]
    data: Schema = definitions[fact.__name__]
    for name, field in data["properties"].items():
        yield f"`{name}`", "yes" if name in data.get("required", ()) else "", _said(field, definitions)


def _said(field: Schema, definitions: Schema) -> str:
    """One field's schema in words."""
    default = ""
    if field.get("default") is not None and not isinstance(field["default"], dict):
        default = f"; default `{json.dumps(field['default'], ensure_ascii=False)}`"
    return _kind(field, definitions) + default


def _kind(field: Schema, definitions: Schema) -> str:
    if "$ref" in field:
        definition = definitions[field["$ref"].rpartition("/")[2]]
        inner = ", ".join(f"`{name}`" for name in definition["properties"])
        return f"an object of {inner}"
    if "anyOf" in field:
        kinds = [_kind(each, definitions) for each in field["anyOf"] if each.get("type") != "null"]
        return f"{' or '.join(kinds)}, or null"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    match field.get("type"):
        case "array":
            limits = _limits(field, "minItems", "maxItems", "items")
            return f"a list{limits}, each {_kind(field['items'], definitions)}"
        case "object":
            return "a JSON object"
        case "string":
            if field.get("pattern") == ENTITY_PATTERN:
                return "an entity, `{kind}:{id}`"
            if PUBLIC in field.get("pattern", ""):
                return "a scope: an entity, `{kind}:{id}`, or `public`"
            pattern = f" matching `{field['pattern']}`" if "pattern" in field else ""
            return f"text{_limits(field, 'minLength', 'maxLength', 'characters')}{pattern}"
        case kind:
            return f"{'a whole number' if kind == 'integer' else f'a {kind}'}{_range(field)}"


def _limits(field: Schema, least: str, most: str, unit: str) -> str:
    if least in field and most in field:
        return f" of {field[least]} to {field[most]} {unit}"
    if most in field:
        return f" of up to {field[most]} {unit}"
    return (
        f" of at least {field[least]} {unit}" if field.get(least, 0) > 1 else (", not empty" if least in field else "")
    )


def _range(field: Schema) -> str:
    if "minimum" in field and "maximum" in field:
        return f" from {field['minimum']:g} to {field['maximum']:,}"
    return f" from {field['minimum']:g}" if "minimum" in field else ""

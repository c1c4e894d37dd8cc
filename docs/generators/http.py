"""The page of the HTTP interface: every endpoint, out of the OpenAPI document that the node itself serves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from docs.generators.schema_words import Schema, kind
from docs.generators.tables import GENERATED, table
from producers.http.app import create_app
from producers.http.identity import IDEMPOTENCY_KEY, IDENTITIES, LINEAGE
from producers.operations.desk import Desk
from producers.web.reference import operations_of, resolved, summary_of, told_of


def openapi_document() -> Schema:
    """What a node serves at /openapi.json; no request is made, so no route looks at its desk."""
    return create_app(cast(Desk, None)).openapi()


def http_page() -> str:
    """docs/reference/http.md."""
    document = openapi_document()
    operations = operations_of(document)
    return "\n".join(
        [
            "# HTTP\n",
            GENERATED,
            "A node serves this on its HTTP address, and tells it as one document at `/openapi.json` (here: "
            "[openapi.json](openapi.json)).\n",
            f"{document['info'].get('description', '')}\n",
            table(
                ("endpoint", "does"),
                (
                    (f"[`{method.upper()} {path}`](#{_anchor(method, path)})", summary_of(operation))
                    for method, path, operation in operations
                ),
            ),
            "## Headers\n",
            "Endpoints under `/api` take them; ids are percent-encoded UTF-8.\n",
            table(("header", "meaning"), _headers()),
            *(part for operation in operations for part in _operation(document, *operation)),
        ]
    )


def _headers() -> Iterator[tuple[str, str]]:
    yield "`Authorization`", "`Bearer` and a token, where the node has tokens; without one it answers /health alone"
    who = "Who asks, each a bare id; with none it is the operator of the node, or all that the token is bound to"
    yield _listed(IDENTITIES), who
    yield _listed(LINEAGE), "Where a write comes from: kept with the event, found again by its lineage"
    yield "`traceparent`", "The W3C trace context, kept with the event"
    yield (
        f"`{IDEMPOTENCY_KEY}`",
        (
            "Where the OpenAPI document lists it: the same key from the same caller is kept once, so retry freely. "
            "Jobs and recalls begin anew; what is said in a session and a batch of items have ids of their own"
        ),
    )


def _listed(headers: Iterable[str]) -> str:
    return ", ".join(f"`{header}`" for header in headers)


def _anchor(method: str, path: str) -> str:
    kept = "".join(letter for letter in path if letter.isalnum() or letter in "_-")
    return f"{method}-{kept}"


def _operation(document: Schema, method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"## {method.upper()} {path}\n"
    yield f"{told_of(operation)}\n"
    parameters = [
        (f"`{one['name']}`", one["in"], kind(one.get("schema", {})), one.get("description", ""))
        for one in (resolved(document, each) for each in operation.get("parameters", ()))
        if one["in"] != "header"  # the same for all, and told once
    ]
    if parameters:
        yield table(("parameter", "in", "type", "meaning"), parameters)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = resolved(document, content.get("schema", {}))
        required = schema.get("required", ())
        yield f"Body, `{media}`:{' any JSON' if 'properties' not in schema else ''}\n"
        if "properties" in schema and (told := schema.get("description")):
            yield f"{told}\n"
        rows = [
            (f"`{name}`", "yes" if name in required else "", kind(field), field.get("description", ""))
            for name, field in schema.get("properties", {}).items()
        ]
        if rows:
            yield table(("field", "required", "type", "meaning"), rows)
        if within := list(_within(document, schema)):
            yield table(("within it", "has"), within)
    answers = [
        (status, resolved(document, answer).get("description", ""))
        for status, answer in operation.get("responses", {}).items()
    ]
    yield table(("status", "answer"), answers)


def _within(document: Schema, schema: Schema) -> Iterator[tuple[str, str]]:
    """Each object with a name within a body, once, with its fields; those that are required are in bold."""
    told, waiting = set[str](), list(_named(schema.get("properties", {})))
    while waiting:
        name = waiting.pop(0)
        inner = resolved(document, {"$ref": f"#/components/schemas/{name}"})
        if name in told or "properties" not in inner:
            continue
        told.add(name)
        required = inner.get("required", ())
        fields = (f"**`{each}`**" if each in required else f"`{each}`" for each in inner["properties"])
        yield f"`{name}`", ", ".join(fields)
        waiting += _named(inner["properties"])


def _named(part: object) -> Iterator[str]:
    """The names of the schemas that a part of one refers to, in order."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from _named(value)
    elif isinstance(part, list):
        for value in part:
            yield from _named(value)

"""The reference of the API as HTML, made of its OpenAPI document: for /docs, and for the pages of people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

_METHODS = ("get", "post", "put", "patch", "delete")


def reference_of(document: dict[str, Any]) -> str:
    """Every endpoint of an OpenAPI document, first in a table and then one by one; whatever it holds is escaped."""
    operations = operations_of(document)
    parts = [
        _table(
            ("endpoint", "does"),
            (
                (
                    f'<a href="#{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></a>',
                    escape(summary_of(one)),
                )
                for method, path, one in operations
            ),
        ),
        *(part for operation in operations for part in _operation(document, *operation)),
    ]
    return "".join(parts)


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></h2>'
    yield f"<p>{escape(told_of(operation))}</p>"
    parameters = [
        (
            f"<code>{escape(one['name'])}</code>",
            one["in"],
            _kind(one.get("schema", {})),
            escape(one.get("description", "")),
        )
        for one in (resolved(document, each) for each in operation.get("parameters", ()))
    ]
    if parameters:
        yield _table(("parameter", "in", "type", "meaning"), parameters)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = resolved(document, content.get("schema", {}))
        yield f"<p>Body, <code>{escape(media)}</code></p>"
        yield from _fields(schema)
    answers = []
    success: dict[str, Any] = {}
    for status, answer in operation.get("responses", {}).items():
        contents: list[dict[str, Any]] = list(answer.get("content", {}).values())
        shape: dict[str, Any] = contents[0].get("schema", {}) if contents else {}
        answers.append((escape(status), escape(resolved(document, answer).get("description", "")), _kind(shape)))
        if status.startswith("2"):
            success = resolved(document, shape)
    yield _table(("status", "answer", "shape"), answers)
    if success.get("properties"):
        yield "<p>Answer</p>"
        yield from _fields(success)


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(name)}</code>",
            "yes" if name in required else "",
            _kind(field),
            escape(field.get("description", "")),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    if rows:
        yield _table(("field", "required", "type", "meaning"), rows)


def _kind(schema: dict[str, Any]) -> str:
    """A type in a word or two."""
    if "$ref" in schema:
        return escape(schema["$ref"].rpartition("/")[2])
    for one_of in ("anyOf", "oneOf"):
        if one_of in schema:
            return " or ".join(dict.fromkeys(_kind(each) for each in schema[one_of]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "any")))


def _anchor(method: str, path: str) -> str:
    return f"{method}-" + "".join(letter if letter.isalnum() else "-" for letter in path).strip("-")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def operations_of(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The method, path and description of every endpoint."""
    return [
        (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    ]


def told_of(operation: dict[str, Any]) -> str:
    """What an endpoint does."""
    return str(operation.get("description") or operation.get("summary", ""))


def summary_of(operation: dict[str, Any]) -> str:
    """The first paragraph of that."""
    return told_of(operation).partition("\n\n")[0]


def resolved(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """What a local reference points to."""
    while "$ref" in part:
        found: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name.replace("~1", "/").replace("~0", "~")]
        part = found
    return part

"""The description of the HTTP interface: what its OpenAPI document says of all endpoints alike."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from kledger import DEFAULT_URL
from producers.http.admission import OPEN
from producers.http.answers import SCHEMAS, described
from producers.http.identity import FURTHER, IDEMPOTENCY_KEY, IDENTITIES, LINEAGE, SEEN, retry_of

DESCRIPTION = (
    "Every write is an immutable event and answers with its log position. Reads see what their caller wrote; with "
    "`min_position` they see what others did. What an answer lacks is in its `degraded`. "
    "Who asks says so in the X-Ledger headers (percent-encoded); with none it is the operator of the node. "
    "A node with tokens asks for `Authorization: Bearer` everywhere but at /health; the headers then choose among "
    "what the token is bound to. "
    "Errors are `{error: {code, message, details}}` with stable codes. "
    "HEAD is answered as GET, without the body: what a GET records is recorded."
)
LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
SERVERS = [
    {"url": "/", "description": "The node that serves this document"},
    {"url": DEFAULT_URL, "description": "A node on this machine, as `kledger up` starts it"},
]
_STATED = (*IDENTITIES, FURTHER, *LINEAGE, "traceparent")
_RENAMED = {"Request Entity Too Large": "Content Too Large", "Unprocessable Entity": "Unprocessable Content"}
"""Statuses as RFC 9110 names them, and as Python does from 3.13 on."""
_TOKEN = "token"
_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of the node (`kledger token create`). A node on loopback that has no tokens needs none.",
}


def describe(app: FastAPI) -> None:
    """Have the OpenAPI document of `app` tell of the token, and of the headers that every route under /api takes."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        is_complete = app.openapi_schema is not None  # FastAPI keeps the document, which is completed in place
        document = generated()
        if not is_complete:
            _complete(document, app)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents this way to extend the schema


def _complete(document: dict[str, Any], app: FastAPI) -> None:
    references, parts = _shapes()
    schemas = document["components"]["schemas"]
    if differing := [name for name, schema in parts.items() if schemas.get(name, schema) != schema]:
        raise ValueError(f"what is asked and what is answered have the same names: {differing}")
    document["components"]["schemas"] = dict(sorted((schemas | parts).items()))
    document["components"]["securitySchemes"] = {_TOKEN: _SCHEME}
    document["security"] = [{}, {_TOKEN: []}]
    keyed = _keyed(app)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _put_shapes(operation, references)
            if path in OPEN:
                _open(operation)
            elif path.startswith("/api/"):
                names = [*_STATED, SEEN] if method == "get" else [*_STATED]
                names += [IDEMPOTENCY_KEY] if (path, method) in keyed else []
                operation.setdefault("parameters", []).extend(map(_header, names))


def _put_shapes(operation: dict[str, Any], references: dict[str, Any]) -> None:
    """Have the answers of an operation tell their shapes where they name one by its reference."""
    for answer in operation["responses"].values():
        answer["description"] = _RENAMED.get(answer["description"], answer["description"])
        for content in answer.get("content", {}).values():
            content["schema"] = references.get(content["schema"].get("$ref"), content["schema"])


def _shapes() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each shape that is answered by its reference, and the schemas that these consist of, by name."""
    mode: JsonSchemaMode = "serialization"
    shapes = [(reference, mode, TypeAdapter(model)) for reference, model in described().items()]
    schemas, whole = TypeAdapter.json_schemas(shapes, ref_template=SCHEMAS + "{model}")
    parts = jsonable_encoder(whole["$defs"], exclude_none=True)  # as FastAPI writes its own: without `default: null`
    return {reference: schema for (reference, _), schema in schemas.items()}, parts


def _open(operation: dict[str, Any]) -> None:
    """An endpoint that asks for no token and counts no requests."""
    operation["security"] = []
    for code in ("401", "429"):
        operation["responses"].pop(code)


def _keyed(app: FastAPI) -> set[tuple[str, str]]:
    """Path and method of each endpoint that keeps a request once by its key."""
    return {
        (route.path_format, method.lower())
        for route in app.routes
        if isinstance(route, APIRoute) and any(one.call is retry_of for one in route.dependant.dependencies)
        for method in route.methods or ()
    }


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}

"""Pages for people who open the node's address: what is where, and the reference of the API.

The reference is rendered here, from the node's own OpenAPI document: one page without scripts that fetches nothing.
Neither page holds anything of what the ledger knows. On a node with tokens both need one, as /openapi.json does.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kledger.answers.admin import Index
from producers.http.answers import Json
from producers.http.routing import router as new_router
from producers.web.addresses import HOME, wants_page

_OPENAPI = "/openapi.json"
_METHODS = ("get", "post", "put", "patch", "delete")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h2{margin-top:2.5rem;border-top:1px solid #ccc;padding-top:1rem}code{font:14px ui-monospace,monospace}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{border-bottom:1px solid #ddd;padding:.3rem .6rem;"
    "text-align:left;vertical-align:top}a{color:#0645ad}"
)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def routes(app: FastAPI, mcp: str) -> APIRouter:
    """The two pages of `app`, whose tools are at `mcp`."""
    router = new_router("pages", route_class=APIRoute)
    rendered: list[str] = []

    @router.get("/", responses={200: {"model": Index}})
    async def index(request: Request) -> Response:
        """What is where on this node; a browser is sent to the page for people."""
        if wants_page(request.headers.get("accept", "")):
            return RedirectResponse(HOME, 303, headers={**_HEADERS, "Vary": "Accept"})
        return Json(
            {
                "name": app.title,
                "version": app.version,
                "links": {
                    "page": HOME,
                    "docs": "/docs",
                    "openapi": _OPENAPI,
                    "api": "/api/knowledge",
                    "mcp": mcp,
                    "health": "/health",
                    "ready": "/health/ready",
                    "status": "/api/admin/status",
                    "metrics": "/metrics",
                },
            },
            headers=_HEADERS,
        )

    @router.get("/docs", include_in_schema=False)
    async def reference() -> HTMLResponse:
        """The reference of the API, as a page."""
        if not rendered:
            rendered.append(reference_page(app.openapi()))
        return HTMLResponse(rendered[0], headers=_HEADERS)

    @router.get(_OPENAPI, include_in_schema=False)
    async def document() -> Json:
        """The API as an OpenAPI document."""
        return Json(app.openapi())

    return router


def reference_page(document: dict[str, Any]) -> str:
    """The whole page of an OpenAPI document."""
    operations = [
        (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    ]
    info = document["info"]
    parts = [
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{escape(info.get('description', ''))}</p>",
        '<p><a href="/openapi.json">The same as an OpenAPI document</a>, <a href="/">what is where</a></p>',
        _table(
            ("endpoint", "does"),
            (
                (f'<a href="#{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></a>', _summary(one))
                for method, path, one in operations
            ),
        ),
        *(part for operation in operations for part in _operation(document, *operation)),
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f'<h2 id="{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></h2>'
    yield f"<p>{escape(str(operation.get('description') or operation.get('summary', '')))}</p>"
    parameters = [
        (
            f"<code>{escape(one['name'])}</code>",
            one["in"],
            _kind(one.get("schema", {})),
            escape(one.get("description", "")),
        )
        for one in (_resolved(document, each) for each in operation.get("parameters", ()))
    ]
    if parameters:
        yield _table(("parameter", "in", "type", "meaning"), parameters)
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = _resolved(document, content.get("schema", {}))
        yield f"<p>Body, <code>{escape(media)}</code></p>"
        yield from _fields(schema)
    answers = []
    success: dict[str, Any] = {}
    for status, answer in operation.get("responses", {}).items():
        contents: list[dict[str, Any]] = list(answer.get("content", {}).values())
        shape: dict[str, Any] = contents[0].get("schema", {}) if contents else {}
        answers.append((escape(status), escape(_resolved(document, answer).get("description", "")), _kind(shape)))
        if status.startswith("2"):
            success = _resolved(document, shape)
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


def _summary(operation: dict[str, Any]) -> str:
    return escape(str(operation.get("description") or operation.get("summary", "")).partition("\n\n")[0])


def _anchor(method: str, path: str) -> str:
    return f"{method}-" + "".join(letter if letter.isalnum() else "-" for letter in path).strip("-")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _resolved(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """What a local reference points to."""
    while "$ref" in part:
        found: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name.replace("~1", "/").replace("~0", "~")]
        part = found
    return part

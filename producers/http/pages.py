"""Pages for people who open the node's address: what is where, and the reference of the API.

The reference is rendered here, from the node's own OpenAPI document: one page without scripts that fetches nothing.
Neither page holds anything of what the ledger knows. On a node with tokens both need one, as /openapi.json does.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kledger.answers.admin import Index
from producers.http.answers import Json, shape
from producers.http.routing import router as new_router
from producers.web.addresses import HOME, wants_page
from producers.web.reference import reference_of

_OPENAPI = "/openapi.json"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h2{margin-top:2.5rem;border-top:1px solid #ccc;padding-top:1rem}code{font:14px ui-monospace,monospace}"
    "h2,h3,td,th,code{overflow-wrap:anywhere}"
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

    @router.get("/", responses={200: {"content": shape(Index)}})
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
    info = document["info"]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info.get('description', ''))}</p>"
        '<p><a href="/openapi.json">The same as an OpenAPI document</a>, <a href="/">what is where</a></p>'
        f"{reference_of(document)}</body></html>"
    )

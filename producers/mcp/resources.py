"""MCP resources: the items of knowledge that the caller may see, as `knowledge://{id}` with the id percent-encoded.

They are listed and read through the HTTP interface, whose rules decide what a caller sees. What the ledger itself calls
a resource (code, accounts, cookies) is read with the tool `resource_get`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import orjson
from mcp import types

from kledger.answers.knowledge import ListedItem
from kledger.client import knowledge
from kledger.client.wire import Wire
from kledger.contract.errors import InvalidPayload
from producers.mcp.lineage import PREFIX

SCHEME = "knowledge://"
PAGE = 50
"""Items of one page of the list. An item may have a megabyte."""
MOST_SHOWN = 200
"""Characters of a title or description in the list: the whole text is read with the item."""
_LONGEST = 4_000  # characters of a URI; an id of 200 characters has at most 2,400 when percent-encoded
_CURSOR = re.compile(r"[0-9]{1,18}")
_JSON, _TEXT = "application/json", "text/plain"

TEMPLATE = types.ResourceTemplate(
    uri_template=f"{SCHEME}{{id}}",
    name="knowledge",
    title="Knowledge item",
    description=(
        "One item of knowledge by its id: a JSON document with its status, source, scopes and the cases that judged "
        "it, then its content as plain text"
    ),
    mime_type=_JSON,
)


async def listed(wire: Wire, cursor: str | None) -> types.ListResourcesResult:
    """The answer to resources/list: a page of active items, newest first. Raises LedgerError."""
    page = await knowledge.list_items(wire, limit=PAGE, before=_position(cursor))
    return types.ListResourcesResult(
        resources=[_entry(item) for item in page["results"]],
        next_cursor=None if page["next"] is None else str(page["next"]),
        _meta={f"{PREFIX}degraded": page["degraded"]} if page["degraded"] else None,
    )


async def read(wire: Wire, uri: str) -> types.ReadResourceResult:
    """An item as GET /api/knowledge/{id} answers it, then its content as text. Raises LedgerError."""
    item = await knowledge.get(wire, id_of(uri))
    canonical = uri_of(item["id"])
    return types.ReadResourceResult(
        contents=[
            types.TextResourceContents(uri=canonical, mime_type=_JSON, text=orjson.dumps(item).decode()),
            types.TextResourceContents(uri=canonical, mime_type=_TEXT, text=item["content"]),
        ]
    )


def uri_of(item_id: str) -> str:
    """The URI of an item."""
    return SCHEME + quote(item_id, safe="")


def id_of(uri: str) -> str:
    """The id that a URI names. Raises InvalidPayload."""
    named = uri[len(SCHEME) :]
    if not uri.lower().startswith(SCHEME) or not named or len(uri) > _LONGEST:
        raise InvalidPayload(
            f"{uri[:200]!r} names no resource: write {SCHEME}ID with the id of an item, percent-encoded"
        )
    try:
        return unquote(named, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidPayload(f"the id in {uri[:200]!r} is not percent-encoded UTF-8: encode it") from error


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not _CURSOR.fullmatch(cursor):
        raise InvalidPayload(
            f"{cursor[:100]!r} is no cursor of this list: give `nextCursor` of the page before, or none to begin"
        )
    return int(cursor)


def _entry(item: ListedItem) -> types.Resource:
    return types.Resource(
        uri=uri_of(item["id"]),
        name=item["id"],
        title=_beginning(item["task"]) or None,
        description=_beginning(item["content"]) or None,
        mime_type=_JSON,
        annotations=types.Annotations(last_modified=item["updated_at"]),
    )


def _beginning(text: str) -> str:
    """The first characters of a text, on one line."""
    line = " ".join(text[: 2 * MOST_SHOWN].split())
    return line if len(text) <= 2 * MOST_SHOWN and len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 1]}…"

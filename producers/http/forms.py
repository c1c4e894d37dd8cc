"""Bodies of forms with a file: multipart/form-data, read as the same document that JSON would say."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import orjson
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from kledger.contract.documents import MEDIA_TYPES, TEXT
from kledger.contract.errors import BadJson
from producers.http.bodies import JsonRequest, JsonRoute

_FORM = "multipart/form-data"
_MOST_FIELDS = 100
_MOST_FIELD = 1024 * 1024
"""Bytes of a field that is no file: a longer text is sent as a file, or as JSON."""
_CHARSETS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1")
"""Others are refused: Python knows some that fail on every byte, run for seconds, or change what was said."""
_FIELDS = ("id", "title", "content_type", "url", "owner", "scopes")
FORM: dict[str, Any] = {
    "requestBody": {
        "content": {
            _FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        **{name: {"type": "string"} for name in _FIELDS[:-1]},
                        "scopes": {"type": "array", "items": {"type": "string"}},
                    },
                }
            }
        }
    }
}
"""What the description of a route says of it, beside the JSON body."""


class FormRequest(JsonRequest):
    """A request whose body may be a form with a file. It is bounded as one with many payloads is."""

    @property
    def max_body(self) -> int:
        """Bytes."""
        return self.limits.batch_body

    async def body(self) -> bytes:
        """The body as JSON; a form is turned into it. Raises PayloadTooLarge, BadJson."""
        if not hasattr(self, "_body"):
            kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != _FORM:
                return await super().body()
            document = await self._document(await self.bounded())
            self._body = orjson.dumps(document)
            sent = [pair for pair in self.scope["headers"] if pair[0] != b"content-type"]
            self.scope["headers"] = [*sent, (b"content-type", b"application/json")]
            self._headers = Headers(scope=self.scope)
        return self._body

    async def _document(self, sent: bytes) -> dict[str, Any]:
        async def stream() -> AsyncGenerator[bytes, None]:
            yield sent

        _, stated = parse_options_header(self.headers["content-type"])
        if stated.get(b"charset", b"utf-8").decode("latin-1").lower() not in _CHARSETS:
            raise BadJson(
                "the form has a charset that is not read: send its fields in utf-8, and state no other charset"
            )
        boundary = stated.get(b"boundary", b"")
        if boundary and b"\r\n--" + boundary + b"--" not in sent:  # the parser takes what came before the cut
            raise BadJson("the form is cut: it ends before its last boundary; send it whole")
        parser = MultiPartParser(
            self.headers, stream(), max_files=1, max_fields=_MOST_FIELDS, max_part_size=_MOST_FIELD
        )
        try:
            form = await parser.parse()
        except (MultiPartException, KeyError) as error:
            raise BadJson(
                "the body is no form that can be read: send multipart/form-data with one file, and "
                f"{_MOST_FIELD:,} bytes at most in each other field"
            ) from error
        document: dict[str, Any] = {}
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                content = base64.b64encode(await value.read()).decode("ascii")
                document[name] = {"content": content} | ({"name": value.filename} if value.filename else {})
                if value.content_type in MEDIA_TYPES.values() and value.content_type != TEXT:
                    document.setdefault("content_type", value.content_type)
            elif name == "scopes":
                document.setdefault(name, []).append(value)
            else:
                document[name] = value
        await form.close()
        return document


class FormRoute(JsonRoute):
    """A route that takes a form with a file, or JSON."""

    request_class = FormRequest

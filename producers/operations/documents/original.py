"""The original of a document: what a request sends, of which type it is, and the resources that keep it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from kledger.contract.documents import ENDINGS, HTML, MARKDOWN, MEDIA_TYPES, PDF, WORD, original_id
from kledger.contract.errors import InvalidPayload
from kledger.requests.documents import DocumentRequest
from kledger.requests.resources import ResourceRequest

PART = 300_000
"""Bytes of the original in one resource: sealed, and with every character escaped, it still fits one event."""
_NAMES = {media_type: name for name, media_type in MEDIA_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Original:
    """The bytes of a document, and its type."""

    content: bytes
    content_type: str

    def resources(self, document_id: str, title: str, owner: str, scopes: list[str]) -> list[ResourceRequest]:
        """The resources that keep it: of a large one, several."""
        bodies = [*self._bodies()]
        return [
            ResourceRequest(
                id=original_id(document_id, number),
                title=title,
                body=body,
                content_type=_NAMES[self.content_type],
                metadata={"document": document_id, "encoding": encoding, "part": number, "parts": len(bodies)},
                scopes=scopes,
                owner=owner,
            )
            for number, (body, encoding) in enumerate(bodies, 1)
        ]

    def _bodies(self) -> Iterator[tuple[str, str]]:
        """(body, encoding) of each part."""
        try:
            text = "" if b"\0" in self.content else self.content.decode()
        except UnicodeDecodeError:
            text = ""
        if not text:
            for start in range(0, len(self.content), PART):
                yield base64.b64encode(self.content[start : start + PART]).decode("ascii"), "base64"
            return
        for start in range(0, len(text), PART // 3):
            yield text[start : start + PART // 3], "text"


def original_of(payload: DocumentRequest) -> Original:
    """What a request sends. Raises InvalidPayload."""
    if payload.file is None:
        assert payload.text is not None  # it is one of the two
        return Original(payload.text.encode(), _stated(payload) or _named(payload.id) or MARKDOWN)
    try:
        content = base64.b64decode(payload.file.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _fault("file", "holds no base64: encode the bytes of the file") from error
    found = _stated(payload) or _named(payload.file.name) or _named(payload.id) or _begins(content)
    if found is None:
        raise _fault("content_type", f"is missing, and no name says what the file is: write {_KNOWN}")
    return Original(content, found)


_KNOWN = f"one of {', '.join([*MEDIA_TYPES, *MEDIA_TYPES.values()])}"


def _stated(payload: DocumentRequest) -> str | None:
    if payload.content_type is None:
        return None
    said = payload.content_type.partition(";")[0].strip().lower()
    if (found := MEDIA_TYPES.get(said, said)) not in _NAMES:
        raise _fault("content_type", f"{said[:100]!r} is not read: write {_KNOWN}")
    return found


def _named(name: str | None) -> str | None:
    return None if name is None else ENDINGS.get(PurePosixPath(name).suffix.lower())


def _begins(content: bytes) -> str | None:
    start = content[:256].lstrip().lower()
    if start.startswith(b"%pdf-"):
        return PDF
    if start.startswith(b"pk\x03\x04"):
        return WORD
    return HTML if start.startswith((b"<!doctype html", b"<html")) else None


def _fault(field: str, reason: str) -> InvalidPayload:
    return InvalidPayload(f"{field} {reason}", errors=[{"field": field, "reason": reason}])

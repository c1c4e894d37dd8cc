"""Wire protocol between the node and the vector process.

Frames over the process's standard input and output: four bytes of length, little endian, then one JSON document.
A request has an `id` and a verb in `do`; its answer has the same id and either `ok` or `error`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from kledger.contract.errors import InvalidPayload

Frame = dict[str, Any]
Paths = Literal["fused", "keyword", "vector"]

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Store:
    """Store one version of an item. Positions as in `port.Point`; vectors are made from the texts.

    A later change of the version (it is retired, its scopes change) is another Store of it, with the position of that
    event and the original `valid_from`.
    """

    item_id: str
    version: int
    position: int
    task: str
    content: str
    scopes: Sequence[str]
    types: Sequence[str]
    owner: str
    valid_from: int | None = None
    valid_to: int | None = None
    retired: bool = False
    visibility: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """A version was superseded at position `valid_to`."""

    item_id: str
    version: int
    valid_to: int


@dataclass(frozen=True, slots=True)
class Erase:
    """Erase these items in every version."""

    item_ids: Sequence[str]


Change = Store | Close | Erase
_CHANGES: Mapping[str, type[Store] | type[Close] | type[Erase]] = {
    "store": Store,
    "close": Close,
    "erase": Erase,
}


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An OpenAI-compatible endpoint and its model; `shorten` requests shorter vectors.

    A search waits `deadline` seconds for the vector of its query.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    dimensions: int
    timeout: float = 30.0
    retries: int = 3
    concurrency: int = 4
    shorten: bool = False
    deadline: float = 0.3


@dataclass(frozen=True, slots=True)
class KeptAt:
    """The broker that stores paid embeddings, and the user that may read and publish `embedding.>`."""

    url: str
    role: str = "reader"
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the vector process: a directory for Edge or a server's URL, and the embedding model.

    Without `embedding` the vectors are hashed n-grams. Without `kept_at`, embeddings are stored in memory only.
    """

    directory: str | None = None
    qdrant_url: str | None = None
    qdrant_api_key: str | None = field(default=None, repr=False)
    embedding: EmbeddingModel | None = None
    kept_at: KeptAt | None = None


def settings_frame(settings: Settings) -> Frame:
    """The first frame to the process."""
    return asdict(settings)


def read_settings(frame: Frame) -> Settings:
    """The settings from the first frame. Raises InvalidPayload."""
    try:
        given = dict(frame)
        embedding, kept_at = given.pop("embedding", None), given.pop("kept_at", None)
        return Settings(
            **given,
            embedding=EmbeddingModel(**embedding) if embedding else None,
            kept_at=KeptAt(**kept_at) if kept_at else None,
        )
    except TypeError as error:
        raise InvalidPayload(f"the vector process does not understand its settings: {error}") from error


def change_frame(change: Change) -> Frame:
    """A change as a JSON frame."""
    kind = {Store: "store", Close: "close", Erase: "erase"}[type(change)]
    return {"kind": kind} | {name: getattr(change, name) for name in change.__slots__}  # asdict copies what is in it


def read_change(frame: Frame) -> Change:
    """A change from a JSON frame. Raises InvalidPayload."""
    given = dict(frame)
    kind = given.pop("kind", None)
    try:
        return _CHANGES[kind](**given)
    except (KeyError, TypeError) as error:
        raise InvalidPayload(f"the vector process does not understand a change of kind {kind!r}: {error}") from error


def pack(frame: Frame) -> bytes:
    """A frame as bytes."""
    body = orjson.dumps(frame)
    return _LENGTH.pack(len(body)) + body


class Unpacked:
    """Frames out of bytes as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()

    def more(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole with these bytes. Raises InvalidPayload."""
        held = self._held
        held += data
        at = 0
        try:
            while len(held) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(held, at)
                if length > MAX_FRAME_BYTES:
                    raise InvalidPayload(
                        f"a frame of {length} bytes is more than {MAX_FRAME_BYTES}: send fewer changes"
                    )
                begin, end = at + _LENGTH.size, at + _LENGTH.size + length
                if end > len(held):
                    break
                at = end
                yield orjson.loads(held[begin:end])
        finally:
            del held[:at]

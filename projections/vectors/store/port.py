"""Port of a vector store: what each adapter implements.

The one narrow port between the ledger's fold and Qdrant. A point is one version of one item; it stays after it is
superseded, so that a search can ask as of any position. Every write is guarded by position: a write older than the
point's state changes nothing, so redelivery is harmless.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ledger.named_ids import named_id
from projections.vectors.tokens import Sparse

_NAMESPACE = uuid.UUID("6f0e7f4e-3a52-5d0b-9a0c-6d1b6b0f5a11")

AWAITED, GIVEN, NONE = 1, 0, 2
"""`awaits` of a version: not embedded yet, embedded, or never to be embedded (a blank text)."""

Only = Mapping[str, Sequence[str]]
"""Further filters of a search: for a field of the payload (owner, visibility), any of these values."""

OPEN = 2**53 - 1
"""Stored `valid_to` of a version that is not superseded: greater than any position."""


@dataclass(frozen=True, slots=True)
class Point:
    """One version of one item, ready to be stored.

    `position` is that of the event which made this state; `valid_from` that of the event which made the
    version (the same unless something about the version changed later); `valid_to` that of the event which
    superseded it. `dense` is float32 of the model's dimensions; None awaits its embedding.
    """

    item_id: str
    version: int
    position: int
    scopes: Sequence[str]
    types: Sequence[str]
    owner: str
    dense: NDArray[np.float32] | None
    sparse: Sparse
    text_hash: str = ""
    valid_from: int | None = None
    valid_to: int | None = None
    retired: bool = False
    visibility: str = ""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What a search may find: the `limit` best of each path.

    A version needs one of `visible_scopes`: none finds nothing, EVERYTHING among them finds all. Empty `types` means
    any; `only` filters further; with `since`, versions made after that position alone; with `versions`, those that the
    events at these positions made. With `as_of`, the versions valid
    at that position (valid_from <= as_of < valid_to), else those valid now.
    """

    visible_scopes: Sequence[str]
    types: Sequence[str] = ()
    limit: int = 20
    as_of: int | None = None
    only: Only = field(default_factory=dict)
    since: int | None = None
    versions: Sequence[int] | None = None


class Found(NamedTuple):
    """A version that a search found, with the raw score of each path that found it."""

    item_id: str
    version: int
    valid_from: int
    keyword: float | None
    vector: float | None


class Awaiting(NamedTuple):
    """A version that is not embedded yet, and so found by keywords only."""

    item_id: str
    version: int
    valid_from: int


class Whole(NamedTuple):
    """The stored data of a version; `dense` is empty where there is none."""

    payload: Mapping[str, object]
    terms: Sparse
    dense: NDArray[np.float32]


class VectorStore(Protocol):
    """A store of points of one model. Methods block.

    Only one caller writes at a time. With `waits_on_network`, calls wait for a server, so that several searches may
    run at once in threads; otherwise all calls have to come from one thread.
    """

    waits_on_network: bool

    def upsert(self, points: Sequence[Point]) -> int:
        """Store points; those not newer than the stored state change nothing. Returns how many were written."""

    def close_version(self, item_id: str, version: int, valid_to: int) -> None:
        """Record that a version was superseded at position `valid_to`. Unknown versions are ignored."""

    def erase(self, item_ids: Sequence[str]) -> None:
        """Remove every version of these items."""

    def search(
        self, options: SearchOptions, *, dense: NDArray[np.float32] | None, sparse: Sparse | None
    ) -> list[Found]:
        """The best of each path among what the caller may see, best keyword score first.

        The store's own query filters by the options. A path whose vector is None, empty or all zero is skipped. The
        document frequencies count only what is valid now and visible to the caller: nothing else may influence a score
        or the order.
        """

    def read(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Whole]:
        """The stored ones of these versions (item, version)."""

    def awaiting(self, most: int) -> list[Awaiting]:
        """Up to `most` versions that are not embedded yet."""

    def count_awaiting(self) -> int:
        """The number of versions that are not embedded yet."""

    def embed(self, vectors: Mapping[tuple[str, int], NDArray[np.float32] | None]) -> None:
        """Set the dense vectors of versions (item, version); None: there is none. Missing versions are skipped."""

    def clear(self) -> None:
        """Remove every point, and the checkpoint: the store is empty."""

    def count(self) -> int:
        """The number of points: versions, superseded ones included."""

    def checkpoint(self) -> int:
        """The position up to which everything is stored, 0 for a new store."""

    def set_checkpoint(self, position: int) -> None:
        """Make all writes so far durable, then store the position. A lower one than before is ignored."""

    def digest(self) -> str:
        """A digest of all points, the same for any order of writes that ends in the same state."""

    def optimize(self) -> bool:
        """Build the search indexes; may take long. True when there was something to do."""

    def close(self) -> None:
        """Flush, and close files and connections."""


def point_id(item_id: str, version: int) -> str:
    """A deterministic UUID (version 5) of a version of an item."""
    return named_id(_NAMESPACE, f"{item_id}\x00{version}")


def text_hash(task: str, content: str) -> str:
    """SHA-256 over both texts, to identify what the vectors were made of without storing it."""
    return hashlib.sha256(f"{task}\x00{content}".encode()).hexdigest()


def payload_of(point: Point) -> dict[str, object]:
    """The payload that is stored beside the vectors.

    `applied` is the position of the last event applied to this point. `now` repeats the scopes while the version is
    the valid one, so that the usual search filters by one condition: measured, that is a third faster.
    """
    valid_to = OPEN if point.valid_to is None else point.valid_to
    scopes = sorted(set(point.scopes))
    return {
        "item_id": point.item_id,
        "version": point.version,
        "applied": applied(point),
        "valid_from": point.position if point.valid_from is None else point.valid_from,
        "valid_to": valid_to,
        "scopes": scopes,
        "types": sorted(set(point.types)),
        "owner": point.owner,
        "visibility": point.visibility,
        "retired": int(point.retired),
        "now": scopes if valid_to == OPEN and not point.retired else [],
        "text_hash": point.text_hash,
        "awaits": AWAITED if point.dense is None else GIVEN,
    }


def now_readers(payload: Mapping[str, object]) -> list[str]:
    """The readers who find this version in the usual search; none once it is superseded or retired."""
    now = payload.get("now")
    return [str(reader) for reader in now] if isinstance(now, list) else []


def applied(point: Point) -> int:
    """The position of the last event that is part of this point's state."""
    return max(point.position, point.valid_to or 0)


def closing(valid_to: int) -> dict[str, object]:
    """The payload fields to update in a version that was superseded at this position."""
    return {"valid_to": valid_to, "applied": valid_to, "now": []}


def embedded(
    vectors: Mapping[str, NDArray[np.float32] | None], there: Iterable[str]
) -> Iterator[tuple[int, list[str]]]:
    """The new values of `awaits`, each with the existing points that get it: GIVEN or NONE."""
    by_state: dict[int, list[str]] = {GIVEN: [], NONE: []}
    for key in there:
        by_state[NONE if vectors[key] is None else GIVEN].append(key)
    return ((state, keys) for state, keys in by_state.items() if keys)


def newest(points: Iterable[Point]) -> dict[str, Point]:
    """The newest state of each version, by point id; of equally new ones the last."""
    kept: dict[str, Point] = {}
    for point in points:
        key = point_id(point.item_id, point.version)
        if key not in kept or applied(point) >= applied(kept[key]):
            kept[key] = point
    return kept


def merged(keyword: Iterable[tuple[Found, float]], vector: Iterable[tuple[Found, float]]) -> list[Found]:
    """Both paths' hits as one list, best keyword score first and then best vector score."""
    by_version: dict[tuple[str, int], Found] = {}
    for hit, score in keyword:
        by_version[hit.item_id, hit.version] = Found(hit.item_id, hit.version, hit.valid_from, score, None)
    for hit, score in vector:
        key = (hit.item_id, hit.version)
        known = by_version.get(key)
        by_version[key] = Found(*key, hit.valid_from, known.keyword if known else None, score)
    return list(by_version.values())


class Digest:
    """Digest of a set of points: the sum of their hashes, so that the order does not matter."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._sum = 0
        self._count = 0

    def add(self, key: str, payload: str, dense: NDArray[np.float32], indices: NDArray[np.uint32]) -> None:
        """One point: its id, its payload as canonical JSON, its dense vector, its sparse terms."""
        parts = (
            key.encode(),
            payload.encode(),
            dense.astype("<f4").tobytes(),
            np.sort(indices).astype("<u4").tobytes(),
        )
        each = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
        self._sum = (self._sum + int.from_bytes(each, "big")) % 2**256
        self._count += 1

    def hexdigest(self) -> str:
        """The digest: 64 hexadecimal digits."""
        return hashlib.sha256(f"{self._model}:{self._count}:{self._sum:064x}".encode()).hexdigest()

"""Port of a vector store: what each adapter implements.

The one narrow port between the ledger's fold and Qdrant. A point is one version of one item; it stays after it is
superseded, so that a search can ask as of any position. Every write is guarded by position: a write older than the
point's state changes nothing, so redelivery is harmless.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from projections.search.tokens import Sparse

_NAMESPACE = uuid.UUID("6f0e7f4e-3a52-5d0b-9a0c-6d1b6b0f5a11")

AWAITED, GIVEN, NONE = 1, 0, 2
"""`awaits` of a version: its dense vector is awaited, it is there, or it will have none."""

Only = Mapping[str, Sequence[str]]
"""What else a version has to have to be found: for a field of its payload (owner, visibility), any of these values."""

OPEN = 2**53 - 1
"""`valid_to` of a version that nothing has superseded, as it is stored: greater than any position."""


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
class Found:
    """A version that a search found, with the raw score of each path that found it."""

    item_id: str
    version: int
    valid_from: int
    keyword: float | None
    vector: float | None


class Awaiting(NamedTuple):
    """A version that is found by its words alone until its text is embedded."""

    item_id: str
    version: int
    valid_from: int


class Whole(NamedTuple):
    """All that is stored of a version; `dense` is empty where there is none."""

    payload: Mapping[str, object]
    terms: Sparse
    dense: NDArray[np.float32]


class VectorStore(Protocol):
    """A store of points of one model. Methods block.

    Only one caller writes at a time. `waits_on_network` says that a blocked call leaves the processor free, so
    that several searches may run at once in threads; otherwise all calls come from one thread.
    """

    waits_on_network: bool

    def upsert(self, points: Sequence[Point]) -> int:
        """Store points; those no newer than what is stored change nothing. Returns how many were written."""
        ...

    def close_version(self, item_id: str, version: int, valid_to: int) -> None:
        """Say that a version was superseded at position `valid_to`. Unknown versions are left alone."""
        ...

    def erase(self, item_ids: Sequence[str]) -> None:
        """Remove every version of these items."""
        ...

    def search(
        self,
        *,
        dense: NDArray[np.float32] | None,
        sparse: Sparse | None,
        visible_scopes: Sequence[str],
        types: Sequence[str] = (),
        limit: int = 20,
        as_of: int | None = None,
        include_retired: bool = False,
        only: Only | None = None,
    ) -> list[Found]:
        """The `limit` best of each path among what the caller may see, best keyword score first.

        Only versions that share a scope with `visible_scopes` are looked at, inside the store's own query; no
        visible scope finds nothing, EVERYTHING among them all. `types` empty means any, `only` narrows. `as_of` asks
        for the versions valid at that position (valid_from <= as_of < valid_to), else for those valid now. A path
        whose vector is None, empty or all zero is not asked. How rare a term is follows from what is valid now and
        visible to the caller alone: nothing else may move a score or an order.
        """
        ...

    def read(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Whole]:
        """Those of these versions (item, version) that are stored."""
        ...

    def awaiting(self, most: int) -> list[Awaiting]:
        """Up to `most` versions that await their embedding."""
        ...

    def count_awaiting(self) -> int:
        """How many there are."""
        ...

    def embed(self, vectors: Mapping[tuple[str, int], NDArray[np.float32] | None]) -> None:
        """Give versions (item, version) their dense vectors; None: there will be none. Those gone are passed over."""
        ...

    def clear(self) -> None:
        """Remove every point, and the checkpoint: the store is as new."""
        ...

    def count(self) -> int:
        """How many points there are: versions, superseded ones included."""
        ...

    def checkpoint(self) -> int:
        """The position up to which everything is stored, 0 for a new store."""
        ...

    def set_checkpoint(self, position: int) -> None:
        """Make all writes so far durable, then remember the position. Going back is refused by ignoring it."""
        ...

    def digest(self) -> str:
        """A fingerprint of all points, the same for any order of writes that ends in the same state."""
        ...

    def optimize(self) -> bool:
        """Build the indexes that make search fast; may take long. True when there was something to do."""
        ...

    def close(self) -> None:
        """Flush, and let go of files and connections."""
        ...


def point_id(item_id: str, version: int) -> str:
    """The same UUID for the same version of the same item, wherever and whenever it is stored."""
    return str(uuid.uuid5(_NAMESPACE, f"{item_id}\x00{version}"))


def text_hash(task: str, content: str) -> str:
    """SHA-256 over both texts: what the vectors were made of, without keeping the text itself."""
    return hashlib.sha256(f"{task}\x00{content}".encode()).hexdigest()


def payload_of(point: Point) -> dict[str, object]:
    """What is stored beside the vectors.

    `applied` is the newest position that this point has heard of. `now` repeats the scopes while the version is
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
    """Who may read this version and finds it in the usual search; nobody once it is superseded or retired."""
    now = payload.get("now")
    return [str(reader) for reader in now] if isinstance(now, list) else []


def applied(point: Point) -> int:
    """The newest position that this point tells of."""
    return max(point.position, point.valid_to or 0)


def closing(valid_to: int) -> dict[str, object]:
    """What changes in the payload of a version that was superseded at this position."""
    return {"valid_to": valid_to, "applied": valid_to, "now": []}


def embedded(
    vectors: Mapping[str, NDArray[np.float32] | None], there: Iterable[str]
) -> Iterator[tuple[int, list[str]]]:
    """What `awaits` becomes of the points that are there, and of which: they have their vector, or will have none."""
    given: dict[int, list[str]] = {GIVEN: [], NONE: []}
    for key in there:
        given[NONE if vectors[key] is None else GIVEN].append(key)
    return ((state, keys) for state, keys in given.items() if keys)


def newest(points: Iterable[Point]) -> dict[str, Point]:
    """Of each version only the newest state, by point id; of equally new ones the last."""
    kept: dict[str, Point] = {}
    for point in points:
        key = point_id(point.item_id, point.version)
        if key not in kept or applied(point) >= applied(kept[key]):
            kept[key] = point
    return kept


def merged(keyword: Iterable[tuple[Found, float]], vector: Iterable[tuple[Found, float]]) -> list[Found]:
    """Both paths' hits as one list, best keyword score first and then best vector score."""
    found: dict[tuple[str, int], Found] = {}
    for hit, score in keyword:
        found[hit.item_id, hit.version] = Found(hit.item_id, hit.version, hit.valid_from, score, None)
    for hit, score in vector:
        key = (hit.item_id, hit.version)
        known = found.get(key)
        found[key] = Found(*key, hit.valid_from, known.keyword if known else None, score)
    return list(found.values())


class Digest:
    """Fingerprint of a set of points: each point's hash is added up, so no order matters."""

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
        """The fingerprint: 64 hexadecimal digits."""
        return hashlib.sha256(f"{self._model}:{self._count}:{self._sum:064x}".encode()).hexdigest()

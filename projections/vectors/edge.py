"""How are vectors stored and searched with nothing installed? Qdrant's engine, in this process.

Edge holds the interpreter's lock while it works: keep it out of any process with an event loop that others
wait for (`process.py` is its own). Measured at 9,000 items: both paths with filter and payload in 2.2 ms, 1.3
after `optimize`.

There is no write-ahead log: what a crash loses lies behind the checkpoint, and is fed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import orjson
import qdrant_edge as edge
from numpy.typing import NDArray

from projections.search.tokens import Sparse
from projections.vectors.directories import model_slug, read_checkpoint, replace_file
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.port import (
    OPEN,
    Digest,
    Found,
    Point,
    applied,
    closing,
    merged,
    newest,
    payload_of,
    point_id,
)

_DENSE, _TERMS = "dense", "terms"
_KEYWORD, _INTEGER = edge.PayloadSchemaType.Keyword, edge.PayloadSchemaType.Integer
# Edge 0.9 matches a boolean as if it were a number and finds nothing, so flags are stored as 0 and 1.
_INDEXES = {
    "item_id": _KEYWORD,
    "now": _KEYWORD,
    "scopes": _KEYWORD,
    "types": _KEYWORD,
    "valid_from": _INTEGER,
    "valid_to": _INTEGER,
    "retired": _INTEGER,
}
_WANTED = edge.PayloadSelector.Include(["item_id", "version", "valid_from"])
_PAGE = 1_000


class EdgeStore:
    """One model's points in a folder of their own. Raises VectorStoreFailed when the folder does not load."""

    waits_on_network = False

    def __init__(self, directory: Path, model: str, dimensions: int) -> None:
        self.model = model
        self._dimensions = dimensions
        self._folder = directory / model_slug(model, dimensions)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = read_checkpoint(self._folder)
        self._shard = self._open()

    def _open(self) -> edge.EdgeShard:
        files = self._folder / "shard"
        if self._checkpoint == 0:
            # nothing is promised yet, and a folder that a crash left half made would not load
            shutil.rmtree(files, ignore_errors=True)
            return self._create(files)
        try:
            return edge.EdgeShard.load(str(files))
        except Exception as error:  # the bindings raise bare exceptions of many kinds
            raise VectorStoreFailed(
                f"the vectors in {files} do not load ({error}); delete {self._folder} to have them built anew"
            ) from error

    def _create(self, files: Path) -> edge.EdgeShard:
        files.mkdir(parents=True)
        config = edge.EdgeConfig(
            vectors={_DENSE: edge.EdgeVectorParams(size=self._dimensions, distance=edge.Distance.Cosine)},
            sparse_vectors={_TERMS: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            payload_memory=edge.Memory.Cached,
            wal_enabled=False,
        )
        shard = edge.EdgeShard.create(str(files), config)
        for field, kind in _INDEXES.items():
            shard.update(edge.UpdateOperation.create_field_index(field, kind))
        return shard

    def upsert(self, points: Sequence[Point]) -> int:
        """See `port.VectorStore.upsert`."""
        fresh = newest(points)
        known = self._applied(fresh)
        written = [
            edge.Point(id=key, vector=_vectors(point), payload=payload_of(point))
            for key, point in fresh.items()
            if applied(point) >= known.get(key, 0)
        ]
        if written:
            self._shard.update(edge.UpdateOperation.upsert_points(written))
        return len(written)

    def close_version(self, item_id: str, version: int, valid_to: int) -> None:
        """See `port.VectorStore.close_version`."""
        key = point_id(item_id, version)
        known = self._applied([key])
        if key in known and known[key] <= valid_to:
            self._shard.update(edge.UpdateOperation.set_payload([key], closing(valid_to)))

    def erase(self, item_ids: Sequence[str]) -> None:
        """See `port.VectorStore.erase`."""
        if item_ids:
            theirs = edge.Filter(must=[_any("item_id", item_ids)])
            self._shard.update(edge.UpdateOperation.delete_points_by_filter(theirs))

    def clear(self) -> None:
        """See `port.VectorStore.clear`."""
        replace_file(self._folder / "checkpoint", "0")  # first: a crash from here on finds a store to be made anew
        self._shard.close()
        self._checkpoint = 0
        self._shard = self._open()

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
    ) -> list[Found]:
        """See `port.VectorStore.search`."""
        if not visible_scopes:
            return []
        admitted = _filter(visible_scopes, types, as_of, include_retired)
        queries: dict[str, edge.QueryRequest] = {}
        if sparse is not None and len(sparse.indices):
            terms = edge.Query.Nearest(_sparse(sparse), using=_TERMS)
            queries[_TERMS] = edge.QueryRequest(limit, query=terms, filter=admitted, with_payload=_WANTED)
        if dense is not None and dense.any():
            near = edge.Query.Nearest(dense.tolist(), using=_DENSE)
            queries[_DENSE] = edge.QueryRequest(limit, query=near, filter=admitted, with_payload=_WANTED)
        if not queries:
            return []
        answers = self._shard.query_batch(edge.QueryBatchRequest(list(queries.values())))
        hits = dict(zip(queries, answers, strict=True))
        return merged(_found(hits.get(_TERMS, [])), _found(hits.get(_DENSE, [])))

    def count(self) -> int:
        """See `port.VectorStore.count`."""
        return self._shard.count(edge.CountRequest(exact=True))

    def checkpoint(self) -> int:
        """See `port.VectorStore.checkpoint`."""
        return self._checkpoint

    def set_checkpoint(self, position: int) -> None:
        """See `port.VectorStore.set_checkpoint`."""
        if position > self._checkpoint:
            self._shard.flush()
            replace_file(self._folder / "checkpoint", str(position))
            self._checkpoint = position

    def digest(self) -> str:
        """See `port.VectorStore.digest`."""
        digest = Digest(self.model)
        offset: edge.PointId | None = None
        while True:
            page, offset = self._shard.scroll(
                edge.ScrollRequest(offset=offset, limit=_PAGE, with_payload=True, with_vector=True)
            )
            for record in page:
                vectors = record.vector
                payload = orjson.dumps(record.payload, option=orjson.OPT_SORT_KEYS).decode()
                terms = vectors.get(_TERMS) if isinstance(vectors, dict) else None
                dense = vectors[_DENSE] if isinstance(vectors, dict) else []
                indices = terms.indices if isinstance(terms, edge.SparseVector) else []
                digest.add(str(record.id), payload, np.asarray(dense, np.float32), np.asarray(indices, np.uint32))
            if offset is None:
                return digest.hexdigest()

    def optimize(self) -> bool:
        """See `port.VectorStore.optimize`. Nothing else is answered meanwhile: 1.8 s at 9,000 items."""
        return self._shard.optimize()

    def close(self) -> None:
        """See `port.VectorStore.close`."""
        self._shard.flush()
        self._shard.close()

    def _applied(self, keys: Iterable[str]) -> dict[str, int]:
        """How far each of these points has come, of those that exist."""
        records = self._shard.retrieve(list(keys), with_payload=["applied"], with_vector=False)
        return {str(record.id): int((record.payload or {})["applied"]) for record in records}


def _vectors(point: Point) -> dict[str, edge.NamedVector]:
    vectors: dict[str, edge.NamedVector] = {_DENSE: point.dense.tolist()}
    if len(point.sparse.indices):
        vectors[_TERMS] = _sparse(point.sparse)
    return vectors


def _sparse(terms: Sparse) -> edge.SparseVector:
    return edge.SparseVector(terms.indices.tolist(), terms.values.tolist())


def _any(field: str, values: Sequence[str]) -> edge.FieldCondition:
    return edge.FieldCondition(field, match=edge.MatchAny(list(values)))


def _filter(
    visible_scopes: Sequence[str], types: Sequence[str], as_of: int | None, include_retired: bool
) -> edge.Filter:
    must: list[edge.ConditionType]
    if as_of is None and not include_retired:
        must = [_any("now", visible_scopes)]
    else:
        must = [_any("scopes", visible_scopes)]
        if as_of is None:
            must.append(edge.FieldCondition("valid_to", match=edge.MatchValue(OPEN)))
        else:
            must.append(edge.FieldCondition("valid_from", range=edge.RangeFloat(lte=as_of)))
            must.append(edge.FieldCondition("valid_to", range=edge.RangeFloat(gt=as_of)))
        if not include_retired:
            must.append(edge.FieldCondition("retired", match=edge.MatchValue(0)))
    if types:
        must.append(_any("types", types))
    return edge.Filter(must=must)


def _found(points: Iterable[edge.ScoredPoint]) -> list[tuple[Found, float]]:
    found = []
    for point in points:
        stored = point.payload or {}
        hit = Found(stored["item_id"], stored["version"], stored["valid_from"], None, None)
        found.append((hit, point.score))
    return found

"""How are vectors stored and searched on a Qdrant server or cluster?

The same points, filters and guard as `edge.py`, through the official client: one collection a model, and the
checkpoint as a point of its own that no search can find. One node writes at a time. The client's local mode
(`QdrantClient(":memory:")`) answers alike and serves the tests; at real sizes it is 100 times slower than Edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import orjson
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from projections.search.tokens import Sparse
from projections.vectors.directories import model_slug
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
_KEYWORD, _INTEGER = models.PayloadSchemaType.KEYWORD, models.PayloadSchemaType.INTEGER
_INDEXES = {
    "item_id": _KEYWORD,
    "now": _KEYWORD,
    "scopes": _KEYWORD,
    "types": _KEYWORD,
    "valid_from": _INTEGER,
    "valid_to": _INTEGER,
    "retired": _INTEGER,
}
_WANTED = ["item_id", "version", "valid_from"]
_CHECKPOINT = point_id("", 0)  # no item has an empty id
_PAGE = 256


class ServerStore:
    """One model's points in a collection of their own. Raises VectorStoreFailed when the server refuses."""

    waits_on_network = True

    def __init__(self, client: QdrantClient, model: str, dimensions: int) -> None:
        self.model = model
        self._client = client
        self._dimensions = dimensions
        self._name = f"knowledge-{model_slug(model, dimensions)}"
        with _named(self._name):
            if not client.collection_exists(self._name):
                self._create()

    def _create(self) -> None:
        self._client.create_collection(
            self._name,
            vectors_config={_DENSE: models.VectorParams(size=self._dimensions, distance=models.Distance.COSINE)},
            sparse_vectors_config={_TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        for field, kind in _INDEXES.items():
            self._client.create_payload_index(self._name, field, kind)

    def upsert(self, points: Sequence[Point]) -> int:
        """See `port.VectorStore.upsert`."""
        fresh = newest(points)
        with _named(self._name):
            known = self._applied(fresh)
            written = [
                models.PointStruct(id=key, vector=_vectors(point), payload=payload_of(point))
                for key, point in fresh.items()
                if applied(point) >= known.get(key, 0)
            ]
            if written:
                self._client.upsert(self._name, written, wait=True)
        return len(written)

    def close_version(self, item_id: str, version: int, valid_to: int) -> None:
        """See `port.VectorStore.close_version`."""
        key = point_id(item_id, version)
        with _named(self._name):
            known = self._applied([key])
            if key in known and known[key] <= valid_to:
                self._client.set_payload(self._name, closing(valid_to), points=[key], wait=True)

    def erase(self, item_ids: Sequence[str]) -> None:
        """See `port.VectorStore.erase`."""
        if item_ids:
            theirs = models.Filter(must=[_any("item_id", item_ids)])
            with _named(self._name):
                self._client.delete(self._name, models.FilterSelector(filter=theirs), wait=True)

    def clear(self) -> None:
        """See `port.VectorStore.clear`."""
        with _named(self._name):
            self._client.delete_collection(self._name)
            self._create()

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
        queries: dict[str, models.QueryRequest] = {}
        if sparse is not None and len(sparse.indices):
            queries[_TERMS] = models.QueryRequest(
                query=_sparse(sparse), using=_TERMS, filter=admitted, limit=limit, with_payload=_WANTED
            )
        if dense is not None and dense.any():
            queries[_DENSE] = models.QueryRequest(
                query=dense.tolist(), using=_DENSE, filter=admitted, limit=limit, with_payload=_WANTED
            )
        if not queries:
            return []
        with _named(self._name):
            answers = self._client.query_batch_points(self._name, list(queries.values()))
        hits = {path: answer.points for path, answer in zip(queries, answers, strict=True)}
        return merged(_found(hits.get(_TERMS, [])), _found(hits.get(_DENSE, [])))

    def count(self) -> int:
        """See `port.VectorStore.count`."""
        with _named(self._name):
            everything = self._client.count(self._name, exact=True).count
            return everything - len(self._client.retrieve(self._name, [_CHECKPOINT], with_payload=False))

    def checkpoint(self) -> int:
        """See `port.VectorStore.checkpoint`."""
        with _named(self._name):
            records = self._client.retrieve(self._name, [_CHECKPOINT], with_payload=True)
        return int((records[0].payload or {})["checkpoint"]) if records else 0

    def set_checkpoint(self, position: int) -> None:
        """See `port.VectorStore.set_checkpoint`. Writes wait until they are applied, so order is enough."""
        if position > self.checkpoint():
            with _named(self._name):
                mark = models.PointStruct(id=_CHECKPOINT, vector={}, payload={"checkpoint": position})
                self._client.upsert(self._name, [mark], wait=True)

    def digest(self) -> str:
        """See `port.VectorStore.digest`."""
        digest = Digest(self.model)
        for record in self._records():
            vectors = record.vector if isinstance(record.vector, dict) else {}
            payload = orjson.dumps(record.payload, option=orjson.OPT_SORT_KEYS).decode()
            terms = vectors.get(_TERMS)
            indices = terms.indices if isinstance(terms, models.SparseVector) else []
            dense = np.asarray(vectors.get(_DENSE, []), np.float32)
            digest.add(str(record.id), payload, dense, np.asarray(indices, np.uint32))
        return digest.hexdigest()

    def _records(self) -> Iterator[models.Record]:
        offset: models.ExtendedPointId | None = None
        while True:
            with _named(self._name):
                page, offset = self._client.scroll(
                    self._name, limit=_PAGE, offset=offset, with_payload=True, with_vectors=True
                )
            yield from (record for record in page if str(record.id) != _CHECKPOINT)
            if offset is None:
                return

    def optimize(self) -> bool:
        """See `port.VectorStore.optimize`. A server does it by itself, in the background."""
        return False

    def close(self) -> None:
        """See `port.VectorStore.close`."""
        self._client.close()

    def _applied(self, keys: Iterable[str]) -> dict[str, int]:
        """How far each of these points has come, of those that exist."""
        records = self._client.retrieve(self._name, list(keys), with_payload=["applied"])
        return {str(record.id): int((record.payload or {})["applied"]) for record in records}


@contextmanager
def _named(collection: str) -> Iterator[None]:
    """Turn whatever the client raises into our error, naming the collection."""
    try:
        yield
    except VectorStoreFailed:
        raise
    except Exception as error:  # httpx, pydantic and the client's own exceptions have no common base
        raise VectorStoreFailed(
            f"Qdrant refused an operation on {collection}: {error}; check its address, its health and its space"
        ) from error


def _vectors(point: Point) -> dict[str, models.Vector]:
    vectors: dict[str, models.Vector] = {_DENSE: point.dense.tolist()}
    if len(point.sparse.indices):
        vectors[_TERMS] = _sparse(point.sparse)
    return vectors


def _sparse(terms: Sparse) -> models.SparseVector:
    return models.SparseVector(indices=terms.indices.tolist(), values=terms.values.tolist())


def _any(field: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def _filter(
    visible_scopes: Sequence[str], types: Sequence[str], as_of: int | None, include_retired: bool
) -> models.Filter:
    must: list[models.Condition]
    if as_of is None and not include_retired:
        must = [_any("now", visible_scopes)]
    else:
        must = [_any("scopes", visible_scopes)]
        if as_of is None:
            must.append(models.FieldCondition(key="valid_to", match=models.MatchValue(value=OPEN)))
        else:
            must.append(models.FieldCondition(key="valid_from", range=models.Range(lte=as_of)))
            must.append(models.FieldCondition(key="valid_to", range=models.Range(gt=as_of)))
        if not include_retired:
            must.append(models.FieldCondition(key="retired", match=models.MatchValue(value=0)))
    if types:
        must.append(_any("types", types))
    return models.Filter(must=must)


def _found(points: Iterable[models.ScoredPoint]) -> list[tuple[Found, float]]:
    found = []
    for point in points:
        stored = point.payload or {}
        hit = Found(stored["item_id"], stored["version"], stored["valid_from"], None, None)
        found.append((hit, point.score))
    return found

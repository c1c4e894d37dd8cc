"""Vector store on a Qdrant server or cluster.

The same points, filters and guard as `edge.py`, through the official client: one collection for each model, and the
checkpoint as a point of its own that no search can find. One node writes at a time. The client's local mode
(`QdrantClient(":memory:")`) gives the same answers and serves the tests; at real sizes it is 100 times slower than
Edge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import orjson
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from kledger.contract.words import EVERYTHING
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.store.directories import earlier_slugs, is_slug, model_slug
from projections.vectors.store.port import (
    AWAITED,
    Awaiting,
    Digest,
    Found,
    Point,
    SearchOptions,
    Whole,
    applied,
    closing,
    embedded,
    merged,
    newest,
    payload_of,
    point_id,
)
from projections.vectors.store.ties import Hits, best
from projections.vectors.tokens import Sparse

_DENSE, _TERMS = "dense", "terms"
_KEYWORD, _INTEGER = models.PayloadSchemaType.KEYWORD, models.PayloadSchemaType.INTEGER
_INDEXES = {
    "item_id": _KEYWORD,
    "now": _KEYWORD,
    "scopes": _KEYWORD,
    "types": _KEYWORD,
    "owner": _KEYWORD,
    "visibility": _KEYWORD,
    "valid_from": _INTEGER,
    "valid_to": _INTEGER,
    "retired": _INTEGER,
    "awaits": _INTEGER,
}
_WANTED = ["item_id", "version", "valid_from"]
_CHECKPOINT = point_id("", 0)  # no item has an empty id
_PREFIX = "knowledge-"
"""Of the name of each collection."""
_PAGE = 256
_MOST_SAID = 300
LEAST_SERVER = [1, 19]
"""The first Qdrant that computes document frequencies over the points that match a filter."""


class ServerStore:
    """One model's points in a collection of their own; its methods are those of `port.VectorStore`.

    Raises VectorStoreFailed when the server refuses.
    """

    waits_on_network = True

    def __init__(self, client: QdrantClient, model: str, dimensions: int, at: str = "its address") -> None:
        self.model = model
        self._client = client
        self._dimensions = dimensions
        self._name = f"{_PREFIX}{model_slug(model, dimensions)}"
        _check_version(_version(client, at))
        with _named(self._name):
            if not client.collection_exists(self._name):
                self._create()
            for earlier in earlier_slugs(model, dimensions):  # persons would not be erased in them
                if client.collection_exists(f"{_PREFIX}{earlier}"):
                    client.delete_collection(f"{_PREFIX}{earlier}")

    def _create(self) -> None:
        self._client.create_collection(
            self._name,
            vectors_config={_DENSE: models.VectorParams(size=self._dimensions, distance=models.Distance.COSINE)},
            sparse_vectors_config={_TERMS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        for field, kind in _INDEXES.items():
            self._client.create_payload_index(self._name, field, kind)

    def upsert(self, points: Sequence[Point]) -> int:
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
        key = point_id(item_id, version)
        with _named(self._name):
            known = self._applied([key])
            if key in known and known[key] <= valid_to:
                self._client.set_payload(self._name, closing(valid_to), points=[key], wait=True)

    def erase(self, item_ids: Sequence[str]) -> None:
        if item_ids:
            theirs = models.Filter(must=[_any("item_id", item_ids)])
            for name in self._of_every_model():
                with _named(name):
                    self._client.delete(name, models.FilterSelector(filter=theirs), wait=True)

    def _of_every_model(self) -> list[str]:
        """This collection and those of models that were set before: persons are erased in all of them."""
        with _named(self._name):
            names = {each.name for each in self._client.get_collections().collections}
        return [self._name, *sorted(name for name in names - {self._name} if _is_ours(name))]

    def clear(self) -> None:
        with _named(self._name):
            self._client.delete_collection(self._name)
            self._create()

    def search(
        self, options: SearchOptions, *, dense: NDArray[np.float32] | None, sparse: Sparse | None
    ) -> list[Found]:
        if not options.visible_scopes:
            return []
        admitted = _filter(options)
        requests: dict[str, tuple[models.SparseVector | list[float], models.SearchParams]] = {}
        if sparse is not None and len(sparse.indices):
            seen = _filter(SearchOptions(options.visible_scopes))
            requests[_TERMS] = _sparse(sparse), models.SearchParams(idf=models.IdfCorpusParams(corpus=seen))
        if dense is not None and dense.any():
            requests[_DENSE] = dense.tolist(), models.SearchParams(exact=True)  # a graph would link hidden points too
        if not requests:
            return []

        def request(path: str, most: int) -> models.QueryRequest:
            query, params = requests[path]
            return models.QueryRequest(
                query=query, using=path, filter=admitted, limit=most, with_payload=_WANTED, params=params
            )

        hits: dict[str, Hits] = {}
        with _named(self._name):
            answers = self._client.query_batch_points(
                self._name, [request(path, options.limit + 1) for path in requests]
            )
            for path, answer in zip(requests, answers, strict=True):

                def more(most: int, path: str = path) -> Hits:
                    return _found(self._client.query_batch_points(self._name, [request(path, most)])[0].points)

                hits[path] = best(_found(answer.points), options.limit, more)
        return merged(hits.get(_TERMS, []), hits.get(_DENSE, []))

    def read(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Whole]:
        by_key = {point_id(*version): version for version in versions}
        with _named(self._name):
            records = self._client.retrieve(self._name, list(by_key), with_payload=True, with_vectors=True)
        whole = {}
        for record in records:
            vectors = record.vector if isinstance(record.vector, dict) else {}
            terms = vectors.get(_TERMS)
            indices, values = (terms.indices, terms.values) if isinstance(terms, models.SparseVector) else ([], [])
            sparse = Sparse(np.asarray(indices, np.uint32), np.asarray(values, np.float32))
            dense = np.asarray(vectors.get(_DENSE, []), np.float32)
            whole[by_key[str(record.id)]] = Whole(record.payload or {}, sparse, dense)
        return whole

    def awaiting(self, most: int) -> list[Awaiting]:
        with _named(self._name):
            page, _ = self._client.scroll(self._name, limit=most, scroll_filter=_AWAITING, with_payload=_WANTED)
        payloads = [record.payload or {} for record in page]
        return [Awaiting(each["item_id"], each["version"], each["valid_from"]) for each in payloads]

    def count_awaiting(self) -> int:
        with _named(self._name):
            return self._client.count(self._name, count_filter=_AWAITING, exact=True).count

    def embed(self, vectors: Mapping[tuple[str, int], NDArray[np.float32] | None]) -> None:
        by_key = {point_id(*version): vector for version, vector in vectors.items()}
        with _named(self._name):
            there = list(self._applied(by_key))
            given = [
                models.PointVectors(id=key, vector={_DENSE: vector.tolist()})
                for key in there
                if (vector := by_key[key]) is not None
            ]
            if given:
                self._client.update_vectors(self._name, given, wait=True)
            for state, keys in embedded(by_key, there):
                self._client.set_payload(self._name, {"awaits": state}, points=list(keys), wait=True)

    def count(self) -> int:
        with _named(self._name):
            everything = self._client.count(self._name, exact=True).count
            return everything - len(self._client.retrieve(self._name, [_CHECKPOINT], with_payload=False))

    def checkpoint(self) -> int:
        with _named(self._name):
            records = self._client.retrieve(self._name, [_CHECKPOINT], with_payload=True)
        return int((records[0].payload or {})["checkpoint"]) if records else 0

    def set_checkpoint(self, position: int) -> None:
        """Writes return once they are applied, so their order is enough."""
        if position > self.checkpoint():
            with _named(self._name):
                mark = models.PointStruct(id=_CHECKPOINT, vector={}, payload={"checkpoint": position})
                self._client.upsert(self._name, [mark], wait=True)

    def digest(self) -> str:
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
        """A server does it by itself, in the background."""
        return False

    def close(self) -> None:
        self._client.close()

    def _applied(self, keys: Iterable[str]) -> dict[str, int]:
        """The last applied position of those of these points that exist."""
        records = self._client.retrieve(self._name, list(keys), with_payload=["applied"])
        return {str(record.id): int((record.payload or {})["applied"]) for record in records}


def _is_ours(collection: str) -> bool:
    """Whether a collection has a name that this store gives: others on the server may be somebody else's."""
    return collection.startswith(_PREFIX) and is_slug(collection.removeprefix(_PREFIX))


def _check_version(version: str) -> None:
    """Check the server's version: earlier ones ignore the filter of document frequencies and so leak hidden points."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if numbers < LEAST_SERVER:
        raise VectorStoreFailed(f"the Qdrant server is {version}: take one from {'.'.join(map(str, LEAST_SERVER))} on")


@contextmanager
def _named(collection: str) -> Iterator[None]:
    """Convert all errors of the client into VectorStoreFailed, with the collection's name."""
    try:
        yield
    except VectorStoreFailed:
        raise
    except Exception as error:  # httpx, pydantic and the client's own exceptions have no common base
        raise VectorStoreFailed(
            f"Qdrant refused an operation on {collection}: {_said(error)}; check its address, its health and its space"
        ) from error


def _version(client: QdrantClient, at: str) -> str:
    """The version of the server: the first question, so the one that meets a wrong address or key."""
    try:
        return client.info().version
    except UnexpectedResponse as error:
        key = error.status_code in (401, 403)
        advice = "put the server's key into QDRANT_API_KEY" if key else "check the address of --qdrant"
        raise VectorStoreFailed(f"what answers at {at} refuses the node: {_said(error)}; {advice}") from error
    except Exception as error:
        is_another = isinstance(getattr(error, "source", error), ValueError)  # said of an answer of another form
        wrong = "what answers there is none" if is_another else _said(error)
        raise VectorStoreFailed(f"no Qdrant server answers at {at} ({wrong}): check the address of --qdrant") from error


def _said(error: Exception) -> str:
    """What the error says, in a line."""
    return " ".join(str(error).split())[:_MOST_SAID] or repr(error)


def _vectors(point: Point) -> dict[str, models.Vector]:
    vectors: dict[str, models.Vector] = {} if point.dense is None else {_DENSE: point.dense.tolist()}
    if len(point.sparse.indices):
        vectors[_TERMS] = _sparse(point.sparse)
    return vectors


def _sparse(terms: Sparse) -> models.SparseVector:
    return models.SparseVector(indices=terms.indices.tolist(), values=terms.values.tolist())


def _any(field: str, values: Sequence[str]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


_SERVED_NOW = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="now"))])
_AWAITING = models.Filter(must=[models.FieldCondition(key="awaits", match=models.MatchValue(value=AWAITED))])


def _filter(options: SearchOptions) -> models.Filter:
    must: list[models.Condition]
    visible = options.visible_scopes
    everything = EVERYTHING in visible
    if options.as_of is None:
        must = [_SERVED_NOW if everything else _any("now", visible)]
    else:
        must = [] if everything else [_any("scopes", visible)]
        must.append(models.FieldCondition(key="valid_from", range=models.Range(lte=options.as_of)))
        must.append(models.FieldCondition(key="valid_to", range=models.Range(gt=options.as_of)))
        must.append(models.FieldCondition(key="retired", match=models.MatchValue(value=0)))
    if options.since is not None:
        must.append(models.FieldCondition(key="valid_from", range=models.Range(gt=options.since)))
    if options.types:
        must.append(_any("types", options.types))
    must += [_any(field, values) for field, values in options.only.items() if values]
    if options.versions is not None:
        made = models.MatchAny(any=list(options.versions))
        must.append(models.FieldCondition(key="valid_from", match=made))
    return models.Filter(must=must)


def _found(points: Iterable[models.ScoredPoint]) -> Hits:
    hits = []
    for point in points:
        stored = point.payload or {}
        hit = Found(stored["item_id"], stored["version"], stored["valid_from"], None, None)
        # The server's order of additions depends on all points that it holds: the last digits are noise.
        hits.append((hit, float(f"{point.score:.5g}")))
    return hits

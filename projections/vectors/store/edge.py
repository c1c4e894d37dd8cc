"""Vector store in this process, with nothing to install: Qdrant Edge.

Edge holds the interpreter's lock while it writes, optimises or searches: keep it out of any process with an event loop
that others wait for (projections/vectors/process.py is its own). Measured in processor time, both paths with filter:
0.5 ms at 10,000 items, 4.2 at 100,000. `optimize` is not worth its time: it took 6 s at 10,000 items and 176 at
100,000, and made no search faster.

There is no write-ahead log: what a crash loses is after the checkpoint, and is fed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson
import qdrant_edge as edge
from numpy.typing import NDArray

from kledger.contract.words import EVERYTHING
from projections.vectors.errors import VectorStoreFailed, reading
from projections.vectors.store.directories import discard_earlier, model_slug, read_checkpoint, replace_file
from projections.vectors.store.edge_filter import AWAITING, admitted_by, any_of, is_plain
from projections.vectors.store.edge_names import Names
from projections.vectors.store.edge_paths import HALF_A_BYTE, MANY, NO_GRAPH, Paths
from projections.vectors.store.edge_points import TERMS, Stored, ceased, frequencies_of, known, pages, terms_of
from projections.vectors.store.frequencies import STEPS, Counted, stored
from projections.vectors.store.kept_frequencies import drop, keep
from projections.vectors.store.port import (
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
    now_readers,
    payload_of,
    point_id,
)
from projections.vectors.store.ties import Hits, best
from projections.vectors.tokens import Sparse

_DENSE = "dense"
_KEYWORD, _INTEGER = edge.PayloadSchemaType.Keyword, edge.PayloadSchemaType.Integer
# An index of numbers is two, and most fields are asked for in one way: without the other a point takes 0.6 KB less.
_EQUAL = edge.IntegerIndexParams(lookup=True, range=False)
_ORDERED = edge.IntegerIndexParams(lookup=False, range=True)
# Edge 0.9 matches a boolean as if it were a number and finds nothing, so flags are stored as 0 and 1.
_INDEXES: dict[str, edge.PayloadSchemaType | edge.IntegerIndexParams] = {
    "item_id": _KEYWORD,
    "now": _KEYWORD,
    "scopes": _KEYWORD,
    "types": _KEYWORD,
    "owner": _KEYWORD,
    "visibility": _KEYWORD,
    "valid_from": _INTEGER,
    "valid_to": _ORDERED,
    "retired": _EQUAL,
    "awaits": _EQUAL,
}
_WANTED = edge.PayloadSelector.Include(["item_id", "version", "valid_from"])
# A byte for each dimension, by a rotation that depends on no vector: what others keep moves no score. Measured at
# 60,000 points: 3.3 ms a search where 32-bit floats take 23.4; scores differ by up to 0.002.
_STORED = edge.VectorStorageDatatype.Turbo8
# There is one segment, so a pool of threads has one task at a time: with one thread the caller does it, without a turn
# of the scheduler, and without seven idle threads that look for work beside each search.
_THREADS = 1
# Exact search: an approximate one would use a graph that links points which the caller may not see.
_EXACT = edge.SearchParams(exact=True)
_LEAST_KEPT = 2_000  # changed points after which the frequencies are written to their file again


class EdgeStore:
    """One model's points in a folder of their own; its methods are those of `port.VectorStore`.

    Raises VectorStoreFailed when the folder does not load.
    """

    waits_on_network = False

    def __init__(self, directory: Path, model: str, dimensions: int) -> None:
        self.model = model
        self._dimensions = dimensions
        self._folder = directory / model_slug(model, dimensions)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = read_checkpoint(self._folder)
        self._shard = self._open()
        # `_uncounted`: changes of points that the file of frequencies lacks; `_written`: the last position of any
        self._frequencies, self._uncounted = frequencies_of(self._shard, self._folder)
        self._names = Names(self._named)
        self._paths = Paths(dimensions)
        self._written = 0
        discard_earlier(directory, model, dimensions)

    def _open(self) -> edge.EdgeShard:
        files = self._folder / "shard"
        if self._checkpoint == 0:
            # nothing is durable yet, and a folder left incomplete by a crash would not load
            drop(self._folder)
            shutil.rmtree(files, ignore_errors=True)
            return self._create(files)
        try:
            return edge.EdgeShard.load(str(files), self._config())
        except Exception as error:  # the bindings raise bare exceptions of many kinds
            raise VectorStoreFailed(
                f"the vectors in {files} do not load ({error}); delete {self._folder} to have them built anew"
            ) from error

    def _config(self) -> edge.EdgeConfig:
        return edge.EdgeConfig(
            vectors={
                _DENSE: edge.EdgeVectorParams(
                    size=self._dimensions,
                    distance=edge.Distance.Cosine,
                    datatype=_STORED,
                    quantization_config=HALF_A_BYTE,
                    hnsw_config=NO_GRAPH,
                )
            },
            sparse_vectors={TERMS: edge.EdgeSparseVectorParams()},
            max_search_threads=_THREADS,
            payload_memory=edge.Memory.Cold,
            wal_enabled=False,
        )

    def _create(self, files: Path) -> edge.EdgeShard:
        files.mkdir(parents=True)
        shard = edge.EdgeShard.create(str(files), self._config())
        for field, kind in _INDEXES.items():
            shard.update(edge.UpdateOperation.create_field_index(field, kind))
        return shard

    def upsert(self, points: Sequence[Point]) -> int:
        fresh = newest(points)
        stored_before = self._stored(fresh)
        written: list[edge.Point] = []
        payloads: dict[str, dict[str, object]] = {}
        counted: list[Counted] = []
        for key, point in fresh.items():
            before = stored_before.get(key)
            if before is not None and applied(point) < before.applied:
                continue
            payload = payload_of(point)
            if before is not None and before.now and sorted(before.now) != (payload["now"] or before.now):
                drop(self._folder)  # a start counts what began and what ended since, not that others may read it
            written.append(edge.Point(id=key, vector=_vectors(point), payload=payload))
            payloads[key] = payload
            counted += [*ceased(before), Counted(now_readers(payload), point.sparse.indices, 1)]
        if written:
            self._shard.update(edge.UpdateOperation.upsert_points(written))
            self._names.learn(payloads)
            self._changed(counted, max(map(applied, fresh.values())))
        return len(written)

    def close_version(self, item_id: str, version: int, valid_to: int) -> None:
        key = point_id(item_id, version)
        before = self._stored([key]).get(key)
        if before is not None and before.applied <= valid_to:
            self._shard.update(edge.UpdateOperation.set_payload([key], closing(valid_to)))
            self._changed(ceased(before), valid_to)

    def erase(self, item_ids: Sequence[str]) -> None:
        if item_ids:
            drop(self._folder)
            theirs = edge.Filter(must=[any_of("item_id", item_ids)])
            for page in pages(self._shard, theirs, ["now"], [TERMS]):
                self._changed([one for record in page for one in ceased(known(record))], 0)
                self._names.drop(record.id for record in page)
            self._shard.update(edge.UpdateOperation.delete_points_by_filter(theirs))

    def clear(self) -> None:
        replace_file(self._folder / "checkpoint", "0")  # first, so that a crash from here on leads to a rebuild
        self._shard.close()
        self._checkpoint = 0
        self._shard = self._open()
        self._frequencies.clear()
        self._names.clear()
        self._written = self._uncounted = 0

    def search(
        self, options: SearchOptions, *, dense: NDArray[np.float32] | None, sparse: Sparse | None
    ) -> list[Found]:
        if not options.visible_scopes:
            return []
        admitted = admitted_by(options)
        requests: dict[str, tuple[edge.Query, float]] = {}
        if sparse is not None and len(sparse.indices):
            weighed = self._frequencies.weigh(sparse, options.visible_scopes)
            requests[TERMS] = edge.Query.Nearest(_sparse(weighed.sparse), using=TERMS), weighed.scale
        if dense is not None and dense.any():
            requests[_DENSE] = edge.Query.Nearest(dense.tolist(), using=_DENSE), 1.0
        if not requests:
            return []

        def request(query: edge.Query, most: int) -> edge.QueryRequest:
            return edge.QueryRequest(most, query=query, filter=admitted, params=_EXACT)

        hits: dict[str, Hits] = {}
        with reading():
            asked = {path: request(query, options.limit + 1) for path, (query, _) in requests.items()}
            answers = self._answers(asked, options)
            for path, (query, scale) in requests.items():

                def more(most: int, query: edge.Query = query, scale: float = scale) -> Hits:
                    return self._names.hits(self._shard.query(request(query, most)), scale)

                hits[path] = best(self._names.hits(answers[path], scale), options.limit, more)
        return merged(hits.get(TERMS, []), hits.get(_DENSE, []))

    def _answers(
        self, asked: Mapping[str, edge.QueryRequest], options: SearchOptions
    ) -> Mapping[str, Sequence[edge.ScoredPoint]]:
        """The hits of each path."""
        if self._frequencies.documents(EVERYTHING) < MANY:
            batch = edge.QueryBatchRequest(list(asked.values()))
            return dict(zip(asked, self._shard.query_batch(batch), strict=True))
        coarse = _DENSE if _DENSE in asked and is_plain(options) else None  # other filters cost more than vectors
        most_admitted = coarse is not None and self._admits_most(options.visible_scopes)
        return self._paths.answers(self._shard, asked, coarse, most_admitted=most_admitted)

    def _admits_most(self, readers: Sequence[str]) -> bool:
        """Whether one of these readers alone finds three of four points, superseded versions included."""
        points = self._shard.count(edge.CountRequest(exact=False))  # an exact count takes 5 ms at 100,000
        return 4 * max(map(self._frequencies.documents, readers)) >= 3 * points

    def read(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Whole]:
        by_key = {point_id(*version): version for version in versions}
        with reading():
            records = self._shard.retrieve(list(by_key), with_payload=True, with_vector=True)
        whole = {}
        for record in records:
            vectors = record.vector if isinstance(record.vector, dict) else {}
            terms = vectors.get(TERMS)
            indices, values = (terms.indices, terms.values) if isinstance(terms, edge.SparseVector) else ([], [])
            sparse = Sparse(np.asarray(indices, np.uint32), np.asarray(values, np.float32) / np.float32(STEPS))
            dense = np.asarray(vectors.get(_DENSE, []), np.float32)
            whole[by_key[str(record.id)]] = Whole(record.payload or {}, sparse, dense)
        return whole

    def awaiting(self, most: int) -> list[Awaiting]:
        page, _ = self._shard.scroll(edge.ScrollRequest(limit=most, filter=AWAITING, with_payload=_WANTED))
        payloads = [record.payload or {} for record in page]
        return [Awaiting(each["item_id"], each["version"], each["valid_from"]) for each in payloads]

    def count_awaiting(self) -> int:
        return self._shard.count(edge.CountRequest(filter=AWAITING, exact=True))

    def embed(self, vectors: Mapping[tuple[str, int], NDArray[np.float32] | None]) -> None:
        by_key = {point_id(*version): vector for version, vector in vectors.items()}
        there = list(self._stored(by_key))
        given = [
            edge.PointVectors(key, {_DENSE: vector.tolist()}) for key in there if (vector := by_key[key]) is not None
        ]
        if given:
            self._shard.update(edge.UpdateOperation.update_vectors(given))
        for state, keys in embedded(by_key, there):
            self._shard.update(edge.UpdateOperation.set_payload(list(keys), {"awaits": state}))

    def count(self) -> int:
        return self._shard.count(edge.CountRequest(exact=True))

    def checkpoint(self) -> int:
        return self._checkpoint

    def set_checkpoint(self, position: int) -> None:
        if position > self._checkpoint:
            self._shard.flush()
            replace_file(self._folder / "checkpoint", str(position))
            self._checkpoint = position
            if self._uncounted > max(_LEAST_KEPT, self._frequencies.documents(EVERYTHING) // 8):
                self._keep_frequencies()

    def _changed(self, counted: Sequence[Counted], position: int) -> None:
        self._frequencies.count(counted)
        self._written = max(self._written, position)
        self._uncounted += len(counted)

    def _keep_frequencies(self) -> None:
        """Write them to their file, unless they count changes after the checkpoint."""
        if self._uncounted and self._written <= self._checkpoint:
            keep(self._folder, self._frequencies, self._checkpoint)
            self._uncounted = 0

    def digest(self) -> str:
        digest = Digest(self.model)
        for page in pages(self._shard, None, True, True):
            for record in page:
                payload = orjson.dumps(record.payload, option=orjson.OPT_SORT_KEYS).decode()
                dense = record.vector.get(_DENSE, []) if isinstance(record.vector, dict) else []
                digest.add(str(record.id), payload, np.asarray(dense, np.float32), terms_of(record))
        return digest.hexdigest()

    def optimize(self) -> bool:
        """Blocks all other requests: 1.8 s at 9,000 items."""
        return self._shard.optimize()

    def close(self) -> None:
        self._shard.flush()
        self._keep_frequencies()
        self._shard.close()

    def _named(self, keys: Sequence[edge.PointId]) -> list[edge.Record]:
        return self._shard.retrieve(list(keys), with_payload=_WANTED, with_vector=False)

    def _stored(self, keys: Iterable[str]) -> dict[str, Stored]:
        """The state of those of these points that exist: last applied position, readers, terms."""
        with reading():
            records = self._shard.retrieve(list(keys), with_payload=["applied", "now"], with_vector=[TERMS])
        return {str(record.id): known(record) for record in records}


def _vectors(point: Point) -> dict[str, edge.NamedVector]:
    vectors: dict[str, edge.NamedVector] = {} if point.dense is None else {_DENSE: point.dense.tolist()}
    if len(point.sparse.indices):
        vectors[TERMS] = _sparse(stored(point.sparse))
    return vectors


def _sparse(terms: Sparse) -> edge.SparseVector:
    return edge.SparseVector(terms.indices.tolist(), terms.values.tolist())

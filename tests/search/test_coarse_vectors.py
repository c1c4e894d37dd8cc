"""A search among many points reads half a byte of each number first: what it finds is what an exact search finds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge
from numpy.typing import NDArray

from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.edge_paths import COARSE, HALF_A_BYTE, MOST_EXACT, Hits, Paths, margin
from projections.vectors.store.port import Point
from projections.vectors.tokens import document_terms

Vectors = NDArray[np.float32]

EXACT = edge.SearchParams(exact=True)
ITEMS = 1_000


def unit(rows: NDArray[np.floating]) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def of_few_numbers(chance: np.random.Generator, rows: int, dimensions: int, few: int) -> Vectors:
    """Like short hashed texts: nearly all zeros."""
    out = np.zeros((rows, dimensions))
    for row in out:
        row[chance.choice(dimensions, few, replace=False)] = chance.choice([-1, 1], few)
    return unit(out)


def kinds(dimensions: int, rows: int) -> dict[str, Vectors]:
    chance = np.random.default_rng(5)
    spread = chance.normal(size=(rows, dimensions))
    return {
        "one number": of_few_numbers(chance, rows, dimensions, 1),
        "two numbers": of_few_numbers(chance, rows, dimensions, 2),
        "nine numbers": of_few_numbers(chance, rows, dimensions, 9),
        "spread": unit(spread),
        "positive": unit(np.abs(spread) + 1),
        "near each other": unit(spread[0] + 0.3 * spread),
        "some great numbers": unit(chance.standard_t(1.2, size=(rows, dimensions))),
    }


@contextmanager
def shard_of(folder: Path, vectors: Vectors, readers: Sequence[str] = ("public",)) -> Iterator[edge.EdgeShard]:
    config = edge.EdgeConfig(
        vectors={
            "dense": edge.EdgeVectorParams(
                size=vectors.shape[1],
                distance=edge.Distance.Cosine,
                datatype=edge.VectorStorageDatatype.Turbo8,
                quantization_config=HALF_A_BYTE,
            )
        },
        wal_enabled=False,
    )
    folder.mkdir()
    shard = edge.EdgeShard.create(str(folder), config)
    points = [
        edge.Point(id=number, vector={"dense": vector.tolist()}, payload={"now": [readers[number % len(readers)]]})
        for number, vector in enumerate(vectors)
    ]
    shard.update(edge.UpdateOperation.upsert_points(points))
    with closing(shard):
        yield shard


def scores(shard: edge.EdgeShard, query: Vectors, params: edge.SearchParams, most: int) -> dict[object, float]:
    nearest_to = edge.Query.Nearest(query.tolist(), using="dense")
    return {hit.id: hit.score for hit in shard.query(edge.QueryRequest(most, query=nearest_to, params=params))}


def off_by_most(shard: edge.EdgeShard, queries: Sequence[Vectors], most: int) -> float:
    """The greatest difference between coarse and exact scores, which are those of the same points."""
    worst = 0.0
    for query in queries:
        exact, coarse = (scores(shard, query, params, most) for params in (EXACT, COARSE))
        assert exact.keys() == coarse.keys()
        worst = max(worst, *(abs(exact[key] - coarse[key]) for key in exact))
    return worst


@pytest.mark.parametrize("dimensions", [256, 512])
def test_a_coarse_score_is_off_by_less_than_the_margin_whatever_the_vectors(tmp_path: Path, dimensions: int) -> None:
    for number, (kind, vectors) in enumerate(kinds(dimensions, 200).items()):
        with shard_of(tmp_path / str(number), vectors) as shard:
            queries = [rows[each] for rows in kinds(dimensions, 200).values() for each in range(2)]
            off = off_by_most(shard, queries, len(vectors))
            assert 0 < off < margin(dimensions), kind


class Counting:
    """A shard that counts its questions."""

    def __init__(self, shard: edge.EdgeShard) -> None:
        self._shard = shard
        self.asked = 0

    def query(self, request: edge.QueryRequest) -> list[edge.ScoredPoint]:
        self.asked += 1
        return self._shard.query(request)


def found(hits: Hits) -> list[tuple[object, float]]:
    return sorted(((hit.id, hit.score) for hit in hits), key=lambda hit: (-hit[1], str(hit[0])))


@pytest.fixture
def paths() -> Paths:
    return Paths(256)


def hits_of(paths: Paths, shard: edge.EdgeShard | Counting, request: edge.QueryRequest, most_admitted: bool) -> Hits:
    return paths.nearest(shard, request, most_admitted=most_admitted)  # type: ignore[arg-type]  # it counts


def near(vector: Vectors, limit: int, admitted: edge.Filter | None = None) -> edge.QueryRequest:
    nearest_to = edge.Query.Nearest(vector.tolist(), using="dense")
    return edge.QueryRequest(limit, query=nearest_to, filter=admitted, params=EXACT)


@pytest.mark.parametrize("most_admitted", [True, False])
def test_the_hits_are_those_of_an_exact_search_to_the_last_digit(
    tmp_path: Path, paths: Paths, most_admitted: bool
) -> None:
    chance = np.random.default_rng(8)
    vectors = unit(chance.normal(size=(ITEMS, 256)))
    mine = edge.Filter(must=[edge.FieldCondition("now", match=edge.MatchValue("public"))])
    settled = 0
    with shard_of(tmp_path / "shard", vectors, ["public", "public", "public", "user:mei"]) as shard:
        for query in [*unit(vectors[:20] + vectors[20:40]), *unit(chance.normal(size=(10, 256)))]:
            counting, request = Counting(shard), near(query, 7, mine)
            assert found(hits_of(paths, counting, request, most_admitted)) == found(shard.query(request))
            settled += counting.asked == 2
    assert settled >= 10


def test_where_hidden_points_take_the_place_of_the_few_that_seem_enough_more_are_compared(
    tmp_path: Path, paths: Paths
) -> None:
    """Twenty hidden ones are the nearest, twelve that the caller may see come next, all others are far away."""
    chance = np.random.default_rng(10)
    query, *others = unit(chance.normal(size=(ITEMS, 256)))
    near_by = [0.8] * 20 + [0.5] * 12 + [0.0] * (ITEMS - 33)
    vectors = unit(np.stack([part * query + (1 - part) * other for part, other in zip(near_by, others, strict=True)]))
    readers = ["user:mei"] * 20 + ["public"] * (ITEMS - 21)
    request = near(query, 7, edge.Filter(must=[edge.FieldCondition("now", match=edge.MatchValue("public"))]))
    with shard_of(tmp_path / "shard", vectors, readers) as shard:
        counting = Counting(shard)
        assert found(hits_of(paths, counting, request, True)) == found(shard.query(request))
    assert counting.asked == 3


def test_what_is_nearer_than_the_margin_is_compared_by_all_of_its_bytes(tmp_path: Path, paths: Paths) -> None:
    """All are nearly the same: the coarse search cannot tell which are the nearest, and is soon asked seldom."""
    chance = np.random.default_rng(9)
    vectors = unit(np.ones(256) + 0.02 * chance.normal(size=(ITEMS, 256)))
    with shard_of(tmp_path / "shard", vectors) as shard:
        counting = Counting(shard)
        for number in range(4 * MOST_EXACT):
            request = near(vectors[number], 5)
            assert found(hits_of(paths, counting, request, True)) == found(shard.query(request))
    assert 4 * MOST_EXACT < counting.asked < 4 * MOST_EXACT + 2 * 10


def test_equal_vectors_do_not_hide_each_other(tmp_path: Path, paths: Paths) -> None:
    vectors = unit(np.random.default_rng(2).normal(size=(ITEMS, 256)))
    vectors[:200] = vectors[0]
    request = near(vectors[0], 5)
    with shard_of(tmp_path / "shard", vectors) as shard:
        hits = hits_of(paths, shard, request, True)
        assert [hit.score for hit in hits] == [hit.score for hit in shard.query(request)]


def text_vector(number: int, revised: bool = False) -> Vectors:
    made: Vectors = unit(np.random.default_rng(number + 100_000 * revised).normal(size=(1, 256)))[0]
    return made


def point(number: int, dense: Vectors | None) -> Point:
    return Point(
        item_id=f"item-{number}",
        version=1,
        position=number + 1,
        scopes=["public"],
        types=["fact"],
        owner="user:mei",
        dense=dense,
        sparse=document_terms(f"word{number}", ""),
    )


def test_half_a_byte_follows_its_vector_through_writes_a_kill_and_restarts(tmp_path: Path) -> None:
    """Written, written over, embedded later, erased; what a kill loses is fed again."""
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -9
    queries = [text_vector(number, number < 20) for number in (0, 19, 20, 299, 340, 399, 450)]
    with closing(EdgeStore(tmp_path, "model", 256)) as store:
        store.upsert([point(number, text_vector(number)) for number in range(200, 400)])
        store.upsert([point(number, text_vector(number, revised=True)) for number in range(20)])
        assert off_by_most(store._shard, queries, 1_000) < margin(256)
        store.upsert([point(number, None) for number in range(400, 500)])
        store.embed({(f"item-{number}", 1): text_vector(number) for number in range(400, 480)})
        store.erase([f"item-{number}" for number in range(50, 90)])
        store.upsert([point(number, text_vector(number)) for number in range(500, 540)])
        assert off_by_most(store._shard, queries, 1_000) < margin(256)
        store.set_checkpoint(600)
    with closing(EdgeStore(tmp_path, "model", 256)) as store:
        assert off_by_most(store._shard, queries, 1_000) < margin(256)
        assert len(scores(store._shard, queries[0], COARSE, 1_000)) == 480  # of those that have a vector
        for query in queries:
            assert max(scores(store._shard, query, COARSE, 1).values()) > 1 - margin(256)


_KILLED = """
import os, signal, sys
from pathlib import Path
from projections.vectors.store.edge import EdgeStore
from tests.search.test_coarse_vectors import point, text_vector

store = EdgeStore(Path(sys.argv[1]), "model", 256)
store.upsert([point(number, text_vector(number)) for number in range(200)])
store.set_checkpoint(200)
store.upsert([point(number, text_vector(number)) for number in range(200, 337)])
store.upsert([point(number, text_vector(number, revised=True)) for number in range(20)])
os.kill(os.getpid(), signal.SIGKILL)
"""

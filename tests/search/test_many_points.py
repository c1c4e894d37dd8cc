"""Among many points the engine is asked in another way, and answers the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kledger.contract.words import EVERYTHING
from projections.vectors.embedding.hashed import DIMENSIONS, MODEL, hashed_vectors, query_vector
from projections.vectors.store import edge as edge_store
from projections.vectors.store import edge_paths
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Found, Point, SearchOptions
from projections.vectors.tokens import document_terms, query_terms

WORDS = [
    "lamp",
    "glaze",
    "kiln",
    "river",
    "stone",
    "bridge",
    "moss",
    "violet",
    "copper",
    "engine",
    "harbour",
    "signal",
    "winter",
    "orchard",
]
ITEMS = 400
HIDDEN = "a secret furnace of the night watch"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStore]:
    """Nearly all is public; some is one user's, some superseded, some says the same; what is hidden says one thing."""
    random = Random(4)
    texts = [" ".join(random.choices(WORDS, k=random.randint(2, 9))) for _ in range(ITEMS)]
    texts[40:60] = ["lamp and glaze"] * 20
    hidden = range(300, 380)
    for number in hidden:
        texts[number] = f"{HIDDEN} {number}"
    vectors = hashed_vectors(texts)
    points = [
        Point(
            item_id=f"item-{number}",
            version=1,
            position=number + 1,
            scopes=["user:mei"] if number in hidden else ["public", f"user:u{number % 5}"],
            types=["fact"],
            owner="user:mei",
            dense=vectors[number],
            sparse=document_terms(text, ""),
            valid_to=ITEMS + 1 if number % 29 == 0 else None,
        )
        for number, text in enumerate(texts)
    ]
    with closing(EdgeStore(Path(tmp_path_factory.mktemp("store")), MODEL, DIMENSIONS)) as made:
        made.upsert(points)
        yield made


def found(store: EdgeStore, query: str, options: SearchOptions) -> list[Found]:
    return store.search(options, dense=query_vector(query), sparse=query_terms(query))


@pytest.mark.parametrize(
    "query", ["lamp glaze", HIDDEN, "copper harbour signal", "moss", "winter orchard by the river"]
)
@pytest.mark.parametrize("limit", [1, 7, 20])
def test_paths_beside_each_other_find_what_one_batch_finds(
    store: EdgeStore, monkeypatch: pytest.MonkeyPatch, query: str, limit: int
) -> None:
    asked = [
        SearchOptions(["public"], (), limit),
        SearchOptions([EVERYTHING], (), limit),
        SearchOptions(["user:mei"], (), limit),
        SearchOptions(["user:u1", "public"], ["fact"], limit),
        SearchOptions(["public"], (), limit, as_of=200),
    ]
    few = [found(store, query, options) for options in asked]
    monkeypatch.setattr(edge_store, "MANY", 1)
    assert [found(store, query, options) for options in asked] == few
    assert few[0]


def test_hits_that_hidden_points_have_crowded_out_are_asked_for_again(
    store: EdgeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest to this query are hidden: nothing that is found over all points may be found by others."""
    monkeypatch.setattr(edge_store, "MANY", 1)
    monkeypatch.setattr(edge_paths, "_AS_MANY", 3)
    asked = []
    nearest = edge_paths.Paths.nearest

    def counted(paths: edge_paths.Paths, *given: Any, most_admitted: bool) -> edge_paths.Hits:
        asked.append(most_admitted)
        return nearest(paths, *given, most_admitted=most_admitted)

    monkeypatch.setattr(edge_paths.Paths, "nearest", counted)
    options = SearchOptions(["public"], (), 20)
    hits = store.search(options, dense=query_vector(HIDDEN), sparse=None)
    assert asked == [True]
    assert len(hits) == 20
    assert not {each.item_id for each in hits} & {f"item-{number}" for number in range(300, 380)}

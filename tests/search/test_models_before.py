"""Vectors of a model that was set before: they stay while they fit the log and the view, and no longer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.vectors.backlog import Text
from projections.vectors.feed import VectorFeed
from projections.vectors.on_disk import keep_within
from projections.vectors.renewal import renew
from projections.vectors.store.directories import model_slug
from projections.vectors.store.port import Awaiting, Point
from projections.vectors.tokens import document_terms
from projections.vectors.wire import EmbeddingModel, Settings
from tests.patience import PATIENCE

BEFORE = EmbeddingModel(base_url="http://127.0.0.1:9/v1", api_key="none", model="before", dimensions=64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the model before left, as of position 50."""
    folder = tmp_path / model_slug("before", 64)
    (folder / "shard").mkdir(parents=True)
    (folder / "checkpoint").write_text("50")
    return folder


@pytest.mark.parametrize("now", [None, BEFORE], ids=["another model", "the same"])
def test_vectors_stay_with_a_log_that_has_all_that_they_have(
    folder: Path, tmp_path: Path, now: EmbeddingModel | None
) -> None:
    keep_within(Settings(str(tmp_path), embedding=now), 50)
    assert (folder / "checkpoint").read_text() == "50"


@pytest.mark.parametrize("holds", ["50", "", "many"])
@pytest.mark.parametrize("at", [None, "http://127.0.0.1:9"], ids=["Edge", "a server"])
def test_vectors_of_another_model_that_go_beyond_the_log_or_say_nothing_are_gone_before_it_grows(
    folder: Path, tmp_path: Path, holds: str, at: str | None
) -> None:
    (folder / "checkpoint").write_text(holds)
    keep_within(Settings(str(tmp_path), qdrant_url=at), 49)
    assert not folder.exists()


async def test_vectors_that_begin_anew_take_those_of_other_models_with_them(folder: Path, tmp_path: Path) -> None:
    view = View(Instance(open_view(None)))
    feed = VectorFeed(view, Settings(str(tmp_path)), "default")
    feed.begin_within(50)
    await feed.start()
    feed.will_begin_anew()
    await feed.begin_anew()
    await feed.close()
    view.close()
    assert not folder.exists()


async def test_vectors_that_are_renewed_on_a_server_leave_none_of_edge_behind(folder: Path, tmp_path: Path) -> None:
    view = View(Instance(open_view(None)))
    feed = VectorFeed(view, Settings(str(tmp_path), qdrant_url="http://127.0.0.1:9"), "default")
    erased: list[str] = []

    class Client:
        async def erase(self, item_ids: list[str]) -> None:
            erased.extend(item_ids)

    feed._client = Client()  # type: ignore[assignment]  # a server is not part of the tests
    await renew(feed, view, tmp_path, ["hers"])
    assert erased == ["hers"]
    assert not folder.exists()
    view.close()


async def test_vectors_that_are_renewed_on_a_server_wait_for_what_is_being_embedded(tmp_path: Path) -> None:
    """Else its embedding would be kept after those of the person were removed, for good."""
    view = View(Instance(open_view(None)))
    feed = VectorFeed(view, Settings(str(tmp_path), qdrant_url="http://127.0.0.1:9"), "default")
    embedding, go_on, kept = asyncio.Event(), asyncio.Event(), list[str]()

    class Client:
        async def erase(self, item_ids: list[str]) -> None:
            """Erase them."""

        async def awaiting(self, _most: int) -> list[Awaiting]:
            return [] if kept else [Awaiting("hers", 1, 1)]

        async def embed(self, texts: list[Text]) -> None:
            embedding.set()
            await go_on.wait()
            kept.extend(item for item, *_ in texts)

        async def embeddings(self) -> dict[str, Any]:
            return {"awaiting": 1 - len(kept), "trouble": None, "calls": 0, "missed": 0}

    feed._client = Client()  # type: ignore[assignment]  # as above
    running = asyncio.create_task(feed.backlog.run())
    await asyncio.wait_for(embedding.wait(), PATIENCE)
    renewing = asyncio.create_task(renew(feed, view, tmp_path, ["hers"]))
    await asyncio.wait([renewing], timeout=0.3)
    assert not renewing.done()
    go_on.set()
    await asyncio.wait_for(renewing, PATIENCE)
    assert kept == ["hers"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    view.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect", "ignore:Local mode performs exact")
def test_an_item_is_erased_in_the_collections_of_every_model() -> None:
    from qdrant_client import QdrantClient  # it takes a second, which collecting need not spend

    from projections.vectors.store.server import ServerStore

    client = QdrantClient(":memory:")
    before, now = ServerStore(client, "before", 64), ServerStore(client, "now", 8)
    for store in (before, now):
        store.upsert(
            [Point(item, 1, 1, ["public"], ["tool"], "user:ann", None, document_terms(item, "")) for item in "ab"]
        )
    now.erase(["a"])
    assert (before.count(), now.count()) == (1, 1)
    client.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
def test_a_collection_of_somebody_else_keeps_what_it_has() -> None:
    from qdrant_client import QdrantClient, models

    from projections.vectors.store.server import ServerStore

    client = QdrantClient(":memory:")
    client.create_collection("knowledge-base", models.VectorParams(size=2, distance=models.Distance.DOT))
    client.upsert("knowledge-base", [models.PointStruct(id=1, vector=[1.0, 0.0], payload={"item_id": "a"})])
    ServerStore(client, "now", 8).erase(["a"])
    assert client.count("knowledge-base").count == 1
    client.close()

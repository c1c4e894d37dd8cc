"""Damaged vectors do not pass as well: health states it, verify finds it, rebuild mends it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import qdrant_edge as edge
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from projections.vectors.canary import CANARIES
from projections.vectors.client import VectorClient
from projections.vectors.embedding.hashed import DIMENSIONS, MODEL, hashed_vectors
from projections.vectors.errors import VectorsDamaged, VectorStoreFailed
from projections.vectors.examination import differences
from projections.vectors.on_disk import keep_within, mark_of
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.points import points_of, text_of
from projections.vectors.store.port import SearchOptions, point_id
from projections.vectors.tokens import query_terms
from projections.vectors.wire import EmbeddingModel, Settings, Store
from tests.examples import tries
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.openai_server import embedding_endpoint

ITEMS = 60
_NAMES = ("config", "version", "state", "json", "checkpoint")
READERS_INDEX = "now-map"
"""The index of who reads an item now: zeroed, the store loads, holds every point, and finds none."""


def files_of_points(data: Path, named: str = "") -> list[Path]:
    """The files in which a store holds points: vectors, payloads and their indexes."""
    found = [
        path
        for path in sorted(data.rglob("*"))
        if path.is_file() and "shard" in path.parts and path.stat().st_size and named in str(path)
    ]
    assert found
    return [path for path in found if not any(name in path.name for name in _NAMES)]


def zero(files: Sequence[Path]) -> None:
    """Overwrite files with zeros, as long as they are."""
    for path in files:
        with path.open("r+b") as file:
            file.write(b"\0" * path.stat().st_size)
            file.flush()
            os.fsync(file.fileno())


def health(node: RunningNode) -> dict[str, Any]:
    told: dict[str, Any] = httpx.get(f"{node.url}/health/ready", timeout=30).json()
    return told


def found(node: RunningNode) -> int:
    asked = {"q": "bread oven", "top_k": "100", "record": "false"}
    named = {"X-Ledger-User": "ann"}  # whoever says nothing reads all, and needs no index of readers
    answer = httpx.get(f"{node.url}/api/knowledge/search", params=asked, headers=named, timeout=60)
    return len(answer.json().get("results", ()))


def saved(node: RunningNode) -> None:
    with node.client() as ledger:
        bread = [
            {"task": f"bake {n}", "content": f"bread number{n} in an oven", "types": ["tool"]} for n in range(ITEMS)
        ]
        ledger.save_many([{**item, "scopes": ["public"]} for item in bread])
        caught_up(ledger)


@pytest.mark.parametrize("named", ["", READERS_INDEX])
def test_zeroed_files_of_a_stopped_node_are_stated_and_mended(named: str, tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        saved(node)
        with node.client() as ledger:
            sound = result_of(ledger, "verify")
        assert sound["equal"]
        assert sound["vectors"]["equal"]
        assert sound["vectors"]["count"] == sound["vectors"]["versions"] == ITEMS
        assert found(node) == ITEMS
        assert node.stop() == 0
    zero(files_of_points(tmp_path / "node", named))
    with running(tmp_path / "node") as node, node.client() as ledger:
        if named:
            assert found(node) == 0, "the store loads and finds nothing"
        until(lambda: health(node)["status"] == "degraded", "health states the damage")
        assert any("vector" in reason for reason in health(node)["reasons"])
        assert not result_of(ledger, "verify")["equal"]
        rebuilt = result_of(ledger, "rebuild")
        assert rebuilt["vectors"]["made_anew"]
        until(lambda: health(node)["status"] == "ready", "health is good again")
        assert found(node) == ITEMS
        assert result_of(ledger, "verify")["equal"]


def test_vectors_that_go_beyond_the_log_are_made_anew_at_the_start(tmp_path: Path) -> None:
    """Those of another node, or of a log that was cut: an item at a position that they have would not be found."""
    with running(tmp_path / "other") as node:
        saved(node)
    with running(tmp_path / "node") as node, node.client() as ledger:
        ledger.save("paint", "striped", ["tool"], scopes=["public"])
    shutil.rmtree(tmp_path / "node" / "vectors")
    shutil.copytree(tmp_path / "other" / "vectors", tmp_path / "node" / "vectors")
    with running(tmp_path / "node") as node, node.client() as ledger:
        after = ledger.save("zebra crossing", "striped white", ["tool"], scopes=["public"])
        assert after["position"] < ITEMS
        assert ledger.search("zebra crossing", top_k=1)["results"][0]["id"] == after["id"]
        assert result_of(ledger, "verify")["equal"]


NO_POSITION = {"nothing": b"", "zeros": b"\0\0", "a word": b"soon", "a long number": b"9" * 10_000}


def no_position(checkpoint: Path, holds: str) -> None:
    """Have a checkpoint say nothing of a position."""
    checkpoint.unlink()
    checkpoint.write_bytes(NO_POSITION[holds]) if holds in NO_POSITION else checkpoint.mkdir()


@pytest.mark.parametrize("holds", [*NO_POSITION, "a directory"])
def test_whatever_a_checkpoint_holds_that_is_no_position_its_vectors_are_removed_and_to_be_made_anew(
    holds: str, tmp_path: Path
) -> None:
    settings = Settings(directory=str(tmp_path))
    store = EdgeStore(tmp_path, MODEL, DIMENSIONS)
    store.set_checkpoint(ITEMS)
    store.close()
    keep_within(settings, head=ITEMS)
    (checkpoint,) = tmp_path.rglob("checkpoint")
    assert not mark_of(settings).exists()
    no_position(checkpoint, holds)
    with capture_logs() as said:
        keep_within(settings, head=ITEMS)
    assert not checkpoint.parent.exists()
    assert mark_of(settings).exists()
    (told,) = said
    assert str(checkpoint) in told["reason"]


@pytest.mark.parametrize("holds", ["zeros", "a directory"])
def test_vectors_that_do_not_say_how_far_they_go_are_made_anew_at_the_start(holds: str, tmp_path: Path) -> None:
    with running(tmp_path / "node") as node:
        saved(node)
    (checkpoint,) = (tmp_path / "node" / "vectors").rglob("checkpoint")
    no_position(checkpoint, holds)
    with running(tmp_path / "node") as node, node.client() as ledger:
        until(lambda: found(node) == ITEMS, "all is found again")
        assert "the vectors are made anew" in node.said()
        assert str(checkpoint) in node.said()
        assert result_of(ledger, "verify")["equal"]


def test_zeroed_files_of_a_running_node_are_stated_and_mended(tmp_path: Path) -> None:
    with running(tmp_path / "node") as node, node.client() as ledger:
        saved(node)
        zero(files_of_points(tmp_path / "node"))
        until(lambda: health(node)["status"] == "degraded", "health states the damage")
        assert any("vector" in reason for reason in health(node)["reasons"])
        assert not result_of(ledger, "verify")["equal"]
        assert result_of(ledger, "rebuild")["vectors"]["made_anew"]
        assert found(node) == ITEMS
        assert result_of(ledger, "verify")["equal"]


STORES = [
    Store(f"item-{n}", 1, n, f"bake {n}", f"bread number{n} in an oven", ["public"], ["tool"], "user:ann", n)
    for n in range(1, ITEMS + 1)
]


def answers(store: EdgeStore) -> list[int]:
    """How many items each way of searching finds."""
    terms, vector, everybody, most = query_terms("bread oven"), hashed_vectors(["bread oven"])[0], ["public"], ITEMS * 2
    return [
        len(store.search(SearchOptions(everybody, limit=most), dense=None, sparse=terms)),
        len(store.search(SearchOptions(everybody, limit=most), dense=vector, sparse=None)),
        len(store.search(SearchOptions(everybody, limit=most, types=["tool"]), dense=vector, sparse=terms)),
        len(store.search(SearchOptions(everybody, limit=most, as_of=ITEMS), dense=vector, sparse=terms)),
    ]


def test_no_zeroed_part_takes_items_from_searches_unnoticed(tmp_path: Path) -> None:
    points = points_of(STORES, list(hashed_vectors([*map(text_of, STORES)])))
    whole = EdgeStore(tmp_path, MODEL, DIMENSIONS)
    whole.upsert(points)
    whole.set_checkpoint(ITEMS)
    assert answers(whole) == [ITEMS] * 4
    whole.close()
    kept = {path: (path.read_bytes().rstrip(b"\0"), path.stat().st_size) for path in files_of_points(tmp_path)}
    noticed = []
    segment = next(path for path in tmp_path.rglob("segments/*") if path.is_dir())
    parts = {path: path.relative_to(segment).parts[:2] for path in kept}  # an index, a storage
    for damaged in sorted(set(parts.values())):
        for path, (content, size) in kept.items():
            path.write_bytes(b"" if parts[path] == damaged else content)
            os.truncate(path, size)
        try:
            store = EdgeStore(tmp_path, MODEL, DIMENSIONS)
        except (VectorStoreFailed, VectorsDamaged):
            noticed.append(damaged)
            continue
        if differences(store, points, CANARIES):
            noticed.append(damaged)
        else:
            assert answers(store) == [ITEMS] * 4, damaged
        store.close()
    assert any(READERS_INDEX in str(path) for path in noticed)


@settings(max_examples=tries(10), deadline=None)  # each makes a store
@example(["2026-03-05T12:00:00.123456789+23:59"])
@given(st.lists(st.text(st.sampled_from("0123456789abz.:+-_/ 北京"), max_size=60), min_size=1, max_size=30))
def test_what_was_stored_as_it_was_stated_is_never_taken_for_damaged(contents: list[str]) -> None:
    """A compound and a word in it may have one hash, and a weight that is greater than what is stored."""
    stores = [
        Store(f"item-{n}", 1, n, "t", content, ["public"], ["tool"], "user:a", n) for n, content in enumerate(contents)
    ]
    points = points_of(stores, list(hashed_vectors([*map(text_of, stores)])))
    with tempfile.TemporaryDirectory() as directory:
        store = EdgeStore(Path(directory), MODEL, DIMENSIONS)
        store.upsert(points)
        assert differences(store, points, len(points)) == []
        store.close()


async def test_a_vector_that_is_neither_there_nor_awaited_is_found(tmp_path: Path) -> None:
    with embedding_endpoint() as endpoint:
        model = EmbeddingModel(endpoint.url, "k", "small", 64, deadline=5.0)
        settings = Settings(directory=str(tmp_path), embedding=model)
        client = await VectorClient.start(settings)
        await client.index(STORES[:3], after=0, checkpoint=3)
        assert await client.examine(STORES[:3], searched=3) == [], "awaited"
        await client.embed([("item-1", 1, "bake 1", "bread"), ("item-2", 1, "", "")])
        assert await client.examine(STORES[:3], searched=3) == [], "there, and never to be"
        await client.close()
        store = EdgeStore(tmp_path, "small", 64)
        lost = edge.UpdateOperation.delete_vectors([point_id("item-1", 1)], ["dense"])
        store._shard.update(lost)
        points = points_of(STORES[:3], [None] * 3)
        assert differences(store, points, 3) == ["version 1 of 'item-1' has another vector"]
        store.close()


@pytest.mark.parametrize(
    "otherwise",
    [
        {"scopes": ["user:bob"]},
        {"content": "other words altogether"},
        {"types": ["plan"]},
        {"owner": "user:eve"},
        {"retired": True},
        {"valid_to": 9},
        {"version": 2},
    ],
)
async def test_whatever_the_store_has_otherwise_is_found(otherwise: dict[str, Any], tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "item_id": "tar", "version": 1, "position": 1, "task": "tar", "content": "compress a folder",
        "scopes": ["public"], "types": ["tool"], "owner": "user:ann", "valid_from": 1,
    }  # fmt: skip
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    await client.index([Store(**said)], after=0, checkpoint=1)
    assert await client.examine([Store(**said)], searched=1) == []
    (wrong,) = await client.examine([Store(**{**said, **otherwise})], searched=1)
    assert "'tar'" in wrong
    await client.close()


@pytest.mark.parametrize("text", ["👍", "!!!", "-", "the of and", "\u200b", "   .  "])
async def test_a_text_that_nothing_finds_is_no_damage(text: str, tmp_path: Path) -> None:
    """A text without a word or a letter has nothing to be found by: a node that holds one is well."""
    store = Store("mark", 1, 1, text, text, ["public"], ["tool"], "user:ann", 1)
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    await client.index([store], after=0, checkpoint=1)
    assert await client.examine([store], searched=1) == []
    await client.close()


@pytest.mark.parametrize(
    "text", ["krxfzlwj", "k ggxqjno ugvbwtkux", "pdy xspq iqyqaup exlvf hkhizhqz oti an rrbbqzpn zdppbjbuw eykg"]
)
async def test_a_vector_that_a_byte_a_dimension_moves_most_is_no_damage(text: str, tmp_path: Path) -> None:
    """About one text in ten thousand has a number that is further away than those of the others."""
    store = Store("far", 1, 1, text, text, ["public"], ["tool"], "user:ann", 1)
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    await client.index([store], after=0, checkpoint=1)
    assert await client.examine([store], searched=1) == []
    await client.close()

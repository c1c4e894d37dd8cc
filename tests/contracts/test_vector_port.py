"""What every vector store must do, whichever form Qdrant has. The same suite over each adapter."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kledger.contract.words import EVERYTHING
from projections.vectors.embedding.embeddings import HashedEmbedder
from projections.vectors.embedding.hashed import DIMENSIONS, hashed_vectors
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.process import _store
from projections.vectors.store import edge_names
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Awaiting, Found, Point, SearchOptions, VectorStore, point_id
from projections.vectors.tokens import document_terms, query_terms
from projections.vectors.wire import Settings

PUBLIC = ["public"]

# local mode says that it has no payload indexes; the adapter creates them for the server
pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect", "ignore:Local mode performs exact")


@pytest.fixture(params=["edge", "client local mode", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    from qdrant_client import QdrantClient  # it takes a second, which collecting need not spend

    from projections.vectors.store.server import ServerStore

    model = f"contract-{uuid.uuid4().hex[:12]}"
    opened: VectorStore
    if request.param == "edge":
        opened = EdgeStore(tmp_path, model, DIMENSIONS)
        yield opened
    elif request.param == "client local mode":
        client = QdrantClient(":memory:")
        opened = ServerStore(client, model, DIMENSIONS)
        yield opened
    else:
        url = os.environ.get("QDRANT_URL")
        if not url:
            pytest.skip("set QDRANT_URL to run the contract against a Qdrant server")
        client = QdrantClient(url=url)
        opened = ServerStore(client, model, DIMENSIONS)
        yield opened
        for collection in client.get_collections().collections:
            if model in collection.name:
                client.delete_collection(collection.name)
    opened.close()


def awaiting_point(item_id: str, text: str, position: int, **more: Any) -> Point:
    return replace(a_point(item_id, text, position=position, **more), dense=None)


def a_point(
    item_id: str = "item-1",
    text: str = "compress a folder with tar",
    *,
    version: int = 1,
    position: int = 1,
    scopes: list[str] | None = None,
    types: list[str] | None = None,
    **more: object,
) -> Point:
    return Point(
        item_id=item_id,
        version=version,
        position=position,
        scopes=PUBLIC if scopes is None else scopes,
        types=types or ["tool"],
        owner="user:ann",
        dense=hashed_vectors([text])[0],
        sparse=document_terms(text, ""),
        **more,  # type: ignore[arg-type]  # each test names the few fields it is about
    )


def ask(
    store: VectorStore, query: str = "compress folder", scopes: list[str] | None = None, **more: Any
) -> list[Found]:
    options = SearchOptions(PUBLIC if scopes is None else scopes, **more)
    return store.search(options, dense=hashed_vectors([query])[0], sparse=query_terms(query))


def ids(found: list[Found]) -> list[str]:
    return [each.item_id for each in found]


def test_a_stored_item_is_found_by_both_paths(store: VectorStore) -> None:
    store.upsert([a_point(), a_point("item-2", "bake bread in an oven", position=2)])
    best = ask(store)[0]
    assert (best.item_id, best.version, best.valid_from) == ("item-1", 1, 1)
    assert best.keyword is not None
    assert best.keyword > 0
    assert best.vector is not None
    assert best.vector > 0


def test_who_reads_everything_finds_what_is_valid_now_whoever_its_readers_are(store: VectorStore) -> None:
    store.upsert(
        [
            a_point("public"),
            a_point("hers", position=2, scopes=["user:ann"]),
            a_point("retired", position=3, retired=True),
            a_point("ended at once", position=4, valid_to=5),
            a_point("ended", position=6),
        ]
    )
    store.close_version("ended", 1, 7)
    assert sorted(ids(ask(store, scopes=[EVERYTHING]))) == ["hers", "public"]
    assert sorted(ids(ask(store, scopes=[EVERYTHING], as_of=6))) == ["ended", "hers", "public"]


def test_a_rare_word_weighs_more_than_a_common_one(store: VectorStore) -> None:
    common = [a_point(f"common-{n}", "archive files", position=n + 1) for n in range(20)]
    store.upsert([*common, a_point("rare", "archive bzip", position=30)])
    assert ask(store, "files bzip")[0].item_id == "rare"


def test_each_path_can_be_asked_alone(store: VectorStore) -> None:
    store.upsert([a_point()])
    words = store.search(SearchOptions(PUBLIC), dense=None, sparse=query_terms("folder"))
    near = store.search(SearchOptions(PUBLIC), dense=hashed_vectors(["folder"])[0], sparse=None)
    assert words[0].vector is None
    assert near[0].keyword is None
    assert ids(words) == ids(near) == ["item-1"]


def test_a_point_without_a_dense_vector_is_found_by_its_words_until_it_has_one(store: VectorStore) -> None:
    store.upsert([awaiting_point("late", "compress a folder", 1), a_point("there", "compress a folder", position=2)])
    found = {each.item_id: each for each in ask(store)}
    assert found["late"].keyword is not None
    assert found["late"].vector is None
    assert found["there"].vector is not None
    assert (store.count_awaiting(), store.awaiting(9)) == (1, [Awaiting("late", 1, 1)])
    store.embed({("late", 1): hashed_vectors(["compress a folder"])[0], ("gone", 1): hashed_vectors(["x"])[0]})
    found = {each.item_id: each for each in ask(store)}
    assert found["late"].vector == pytest.approx(found["there"].vector)
    assert (store.count_awaiting(), store.awaiting(9), store.count()) == (0, [], 2)


def test_what_will_have_no_dense_vector_awaits_none(store: VectorStore) -> None:
    store.upsert([awaiting_point(f"late-{n}", "compress a folder", n + 1) for n in range(5)])
    assert len(store.awaiting(3)) == 3
    store.embed({(f"late-{n}", 1): None for n in range(5)})
    assert store.awaiting(3) == []
    assert len(ask(store)) == 5


def test_a_superseded_version_is_embedded_too(store: VectorStore) -> None:
    store.upsert([awaiting_point("late", "compress a folder", 1)])
    store.close_version("late", 1, 5)
    store.embed({("late", 1): hashed_vectors(["compress a folder"])[0]})
    assert ask(store) == []
    assert ask(store, as_of=3)[0].vector is not None


def test_a_query_without_any_term_finds_nothing(store: VectorStore) -> None:
    store.upsert([a_point()])
    assert ask(store, "?!") == []


def test_an_item_without_any_term_is_stored(store: VectorStore) -> None:
    store.upsert([a_point(text="。。。")])
    assert store.count() == 1


def test_chinese_is_found_by_a_part_of_its_words(store: VectorStore) -> None:
    store.upsert([a_point("zh", "压缩一个文件夹"), a_point("other", "打印环境变量", position=2)])
    assert ids(ask(store, "文件夹压缩"))[0] == "zh"


def test_nobody_finds_what_shares_no_scope_with_them(store: VectorStore) -> None:
    store.upsert([a_point(scopes=["user:ann", "team:red"])])
    assert ask(store, scopes=["user:bob", "public"]) == []
    assert ids(ask(store, scopes=["user:bob", "team:red"])) == ["item-1"]


def test_no_visible_scope_finds_nothing(store: VectorStore) -> None:
    store.upsert([a_point()])
    for as_of in (None, 5):
        assert ask(store, scopes=[], as_of=as_of) == []


def test_a_scope_filter_holds_in_every_mode(store: VectorStore) -> None:
    store.upsert([a_point(scopes=["user:ann"])])
    for as_of in (None, 5):
        assert ask(store, scopes=["user:bob"], as_of=as_of) == []
    assert ids(ask(store, scopes=["user:ann"], as_of=5)) == ["item-1"]


def test_a_scope_is_compared_as_a_whole(store: VectorStore) -> None:
    store.upsert([a_point(scopes=["user:ann"])])
    for near_miss in ("user:an", "user:anna", "user", "ann", "USER:ANN", "*", "user:*"):
        assert ask(store, scopes=[near_miss]) == []


def test_only_the_asked_types_are_found(store: VectorStore) -> None:
    store.upsert([a_point("a", types=["tool", "plan"]), a_point("b", types=["strategy"], position=2)])
    assert ids(ask(store, types=["plan", "usecase"])) == ["a"]
    assert sorted(ids(ask(store))) == ["a", "b"]


def test_only_the_versions_that_are_named_are_found(store: VectorStore) -> None:
    store.upsert([a_point(f"item-{n}", position=n + 1) for n in range(40)])
    assert {each.valid_from for each in ask(store, versions=[2, 3, 4])} == {2, 3, 4}


def test_versions_are_named_however_few_of_them_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_names, "MOST", 3)
    store = EdgeStore(tmp_path, "m", DIMENSIONS)
    store.upsert([a_point(f"item-{n}", position=n + 1) for n in range(10)])
    for _ in range(2):
        assert sorted(ids(ask(store, limit=10))) == [f"item-{n}" for n in range(10)]
    store.erase(["item-0"])
    assert "item-0" not in ids(ask(store, limit=10))
    store.close()


def test_a_version_that_is_stored_again_after_it_was_erased_is_named_as_it_is_now(store: VectorStore) -> None:
    store.upsert([a_point(position=3)])
    assert [each.valid_from for each in ask(store)] == [3]
    store.erase(["item-1"])
    store.upsert([a_point(position=7)])
    assert [each.valid_from for each in ask(store)] == [7]


def test_the_limit_holds_for_each_path(store: VectorStore) -> None:
    store.upsert([a_point(f"item-{n}", position=n + 1) for n in range(10)])
    found = ask(store, limit=3)
    assert sum(each.keyword is not None for each in found) == 3
    assert sum(each.vector is not None for each in found) == 3


def test_a_retired_item_is_found_at_no_time(store: VectorStore) -> None:
    store.upsert([a_point(retired=True)])
    assert ask(store) == []
    assert ask(store, as_of=5) == []


def test_a_superseded_version_is_found_as_of_its_time_only(store: VectorStore) -> None:
    store.upsert([a_point(position=10)])
    store.close_version("item-1", 1, 20)
    store.upsert([a_point(text="compress a folder with zip", version=2, position=20)])
    assert [each.version for each in ask(store)] == [2]
    assert [each.version for each in ask(store, as_of=19)] == [1]
    assert [each.version for each in ask(store, as_of=20)] == [2]
    assert ask(store, as_of=9) == []
    assert store.count() == 2


def test_a_version_may_arrive_already_superseded(store: VectorStore) -> None:
    store.upsert([a_point(position=10, valid_to=20)])
    assert ask(store) == []
    assert [each.version for each in ask(store, as_of=15)] == [1]


def test_delivering_anything_again_changes_nothing(store: VectorStore) -> None:
    first = a_point(position=10)
    store.upsert([first])
    store.close_version("item-1", 1, 20)
    store.upsert([a_point(version=2, position=20)])
    before = store.digest()
    store.upsert([first])
    store.close_version("item-1", 1, 20)
    store.upsert([a_point(version=2, position=20), first])
    assert store.digest() == before


def test_an_older_position_never_overwrites_a_newer(store: VectorStore) -> None:
    store.upsert([a_point(position=30, scopes=["team:red"], valid_from=10)])
    store.upsert([a_point(position=10, scopes=["public"])])
    assert ask(store, scopes=PUBLIC) == []
    assert ids(ask(store, scopes=["team:red"], as_of=12)) == ["item-1"]


def test_closing_an_unknown_version_changes_nothing(store: VectorStore) -> None:
    store.close_version("nobody", 1, 5)
    assert store.count() == 0


def test_the_order_within_a_batch_does_not_matter(store: VectorStore) -> None:
    store.upsert([a_point(position=30, scopes=["team:red"]), a_point(position=10, scopes=["public"])])
    assert ids(ask(store, scopes=["team:red"])) == ["item-1"]


def test_an_erased_item_is_gone_in_every_version(store: VectorStore) -> None:
    store.upsert([a_point(position=1, valid_to=2), a_point(version=2, position=2), a_point("item-2", position=3)])
    store.erase(["item-1"])
    assert ids(ask(store)) == ["item-2"]
    assert ids(ask(store, as_of=1)) == []
    assert store.count() == 1


def test_a_cleared_store_is_as_new_and_takes_everything_again(store: VectorStore) -> None:
    store.upsert([a_point("a"), a_point("b")])
    store.set_checkpoint(9)
    before = store.digest()
    store.clear()
    assert (store.count(), store.checkpoint()) == (0, 0)
    assert ids(ask(store, "a")) == []
    store.upsert([a_point("a"), a_point("b")])
    assert store.digest() == before


def test_equal_states_have_equal_digests_whatever_the_order(store: VectorStore) -> None:
    one, two = a_point(), a_point("item-2", "bake bread", position=2)
    store.upsert([one, two])
    both = store.digest()
    store.erase(["item-1"])
    assert store.digest() != both
    store.upsert([one])
    assert store.digest() == both


def test_the_checkpoint_starts_at_zero_and_only_grows(store: VectorStore) -> None:
    assert store.checkpoint() == 0
    store.upsert([a_point()])
    store.set_checkpoint(7)
    store.set_checkpoint(3)
    assert store.checkpoint() == 7
    assert store.count() == 1


def test_the_checkpoint_is_never_found(store: VectorStore) -> None:
    store.upsert([a_point()])
    store.set_checkpoint(7)
    assert ids(ask(store, as_of=100)) == ["item-1"]


def test_optimizing_changes_no_answer(store: VectorStore) -> None:
    store.upsert([a_point(f"item-{n}", f"compress folder number {n}", position=n + 1) for n in range(50)])
    before, digest = ask(store, limit=5), store.digest()
    store.optimize()
    assert ids(ask(store, limit=5)) == ids(before)
    assert store.digest() == digest


def test_the_same_version_has_the_same_point_id_everywhere() -> None:
    assert point_id("knowledge-20260101-abc", 3) == "b8e84bf1-77c5-5fdf-b3d6-effc0398d802"
    assert point_id("a", 11) != point_id("a1", 1)


def test_an_edge_store_opens_again_where_it_was_left(tmp_path: Path) -> None:
    first = EdgeStore(tmp_path, "model", DIMENSIONS)
    first.upsert([a_point()])
    first.set_checkpoint(1)
    digest = first.digest()
    first.close()
    again = EdgeStore(tmp_path, "model", DIMENSIONS)
    assert (again.checkpoint(), again.count(), again.digest()) == (1, 1, digest)
    assert ids(ask(again)) == ["item-1"]
    again.close()


class _Answers(BaseHTTPRequestHandler):
    """Something that answers every request in one way, and is no Qdrant."""

    status, kind, body = 200, "application/json", b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.filterwarnings("ignore:Failed to obtain server version")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "no Qdrant server answers at {at} ([Errno 111] Connection refused): check the address of --qdrant"),
        ((200, "application/json", b'{"name": "a node"}'), "answers at {at} (what answers there is none)"),
        ((200, "text/html", b"<html>"), "answers at {at} (what answers there is none)"),
        ((404, "text/plain", b"nothing here"), "at {at} refuses the node: Unexpected Response: 404"),
        ((401, "text/plain", b"a key is needed"), "into QDRANT_API_KEY"),
    ],
    ids=["nobody", "a program of another form", "a web server", "a proxy", "a server with a key"],
)
def test_what_is_no_qdrant_server_is_told_with_its_address_in_a_line(
    answer: tuple[int, str, bytes] | None, says: str
) -> None:
    handler = type("Handler", (_Answers,), dict(zip(("status", "kind", "body"), answer or (), strict=False)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    at = f"127.0.0.1:{server.server_port}"
    if answer is None:
        server.shutdown()
        server.server_close()
    settings = Settings(directory=None, qdrant_url=f"http://ann:secret@{at}")
    try:
        with pytest.raises(VectorStoreFailed) as refused:
            _store(settings, HashedEmbedder())
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
    assert says.format(at=at) in refused.value.message
    assert "\n" not in refused.value.message
    assert "secret" not in refused.value.message


def test_models_lie_side_by_side(tmp_path: Path) -> None:
    one, two = EdgeStore(tmp_path, "model/one", DIMENSIONS), EdgeStore(tmp_path, "model one", DIMENSIONS)
    one.upsert([a_point()])
    assert (one.count(), two.count()) == (1, 0)
    one.close()
    two.close()


def test_a_vector_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    dense = hashed_vectors(["tar 压缩"])[0]
    assert abs(float(np.linalg.norm(dense)) - 1) < 1e-6

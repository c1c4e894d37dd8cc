"""Two worlds that differ only in what the caller may not see answer alike: what is found, its order, every figure."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.vectors.embedding.hashed import DIMENSIONS, hashed_vectors
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.frequencies import Counted, Frequencies, stored
from projections.vectors.store.port import Found, Point, SearchOptions, VectorStore
from projections.vectors.tokens import document_terms, query_terms
from tests.examples import tries
from tests.journeys.running_node import caught_up, head, running

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect", "ignore:Local mode performs exact")

MINE = ("public", "user:ann", "team:red")
OTHERS = ("user:bob", "team:blue", "org:acme", "agent:scribe")
_ENGLISH = "archive branch commit container deploy image merge network remote server volume"
WORDS = [*_ENGLISH.split(), "压缩", "文件", "服务", "网络"]
QUERIES = ("archive branch", "merge", "how do I deploy a container image", "压缩文件", "server volume netwrok")


@dataclass(frozen=True)
class Write:
    """One change of the store; `hidden` ones are of items that nobody of MINE reads."""

    kind: str
    hidden: bool
    item_id: str
    version: int
    at: int
    scopes: tuple[str, ...] = ()
    text: str = ""
    retired: bool = False


def history(seed: int, events: int = 60) -> list[Write]:
    """Items saved, revised, given to others of their kind, retired and erased, hidden ones among visible ones."""
    chance = Random(seed)
    items: dict[str, tuple[int, bool]] = {}
    writes: list[Write] = []
    for at in range(1, events + 1):
        hidden = chance.random() < 0.6
        readers = tuple(chance.sample(OTHERS if hidden else MINE, chance.randint(1, 2)))
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 9)))
        alike = [item_id for item_id, (_, one) in items.items() if one == hidden]
        kind = chance.choice(["save", "save", "save", "revise", "retire", "erase"]) if alike else "save"
        if kind == "save":
            item_id = f"item-{at}"
            items[item_id] = (1, hidden)
            writes.append(Write("store", hidden, item_id, 1, at, readers, text))
            continue
        item_id = chance.choice(sorted(alike))
        version = items[item_id][0]
        if kind == "erase":
            del items[item_id]
            writes.append(Write("erase", hidden, item_id, version, at))
            continue
        items[item_id] = (version + 1, hidden)
        writes.append(Write("close", hidden, item_id, version, at))
        writes.append(Write("store", hidden, item_id, version + 1, at, readers, text, kind == "retire"))
    return writes


MINE_ALL = SearchOptions(MINE)


def fill(store: VectorStore, writes: Sequence[Write]) -> None:
    for write in writes:
        if write.kind == "erase":
            store.erase([write.item_id])
        elif write.kind == "close":
            store.close_version(write.item_id, write.version, write.at)
        else:
            dense, sparse = hashed_vectors([write.text])[0], document_terms(write.text, "")
            about = (write.item_id, write.version, write.at, write.scopes, ["tool"], "user:x")
            store.upsert([Point(*about, dense=dense, sparse=sparse, retired=write.retired)])


def answers(store: VectorStore, positions: Sequence[int]) -> list[list[Found]]:
    """Everything that ann may ask: each path, now and as of each position."""
    given: list[list[Found]] = []
    for query in QUERIES:
        dense, terms, words = hashed_vectors([query])[0], query_terms(query), query_terms(query, words_only=True)
        for asked in (MINE_ALL, replace(MINE_ALL, limit=3), *(replace(MINE_ALL, as_of=at) for at in positions)):
            given += [
                store.search(asked, dense=near, sparse=held)
                for near, held in ((dense, terms), (None, words), (dense, None))
            ]
    return given


@contextmanager
def edge() -> Iterator[EdgeStore]:
    folder = Path(tempfile.mkdtemp())
    store = EdgeStore(folder, "worlds", DIMENSIONS)
    try:
        yield store
    finally:
        store.close()
        shutil.rmtree(folder)


@settings(max_examples=tries(25), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_others_keep_moves_no_rank_and_no_figure(seed: int) -> None:
    writes = history(seed)
    with edge() as with_hidden, edge() as without:
        fill(with_hidden, writes)
        fill(without, [write for write in writes if not write.hidden])
        assert answers(with_hidden, (20, 45)) == answers(without, (20, 45))


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_others_keep_moves_nothing_after_a_restart_either(seed: int) -> None:
    writes = history(seed)
    folder = Path(tempfile.mkdtemp())
    before = EdgeStore(folder, "worlds", DIMENSIONS)
    fill(before, writes)
    before.set_checkpoint(60)
    told = answers(before, (20, 45))
    before.close()
    after = EdgeStore(folder, "worlds", DIMENSIONS)
    with edge() as without:
        fill(without, [write for write in writes if not write.hidden])
        assert answers(after, (20, 45)) == told == answers(without, (20, 45))
        after.optimize()
        assert answers(after, (20, 45)) == told
    after.close()
    shutil.rmtree(folder)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_on_a_qdrant_server_too_up_to_the_last_digit_of_its_sums(seed: int) -> None:
    from qdrant_client import QdrantClient  # it takes a second, which collecting need not spend

    from projections.vectors.store.server import ServerStore

    writes = history(seed, 40)
    worlds = []
    for kept in (writes, [write for write in writes if not write.hidden]):
        store = ServerStore(QdrantClient(":memory:"), "worlds", DIMENSIONS)
        fill(store, kept)
        worlds.append(answers(store, (20,)))
        store.close()
    for one, other in zip(*worlds, strict=True):
        assert {found.item_id for found in one} == {found.item_id for found in other}
        figures = {found.item_id: (found.keyword or 0, found.vector or 0) for found in other}
        for found in one:
            assert (found.keyword or 0, found.vector or 0) == pytest.approx(figures[found.item_id], rel=1e-5)


def test_many_equal_items_are_cut_alike_in_both_worlds() -> None:
    mine = [Write("store", False, f"mine-{n}", 1, 2 * n + 1, (MINE[n % 3],), "merge a branch") for n in range(90)]
    theirs = [Write("store", True, f"theirs-{n}", 1, 2 * n + 2, (OTHERS[n % 4],), "merge " * n) for n in range(90)]
    both = sorted([*mine, *theirs], key=lambda write: write.at)
    with edge() as with_hidden, edge() as without:
        fill(with_hidden, both)
        fill(without, mine)
        assert answers(with_hidden, (50, 120)) == answers(without, (50, 120))


@settings(max_examples=tries(60), deadline=None)
@given(
    documents=st.lists(
        st.tuples(
            st.lists(st.sampled_from([*MINE, *OTHERS]), max_size=4, unique=True),
            st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True),
        ),
        max_size=60,
    ),
    gone=st.integers(0, 60),
    visible=st.lists(st.sampled_from([*MINE, *OTHERS]), max_size=4, unique=True),
)
def test_frequencies_are_those_of_the_documents_that_each_reader_sees(
    documents: list[tuple[list[str], list[int]]], gone: int, visible: list[str]
) -> None:
    kept = Frequencies()
    kept.count(Counted(readers, np.asarray(terms, np.uint32), 1) for readers, terms in documents)
    kept.count(Counted(readers, np.asarray(terms, np.uint32), -1) for readers, terms in documents[:gone])
    query = query_terms(" ".join(WORDS))
    asked = type(query)(np.arange(40, dtype=np.uint32), np.ones(40, np.float32))
    left = documents[gone:]
    seen = [(terms, len({*readers} & {*visible})) for readers, terms in left]
    total = sum(times for _, times in seen)
    expected = []
    for term in range(40):
        held = sum(times for terms, times in seen if term in terms)
        expected.append(np.log1p((total - held + 0.5) / (held + 0.5)))
    weighed = kept.weigh(asked, visible)
    at = dict(zip(weighed.sparse.indices.tolist(), weighed.sparse.values.tolist(), strict=True))
    steps = [at.get(term, 0.0) for term in range(40)]
    assert all(value == int(value) for value in steps)
    assert np.allclose(np.asarray(steps) / max(steps), np.asarray(expected) / max(expected), atol=0.02)


@given(st.text(max_size=2_000), st.text(max_size=2_000))
@settings(max_examples=tries(100), deadline=None)
def test_every_score_is_a_whole_number_that_no_order_of_addition_changes(query: str, content: str) -> None:
    terms = query_terms(f"{query} {content}")
    weighed = Frequencies().weigh(terms, ["public"])
    document = stored(document_terms(query, content))
    held = dict(zip(document.indices.tolist(), document.values.tolist(), strict=True))
    total = sum(
        int(weight) * int(held.get(index, 0))
        for index, weight in zip(weighed.sparse.indices.tolist(), weighed.sparse.values.tolist(), strict=True)
    )
    assert total < 2**24


_SAID = [("merge a branch", "git merge the branch"), ("压缩文件", "tar 压缩一个文件"), ("deploy", "deploy an image")]
_HIDDEN = [f"merge {word} 压缩文件 deploy container quokka" for word in WORDS]


def test_over_http_nothing_of_others_moves_any_answer(tmp_path: Path) -> None:
    ann = {"X-Ledger-User": "ann", "X-Ledger-Team": "red"}
    with running(tmp_path / "node") as node:
        with node.client() as operator:
            client, bob = operator.acting_as(user="ann", team="red"), operator.acting_as(user="bob")
            for number, (task, content) in enumerate(_SAID * 3):
                client.save(f"{task} {number}", content, ["tool"], id=f"mine-{number}", scopes=[MINE[number % 3]])
            caught_up(operator)
            position = head(operator)
            before = _told(node.url, ann, position)
            # Everything that others may do to what ann does not see.
            for number, content in enumerate(_HIDDEN):
                bob.save("merge", content, ["tool", "plan"], id=f"theirs-{number}", scopes=["user:bob"])
            rival = operator.acting_as(org="rival")
            rival.save("merge a branch", "quokka merge", ["tool"], id="rivals", scopes=["org:rival"])
            shared = [{"entity": "agent:scribe", "permission": "read"}]
            bob.save("deploy", "quokka deploy", ["tool"], scopes=["user:bob"], acl=shared)
            bob.revise("theirs-0", content="merge merge merge quokka")
            bob.retire("theirs-1")
            caught_up(operator)
            _alike(before, _told(node.url, ann, position))
        assert node.stop() == 0
    with running(tmp_path / "node") as node, node.client() as operator:
        caught_up(operator)
        _alike(before, _told(node.url, ann, position))


def _told(url: str, who: dict[str, str], position: int) -> dict[str, Any]:
    """What every question of search and recall answers, without the positions of the log."""
    told: dict[str, Any] = {}
    with httpx.Client(base_url=url, headers=who, timeout=30) as http:

        def tell(what: str, answer: httpx.Response) -> None:
            assert answer.status_code == 200, answer.text
            of_the_log = ("position", "recall_id", "event_id", "focuses", "created_at", "focused_at")
            told[what] = {name: value for name, value in answer.json().items() if name not in of_the_log}

        def ask(path: str, **params: str | int) -> None:
            tell(f"{path} {sorted(params.items())}", http.get(path, params=params))

        for path, query in product(("fused", "keyword", "vector", "recency"), ("merge", "quokka", "压缩文件 branch")):
            ask("/api/knowledge/search", q=query, paths=path, record="false", top_k=20)
            ask("/api/knowledge/search", q=query, paths=path, record="false", top_k=2, types="tool")
            ask("/api/knowledge/search", q=query, paths=path, record="false", as_of=position)
            ask("/api/knowledge/search", q=query, paths=path, record="false", top_k=2, explain="true")
        ask("/api/recall/startup", record="false")
        for query in ("merge a branch", "quokka", "压缩文件"):  # a focus is kept: last, and the same in each world
            goal = f"/api/goals/goal-{len(query)}"
            tell(f"focus {query}", http.post(f"{goal}/focus", json={"description": query, "top_k": 20, "min_score": 0}))
            tell(f"goal {query}", http.get(goal))
        ask("/api/knowledge", limit=50)
        for name in ("/why", "/history", ""):
            ask(f"/api/knowledge/mine-0{name}")
    return told


def _alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for question, said in one.items():
        assert _without_age(said) == _without_age(other[question]), question


_OF_AGE = ("relevance", "worth", "freshness", "recency", "lent", "score")


def _without_age(said: Any) -> Any:
    """What holds the age of an item grows by some 1e-7 while the test runs."""
    if isinstance(said, dict):
        return {name: round(value, 4) if name in _OF_AGE and isinstance(value, float) else _without_age(value)
                for name, value in said.items() if name != "position"}  # fmt: skip
    return [_without_age(each) for each in said] if isinstance(said, list) else said

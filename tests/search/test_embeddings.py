"""How texts become dense vectors, with no model and with one behind an endpoint."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from projections.vectors.embedding import hashed
from projections.vectors.embedding.embeddings import MAX_CHARACTERS, HashedEmbedder, OpenAIEmbedder
from projections.vectors.embedding.hashed import DIMENSIONS, hashed_vectors, query_vector
from projections.vectors.embedding.kept import EmbeddingKey, EmbeddingStore, KeptEmbedder, MemoryEmbeddings
from projections.vectors.embedding.kept_jetstream import (
    DIGEST,
    JetStreamEmbeddings,
    digest_of,
    ensure_embeddings_stream,
    subject_of,
)
from projections.vectors.errors import EmbeddingFailed
from tests.free_ports import free_address
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running:
        yield running


@pytest.fixture
async def embedder(endpoint: EmbeddingEndpoint) -> AsyncIterator[OpenAIEmbedder]:
    made = OpenAIEmbedder(base_url=endpoint.url, api_key="secret", model="small", dimensions=64)
    yield made
    await made.close()


@pytest.fixture(params=["memory", "jetstream"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    if request.param == "memory":
        yield MemoryEmbeddings()
        return
    server = EmbeddedServer(tmp_path)
    access = await server.start()
    await ensure_embeddings_stream(access)
    await ensure_embeddings_stream(access)  # a second node finds it there
    connection = await BrokerConnection.open(access, "reader")
    yield JetStreamEmbeddings(connection)
    await connection.close()
    await server.stop()


def alike(one: str, other: str) -> float:
    pair = hashed_vectors([one, other])
    return float(pair[0] @ pair[1])


def test_a_misspelt_text_is_nearer_than_another_one() -> None:
    assert alike("kubernetes deployment", "kubernetse deploymnet") > 0.5
    assert abs(alike("kubernetes deployment", "bake bread")) < 0.3


def test_chinese_texts_with_the_same_words_are_near() -> None:
    assert alike("压缩一个文件夹", "如何压缩文件夹") > 0.5
    assert abs(alike("压缩一个文件夹", "打印环境变量")) < 0.3


def test_every_vector_has_length_one_and_a_blank_one_is_zero() -> None:
    vectors = hashed_vectors(["git", "", "使用 git", "?!", "\ud800", "the"])
    assert vectors.shape == (6, DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 0, 0, 0], atol=1e-6)


def test_a_text_has_the_same_vector_alone_and_among_others() -> None:
    texts = ["git commit", "提交所有文件", "", "tar -xzf a.tar.gz", "git commit"]
    assert np.array_equal(hashed_vectors(texts), np.concatenate([hashed_vectors([text]) for text in texts]))
    assert hashed_vectors([]).shape == (0, DIMENSIONS)


def test_stop_words_do_not_move_a_vector() -> None:
    assert alike("how do I list the files", "list files") == pytest.approx(1.0)


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    program = (
        "from projections.vectors.embedding.hashed import hashed_vectors; import hashlib;"
        "print(hashlib.sha256(hashed_vectors(['git: 版本控制', 'commit all files']).tobytes()).hexdigest())"
    )
    root = Path(__file__).parents[2]
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


async def test_the_hashed_embedder_gives_the_hashed_vectors() -> None:
    assert np.array_equal(await HashedEmbedder().embed(["git"]), hashed_vectors(["git"]))


async def test_an_endpoint_gives_the_vectors_in_the_order_of_the_texts(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder
) -> None:
    texts = [f"text number {n}" for n in range(300)]
    vectors = await embedder.embed(texts)
    assert np.allclose(vectors, hashed_vectors(texts, 64), atol=1e-6)
    assert endpoint.calls == 3  # 128 + 128 + 44
    assert set(endpoint.models) == {"small"}
    assert set(endpoint.keys) == {"Bearer secret"}


async def test_no_more_requests_run_at_once_than_allowed(endpoint: EmbeddingEndpoint) -> None:
    endpoint.delay = 0.02
    embedder = OpenAIEmbedder(
        base_url=endpoint.url, api_key="k", model="small", dimensions=64, batch_size=1, concurrency=3
    )
    await embedder.embed([f"text {n}" for n in range(12)])
    await embedder.close()
    assert endpoint.most_at_once == 3


async def test_blank_texts_are_not_sent(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    vectors = await embedder.embed(["", "  ", "git"])
    assert endpoint.texts == ["git"]
    assert not vectors[:2].any()


async def test_a_very_long_text_is_cut(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    await embedder.embed(["长" * (MAX_CHARACTERS + 5)])
    assert endpoint.texts == ["长" * MAX_CHARACTERS]


async def test_a_failed_request_is_tried_again(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    endpoint.fail_next = 1
    await embedder.embed(["git"])
    assert endpoint.calls == 2


async def test_a_refusal_is_an_error_of_ours(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    endpoint.refuse = "git"
    with pytest.raises(EmbeddingFailed, match=r"small at .* refused") as failure:
        await embedder.embed(["git"])
    assert failure.value.code == "embedding_failed"


async def test_an_endpoint_that_does_not_answer_is_told_with_why() -> None:
    address = free_address()
    embedder = OpenAIEmbedder(base_url=f"http://{address}/v1", api_key="secret", model="small", dimensions=64)
    with pytest.raises(EmbeddingFailed) as failure:
        await embedder.embed(["git"])
    await embedder.close()
    assert "gave no vectors for 1 text: Connection error (" in failure.value.message
    assert "); check KLEDGER_EMBEDDING_URL" in failure.value.message


async def test_vectors_of_another_size_are_an_error(endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder) -> None:
    endpoint.dimensions = 32
    with pytest.raises(EmbeddingFailed, match="set KLEDGER_EMBEDDING_DIMENSIONS=32"):
        await embedder.embed(["git"])


async def test_an_embedding_is_paid_for_once(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, store: EmbeddingStore
) -> None:
    kept = KeptEmbedder(embedder, store)
    first = await kept.embed(["git", "tar", "git", ""])
    again = await kept.embed(["tar", "git", "", "zip"])
    assert sorted(endpoint.texts) == ["git", "tar", "zip"]
    assert (kept.paid_calls, kept.paid_texts) == (2, 3)
    assert np.array_equal(first[0], again[1])
    assert np.array_equal(first[0], first[2])
    assert not again[2].any()
    assert (await kept.embed([])).shape == (0, 64)


async def test_another_node_pays_nothing_for_what_is_kept(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, store: EmbeddingStore
) -> None:
    texts = [f"text {n}" for n in range(300)]
    first = await KeptEmbedder(embedder, store).embed(texts)
    calls = endpoint.calls
    second_node = KeptEmbedder(embedder, store)
    assert np.array_equal(await second_node.embed(texts), first)
    assert (endpoint.calls, second_node.paid_calls) == (calls, 0)


async def test_a_failure_in_one_batch_loses_no_other(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, store: EmbeddingStore
) -> None:
    embedder.batch_size = 2
    endpoint.refuse = "bad"
    kept = KeptEmbedder(embedder, store)
    with pytest.raises(EmbeddingFailed):
        await kept.embed(["apple", "bread", "bad", "cake", "date", "egg"])
    endpoint.refuse = ""
    endpoint.texts.clear()
    await kept.embed(["apple", "bread", "bad", "cake", "date", "egg"])
    assert sorted(endpoint.texts) == ["bad", "cake"]


async def test_models_and_dimensions_are_kept_apart(store: EmbeddingStore) -> None:
    keys = [EmbeddingKey(m, d, "0" * 64) for m, d in (("a/b 1.5*", 2), ("a.b 1.5>", 2), ("a/b 1.5*", 3))]
    await store.put_many({key: np.full(key.dimensions, n, np.float32) for n, key in enumerate(keys, 1)})
    kept = await store.get_many([*keys, EmbeddingKey("none", 2, "0" * 64)])
    assert [float(kept[key][0]) for key in keys] == [1.0, 2.0, 3.0]
    assert len(kept) == 3


def test_a_subject_holds_nothing_that_the_broker_reads_as_more_than_a_name() -> None:
    subject = subject_of(EmbeddingKey("BAAI/bge.m3 > *模", 1024, "ab" * 32))
    assert subject.count(".") == 3
    assert not set(subject) & set("*> /\t")
    assert subject.isascii()


async def test_a_damaged_embedding_is_noticed_and_paid_for_again(
    endpoint: EmbeddingEndpoint, embedder: OpenAIEmbedder, tmp_path: Path
) -> None:
    server = EmbeddedServer(tmp_path)
    access = await server.start()
    await ensure_embeddings_stream(access)
    connection = await BrokerConnection.open(access, "reader")
    first = await KeptEmbedder(embedder, JetStreamEmbeddings(connection)).embed(["git", "tar", "zip", "old"])
    keys = [KeptEmbedder(embedder, MemoryEmbeddings())._key(text) for text in ("git", "tar", "zip", "old")]
    flipped = bytearray(first[0].astype("<f4").tobytes())
    flipped[7] ^= 1
    damaged = [bytes(flipped), first[1].astype("<f4").tobytes()[:-4], np.full(64, np.nan, "<f4").tobytes()]
    for key, body in zip(keys, damaged, strict=False):
        headers = {DIGEST: digest_of(first[0].astype("<f4").tobytes())} if body is damaged[0] else None
        await connection.request(subject_of(key), body, headers)
    await connection.request(subject_of(keys[3]), first[3].astype("<f4").tobytes())  # by a version without digests
    again = KeptEmbedder(embedder, JetStreamEmbeddings(connection))
    assert np.array_equal(await again.embed(["git", "tar", "zip", "old"]), first)
    assert again.paid_texts == 3
    third = KeptEmbedder(embedder, JetStreamEmbeddings(connection))
    assert np.array_equal(await third.embed(["git", "tar", "zip", "old"]), first)
    assert third.paid_texts == 0, "what was paid for again is kept whole"
    await connection.close()
    await server.stop()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "the",
        "how do I merge a branch",
        "压缩 一个文件 tar",
        "Ｇｉｔ ß é_x 3rd",
        f"{'x' * 90} merge",
        "merge merge merge",
    ],
)
def test_the_vector_of_a_query_is_that_of_the_text(query: str) -> None:
    for _ in range(2):  # its words are remembered the second time
        assert np.abs(query_vector(query) - hashed_vectors([query])[0]).max() < 1e-6


def test_the_vector_of_a_query_is_the_same_however_few_words_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = ["roll back the release", "the release, 回滚 the the", "back to back", "the", "回滚发布 release"]
    at_once = [query_vector(query) for query in queries]
    monkeypatch.setattr(hashed, "_MOST_REMEMBERED", 3)
    for query, vector in [*zip(queries, at_once, strict=True)] * 2:
        assert np.array_equal(query_vector(query), vector)

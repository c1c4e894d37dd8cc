"""The client of a reranker: every shape that endpoints share is read; what goes wrong costs its deadline at most."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from consumers.recall.rerank_settings import RerankSettings, rerank_settings_from_environment
from consumers.recall.reranker import MOST_BYTES, MOST_QUERY, MOST_TEXT, Reranker
from consumers.recall.scores import MOST_TEXTS
from kledger.contract.errors import InvalidPayload
from ledger.runtime.breaker import FAILURES
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.patience import PATIENCE
from tests.rerank_endpoint import constant, reversed_order

KEY = "rr-nobody-may-read-this"
QUERY = "roll back the deployment"
TEXTS = ["bake bread", "roll back the deployment with one command", "the deployment"]


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running:
        yield running


@asynccontextmanager
async def reranker(endpoint: EmbeddingEndpoint, **about: Any) -> AsyncIterator[Reranker]:
    settings: dict[str, Any] = {"url": endpoint.url, "model": "r", "key": SecretStr(KEY), "deadline": 5.0}
    made = Reranker(RerankSettings(**settings | about))
    try:
        yield made
    finally:
        await made.close()


def tei(endpoint: EmbeddingEndpoint) -> str:
    return endpoint.url.replace("/v1", "/tei")


@pytest.mark.parametrize("end", ["", "/", "/rerank"])
async def test_the_texts_are_scored_in_their_own_order(endpoint: EmbeddingEndpoint, end: str) -> None:
    async with reranker(endpoint, url=endpoint.url + end) as asked:
        scores, reason = await asked.rerank(QUERY, TEXTS)
    assert reason is None
    assert scores == [0.0, pytest.approx(1.0), pytest.approx(1 / 3)]
    (request,) = endpoint.rerank.asked
    assert set(request) == {"model", "query", "documents", "top_n"}
    assert (request["model"], request["query"], request["top_n"]) == ("r", QUERY, len(request["documents"]))
    assert endpoint.rerank.bearers == [f"Bearer {KEY}"]


async def test_tei_is_asked_in_its_own_shape_once_it_has_refused_the_other(endpoint: EmbeddingEndpoint) -> None:
    async with reranker(endpoint, url=tei(endpoint), model="") as asked:
        first, _ = await asked.rerank(QUERY, TEXTS)
        second, _ = await asked.rerank(QUERY, TEXTS)
    assert first == second == [0.0, pytest.approx(1.0), pytest.approx(1 / 3)]
    shapes = [set(request) for request in endpoint.rerank.asked]
    assert shapes == [{"query", "documents", "top_n"}, *[{"query", "texts", "truncate"}] * 2]


async def test_an_endpoint_that_repeats_the_texts_is_read_all_the_same(endpoint: EmbeddingEndpoint) -> None:
    endpoint.rerank.repeats_texts = True
    async with reranker(endpoint) as asked:
        scores, reason = await asked.rerank("短 " * 10, ["长" * MOST_TEXT] * 19 + ["短 " * 10])
    assert reason is None
    assert scores is not None
    assert scores[-1] > scores[0]


async def test_what_is_sent_is_bounded(endpoint: EmbeddingEndpoint) -> None:
    async with reranker(endpoint) as asked:
        scores, _ = await asked.rerank("deploy " * 9_000, ["x" * 99_999, " ", "\ud800 deploy", *["deploy"] * 99])
    (request,) = endpoint.rerank.asked
    assert scores is not None
    assert len(scores) == MOST_TEXTS
    assert len(request["query"]) <= MOST_QUERY
    assert max(map(len, request["documents"])) <= MOST_TEXT
    assert all(text.strip() for text in request["documents"])


async def test_one_text_is_not_worth_a_call(endpoint: EmbeddingEndpoint) -> None:
    async with reranker(endpoint) as asked:
        assert await asked.rerank(QUERY, TEXTS[:1]) == (None, "there is nothing to order")
    assert not endpoint.rerank.asked


def _answers(raw: bytes) -> Callable[[EmbeddingEndpoint], None]:
    return lambda endpoint: setattr(endpoint.rerank, "raw", raw)


def _spoils(spoil: Callable[[list[dict[str, Any]]], Any]) -> Callable[[EmbeddingEndpoint], None]:
    return lambda endpoint: setattr(endpoint.rerank, "spoil", spoil)


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (_answers(b"x" * 100_000), "is not JSON"),
        (_answers(b'{"results": "' + b"x" * 100_000 + b'"}'), "scored 0 of 15 texts"),
        (_answers(b"[" * 100_000), "is not JSON"),
        (_answers(b" " * (MOST_BYTES + 1)), "more than 2,097,152 bytes"),
        (_answers(orjson.dumps({"results": [{"index": n} for n in range(4_000)]})), "scored 0 of 15 texts"),
        (_answers(b"\xff\xfe"), "is not JSON"),
        (_spoils(lambda results: {"results": results[:5]}), "scored 5 of 15 texts"),
        (_spoils(lambda results: {"results": [results[0]] * len(results)}), "scored 1 of 15 texts"),
        (lambda endpoint: setattr(endpoint.rerank, "status", 500), "answered with status 500"),
        (lambda endpoint: setattr(endpoint.rerank, "status", 302), "answered with status 302"),
        (lambda endpoint: setattr(endpoint.rerank, "scorer", constant), "does not tell the query's own words"),
        (lambda endpoint: setattr(endpoint.rerank, "scorer", reversed_order), "does not tell the query's own words"),
        (lambda endpoint: setattr(endpoint, "dead", True), "could not be asked"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_as_none(
    endpoint: EmbeddingEndpoint, spoilt: Callable[[EmbeddingEndpoint], None], why: str
) -> None:
    spoilt(endpoint)
    async with reranker(endpoint) as asked:
        scores, reason = await asked.rerank(QUERY, TEXTS)
    assert scores is None
    assert why in (reason or "")
    assert KEY not in (reason or "")
    assert "a secret" not in (reason or "")
    assert QUERY not in (reason or "")


async def test_a_compressed_answer_is_not_unpacked(endpoint: EmbeddingEndpoint) -> None:
    """However little it is on the wire."""
    endpoint.rerank.raw = gzip.compress(b"x" * 50_000_000)
    async with reranker(endpoint) as asked:
        scores, reason = await asked.rerank(QUERY, TEXTS)
    assert scores is None
    assert "is not JSON" in (reason or "")


async def test_scores_of_places_that_were_not_asked_about_and_further_ones_are_passed_over(
    endpoint: EmbeddingEndpoint,
) -> None:
    odd = [{"index": 99, "relevance_score": 9.0}, {"index": -1, "relevance_score": 9.0}, {"index": "0"}, None]
    endpoint.rerank.spoil = lambda results: {
        "results": [*odd, *results, *({**each, "relevance_score": 5.0} for each in results)]
    }
    async with reranker(endpoint) as asked:
        scores, reason = await asked.rerank(QUERY, TEXTS)
    assert (scores, reason) == ([0.0, pytest.approx(1.0), pytest.approx(1 / 3)], None)


async def test_a_slow_one_costs_its_deadline_and_then_nothing_until_it_answers_again(
    endpoint: EmbeddingEndpoint,
) -> None:
    endpoint.delay = 1.5
    async with reranker(endpoint, deadline=0.1) as asked:
        for _ in range(FAILURES):
            scores, reason = await asked.rerank(QUERY, TEXTS)
            assert scores is None
            assert "within 0.1 s" in (reason or "")
        assert asked.awaited.breaker.reason is not None
        calls = asked.awaited.calls
        began = time.monotonic()
        for _ in range(50):
            assert (await asked.rerank(QUERY, TEXTS))[0] is None
        assert time.monotonic() - began < 50 * 0.1, "nobody waits while the circuit is open"
        assert asked.awaited.calls <= calls + 1
        endpoint.delay = 0.0
        async with asyncio.timeout(PATIENCE):
            while (await asked.rerank(QUERY, TEXTS))[0] is None:  # noqa: ASYNC110 - a request makes it look again
                await asyncio.sleep(0.02)
        assert asked.awaited.breaker.reason is None


@pytest.mark.parametrize(
    ("name", "value"), [("URL", "ftp://x"), ("URL", "rerank"), ("DEADLINE", "0"), ("DEADLINE", "nan")]
)
def test_a_setting_that_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"KLEDGER_RERANK_{name}", value)
    with pytest.raises(InvalidPayload, match="KLEDGER_RERANK"):
        rerank_settings_from_environment()


def test_without_an_address_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_RERANK_MODEL", "r")
    assert rerank_settings_from_environment() is None
    monkeypatch.setenv("KLEDGER_RERANK_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("KLEDGER_RERANK_KEY", KEY)
    settings = rerank_settings_from_environment()
    assert settings is not None
    assert settings.deadline == 1.0
    assert KEY not in repr(settings)

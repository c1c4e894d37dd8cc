"""An embedding endpoint that misbehaves takes nothing down: words are found at once, meaning when it is back."""

from __future__ import annotations

import asyncio
import math
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from kledger import LedgerClient
from ledger.runtime.breaker import FAILURES, LONGEST_STATED, Breaker, stated_pause
from projections.vectors import backlog
from projections.vectors.client import VectorClient
from projections.vectors.embedding.embeddings import PROBE, OpenAIEmbedder
from projections.vectors.embedding.kept import KeptEmbedder, MemoryEmbeddings
from projections.vectors.embedding.queries import QueryEmbedder
from projections.vectors.errors import EmbeddingFailed
from projections.vectors.store.port import Awaiting
from projections.vectors.wire import EmbeddingModel, Settings, Store
from tests.journeys.running_node import RunningNode, caught_up, head, result_of, running, until
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.patience import PATIENCE
from tests.search.hits import hits
from tests.web.visitor import visitor, words

Misbehaviour = Callable[[EmbeddingEndpoint], None]
SLOW = 10.0
HURRIED, UNHURRIED = 0.25, 15.0
"""Deadlines of a question's vector. A machine that is busy misses the first one though the endpoint is well."""


def _dead(endpoint: EmbeddingEndpoint) -> None:
    endpoint.dead = True


def _slow(endpoint: EmbeddingEndpoint) -> None:
    endpoint.delay = SLOW


def _too_many(endpoint: EmbeddingEndpoint) -> None:
    endpoint.retry_after = "2"


def _wrong_size(endpoint: EmbeddingEndpoint) -> None:
    endpoint.dimensions = 32


def _fails(endpoint: EmbeddingEndpoint) -> None:
    endpoint.fail_next = 1_000_000


def _no_json(endpoint: EmbeddingEndpoint) -> None:
    endpoint.body = b"<html>the gateway says hello</html>"


def _no_numbers(endpoint: EmbeddingEndpoint) -> None:
    endpoint.lost, endpoint.nowhere = " ", math.nan


def _refuses(endpoint: EmbeddingEndpoint) -> None:
    endpoint.refuse = " "


def _mend(endpoint: EmbeddingEndpoint) -> None:
    endpoint.dead, endpoint.delay, endpoint.retry_after, endpoint.half = False, 0.0, "", False
    endpoint.body, endpoint.lost, endpoint.refuse = None, "", ""
    endpoint.dimensions, endpoint.fail_next = 64, 0


async def test_what_waits_for_the_vector_process_to_start_is_embedded_at_once_and_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that is yet to come has not failed: no warning, no growing pause, no call for a single text."""
    process = Unembedded(8)
    there: list[Unembedded] = []
    asked = asyncio.Event()

    def client() -> Any:
        asked.set()
        return there[0] if there else None

    monkeypatch.setattr(backlog, "_LOOK_SECONDS", 0.01)
    loop = backlog.Backlog(Texts(), "acme", client, lambda: True)  # type: ignore[arg-type]
    with capture_logs() as logs:
        task = asyncio.create_task(loop.run())
        await asyncio.wait_for(asked.wait(), PATIENCE)
        there.append(process)
        await asyncio.wait_for(process.done.wait(), PATIENCE)
        task.cancel()
    assert process.batches == [8]
    assert logs == []


class Unembedded:
    """A vector process in which so many versions wait for their vectors."""

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting
        self.batches: list[int] = []
        self.done = asyncio.Event()

    async def awaiting(self, most: int) -> list[Awaiting]:
        return [Awaiting(f"k-{n}", 1, n + 1) for n in range(min(most, self.waiting))]

    async def embed(self, texts: list[backlog.Text]) -> None:
        self.batches.append(len(texts))
        self.waiting -= len(texts)
        if not self.waiting:
            self.done.set()

    async def embeddings(self) -> dict[str, Any]:
        return {"awaiting": self.waiting, "trouble": None, "calls": 0, "missed": 0}


class Texts:
    """A view that has the text of every version."""

    async def ask(self, _query: object, _org: str, positions: list[int]) -> list[backlog.Text]:
        return [(f"k-{position - 1}", 1, "task", "content") for position in positions]


async def test_what_an_earlier_life_left_to_embed_is_told_before_the_endpoint_has_answered() -> None:
    """An endpoint that hangs is waited for for minutes: until then the status would say that nothing awaits."""
    process = Unembedded(8)
    asked = asyncio.Event()

    async def hangs(_texts: list[backlog.Text]) -> None:
        asked.set()
        await asyncio.Event().wait()

    process.embed = hangs  # type: ignore[method-assign, assignment]
    loop = backlog.Backlog(Texts(), "acme", lambda: process, lambda: True)  # type: ignore[arg-type, return-value]
    task = asyncio.create_task(loop.run())
    await asyncio.wait_for(asked.wait(), PATIENCE)
    assert loop.state.awaiting == 8
    task.cancel()


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as started:
        yield started


def environment(endpoint: EmbeddingEndpoint, deadline: float = UNHURRIED) -> dict[str, str]:
    return {
        "KLEDGER_EMBEDDING_MODEL": "small",
        "KLEDGER_EMBEDDING_URL": endpoint.url,
        "KLEDGER_EMBEDDING_DIMENSIONS": "64",
        "KLEDGER_EMBEDDING_KEY": "k",
        "KLEDGER_EMBEDDING_DEADLINE": f"{deadline:g}",
    }


def found(node: RunningNode, query: str, path: str = "fused", min_position: int = 0) -> dict[str, Any]:
    asked: dict[str, str | int] = {"q": query, "paths": path, "record": "false", "min_position": min_position}
    answer = httpx.get(f"{node.url}/api/knowledge/search", params=asked, timeout=30)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def health(node: RunningNode) -> dict[str, Any]:
    told: dict[str, Any] = httpx.get(f"{node.url}/health/ready", timeout=30).json()
    return told


@pytest.mark.parametrize("misbehave", [_dead, _slow, _too_many, _wrong_size, _fails, _no_json, _no_numbers, _refuses])
def test_an_endpoint_that_misbehaves_delays_no_search_and_loses_no_item(
    misbehave: Misbehaviour, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    deadline = HURRIED if misbehave is _slow else UNHURRIED
    with running(tmp_path / "node", env=environment(endpoint, deadline)) as node, node.client() as ledger:
        ledger.save("tar", "compress a folder into an archive", ["tool"], scopes=["public"], id="before")
        caught_up(ledger)
        until(lambda: found(node, "archive", "vector")["results"], "the first item is embedded")

        misbehave(endpoint)
        ledger.save("bread", "bake bread in a hot oven", ["tool"], scopes=["public"], id="meanwhile")
        began = time.monotonic()
        told = [found(node, f"bread oven {n}", min_position=head(ledger)) for n in range(FAILURES + 2)]
        assert time.monotonic() - began < SLOW, "no search waits for the endpoint"
        for one in told:
            assert one["results"][0]["id"] == "meanwhile"
            assert [each["part"] for each in one["degraded"]] == ["embeddings"]
            assert one["degraded"][0]["reason"]
            assert one["degraded"][0]["position"] is not None
        with visitor(node.url) as person:  # the pages that are made of such answers say so too
            for address in ("/ui/knowledge", "/ui/why"):
                page = words(person.get(address, q="bread oven").text)
                assert "This page may not be whole: embeddings: " in page, address
            assert "may not be whole" not in words(person.get("/ui/why?q=bread+oven&path=keyword").text)
        assert found(node, "bread", "keyword")["degraded"] == [], "words need no endpoint"
        until(lambda: any("embeddings" in reason for reason in health(node)["reasons"]), "health states it")
        assert health(node)["status"] == "degraded"
        if misbehave is _dead:
            assert result_of(ledger, "verify")["equal"]
            assert result_of(ledger, "rebuild")["equal"]
            assert found(node, "bread oven")["results"][0]["id"] == "meanwhile"
            metrics = httpx.get(f"{node.url}/metrics", timeout=30).text
            assert "kledger_embeddings_awaiting 1.0" in metrics
            assert "kledger_embeddings_available 0.0" in metrics

        _mend(endpoint)
        until(lambda: health(node)["status"] == "ready", "health is good again")
        until(lambda: not found(node, "bake bread")["degraded"], "answers are whole again")
        until(
            lambda: "meanwhile" in {each["id"] for each in found(node, "hot bread", "vector")["results"]},
            "the item has its vector",
        )
        asked = Counter(text for text in endpoint.texts if text != PROBE)
        again = {text: times for text, times in asked.items() if times > 1}
        if misbehave not in (_wrong_size, _no_json, _no_numbers):  # there each answer was of no use
            assert not again, "each text is asked for once"


def test_a_node_that_starts_beside_a_dead_endpoint_is_searched_by_words(
    endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.dead = True
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        for number in range(5):
            ledger.save(
                f"tool {number}", f"item number{number} about bread", ["tool"], scopes=["public"], id=f"item-{number}"
            )
        assert len(found(node, "bread", min_position=head(ledger))["results"]) == 5
        assert node.stop() == 0
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        assert len(found(node, "bread", min_position=head(ledger))["results"]) == 5
        endpoint.dead = False
        until(lambda: len(found(node, "bread", "vector")["results"]) == 5, "what waited over the restart is embedded")
        assert max(Counter(text for text in endpoint.texts if text != PROBE).values()) == 1


@pytest.fixture
async def client(endpoint: EmbeddingEndpoint, tmp_path: Path) -> AsyncIterator[VectorClient]:
    model = EmbeddingModel(endpoint.url, "k", "small", 64, retries=0, deadline=UNHURRIED)
    started = await VectorClient.start(Settings(directory=str(tmp_path), embedding=model))
    yield started
    await started.close()


def stores(count: int) -> list[Store]:
    return [
        Store(f"item-{n}", 1, n, f"task {n}", f"content {n}", ["public"], ["tool"], "user:a")
        for n in range(1, count + 1)
    ]


def texts(count: int) -> list[tuple[str, int, str, str]]:
    return [(each.item_id, 1, each.task, each.content) for each in stores(count)]


async def test_half_a_batch_is_taken_and_the_other_half_asked_for(
    client: VectorClient, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.half = True
    await client.index(stores(9), after=0, checkpoint=9)
    assert (await client.embeddings())["awaiting"] == 9
    await client.embed(texts(9))
    assert (await client.embeddings())["awaiting"] == 0
    assert len(await hits(client, "content 3", ["public"], paths="vector")) == 9
    assert sorted(endpoint.texts) == sorted(["content 3", *(f"{task}\n{content}" for _, _, task, content in texts(9))])


async def test_what_awaits_its_embedding_is_found_by_words_and_survives_a_restart(
    client: VectorClient, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.dead = True
    await client.index(stores(3), after=0, checkpoint=3)
    assert len(await hits(client, "content", ["public"], paths="keyword")) == 3
    with pytest.raises(EmbeddingFailed):
        await client.embed(texts(3))
    await client.close()
    endpoint.dead = False
    model = EmbeddingModel(endpoint.url, "k", "small", 64, deadline=UNHURRIED)
    again = await VectorClient.start(Settings(directory=str(tmp_path), embedding=model))
    assert {each.item_id for each in await again.awaiting(10)} == {"item-1", "item-2", "item-3"}
    await again.embed([*texts(3), ("never-was", 1, "", "")])
    assert await again.awaiting(10) == []
    await again.close()


def refused(ledger: LedgerClient) -> int:
    """How many versions the status says the endpoint refused."""
    state = ledger.status()["embeddings"]
    assert state is not None
    return state["refused"]


def test_a_text_that_the_endpoint_refuses_keeps_no_other_from_its_embedding(
    endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.refuse = "poison"
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        for number, word in enumerate(("bread", "poison", "oven", "cake")):
            ledger.save("food", f"{word} is in the kitchen", ["tool"], scopes=["public"], id=f"item-{number}")
        embedded = {"item-0", "item-2", "item-3"}
        until(lambda: {one["id"] for one in found(node, "kitchen", "vector")["results"]} == embedded, "the others")
        assert len(found(node, "kitchen")["results"]) == 4
        until(lambda: refused(ledger) == 1, "the status counts it")


def test_an_endpoint_that_refuses_everything_costs_no_text_its_embedding(
    endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.refuse = "e"
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        ids = {f"item-{number}" for number in range(4)}
        for one in sorted(ids):
            ledger.save("food", f"{one} is in the kitchen", ["tool"], scopes=["public"], id=one)
        until(lambda: any("embeddings" in reason for reason in health(node)["reasons"]), "health states it")
        assert len(found(node, "kitchen", min_position=head(ledger))["results"]) == 4
        endpoint.refuse = ""
        until(lambda: {one["id"] for one in found(node, "kitchen", "vector")["results"]} == ids, "all of them")
        assert refused(ledger) == 0


@pytest.mark.parametrize("refuses", [_refuses, _no_numbers])
async def test_a_text_asked_for_just_before_the_endpoint_is_mended_is_not_taken_for_one_that_it_refuses(
    refuses: Misbehaviour, endpoint: EmbeddingEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe behind a refusal succeeds then: the text would have no vector for good."""
    refuses(endpoint)
    answer = endpoint.answer

    def mended_for_the_probe(key: str, body: bytes) -> tuple[int, bytes]:
        if PROBE.encode() in body:
            _mend(endpoint)
        return answer(key, body)

    monkeypatch.setattr(endpoint, "answer", mended_for_the_probe)
    paid = OpenAIEmbedder(base_url=endpoint.url, api_key="k", model="small", dimensions=64, retries=0)
    assert (await paid.embed(["bake bread"])).any()
    assert endpoint.texts[-2:] == [PROBE, "bake bread"]
    await paid.close()


class Stored:
    """A view that has the texts of `stores`."""

    async def ask(self, _query: object, _org: str, positions: list[int]) -> list[backlog.Text]:
        return [each for number, each in enumerate(texts(9), 1) if number in positions]


@pytest.mark.parametrize("nowhere", [math.nan, math.inf, 1e300, 0.0, None])
async def test_a_text_whose_vector_points_nowhere_awaits_none_and_every_other_has_its_own(
    nowhere: float | None, client: VectorClient, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.lost, endpoint.nowhere = "content 2", nowhere
    await client.index(stores(4), after=0, checkpoint=4)
    loop = backlog.Backlog(Stored(), "acme", lambda: client, lambda: True)  # type: ignore[arg-type]
    while await loop.step(client):
        pass
    assert loop.state.refused == 1
    assert (await client.embeddings())["awaiting"] == 0
    found = await hits(client, "content 3", ["public"], paths="vector")
    assert {each.item_id for each in found} == {"item-1", "item-3", "item-4"}


@pytest.mark.parametrize("nowhere", [math.nan, None])
def test_a_text_whose_vector_points_nowhere_keeps_no_other_from_its_embedding_and_is_not_kept_so(
    nowhere: float | None, endpoint: EmbeddingEndpoint, tmp_path: Path
) -> None:
    endpoint.lost, endpoint.nowhere = "poison", nowhere
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        for number, word in enumerate(("bread", "poison", "oven", "cake")):
            ledger.save("food", f"{word} is in the kitchen", ["tool"], scopes=["public"], id=f"item-{number}")
        embedded = {"item-0", "item-2", "item-3"}
        until(lambda: {one["id"] for one in found(node, "kitchen", "vector")["results"]} == embedded, "the others")
        until(lambda: refused(ledger) == 1, "the status counts it")
        assert result_of(ledger, "verify")["equal"]
    endpoint.lost = ""  # the model is mended, and what it gave was kept nowhere
    shutil.rmtree(tmp_path / "node" / "vectors")
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        caught_up(ledger)
        assert {one["id"] for one in found(node, "kitchen", "vector")["results"]} == embedded | {"item-1"}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"",
        b"[]",
        b"null",
        b'{"error": "busy"}',
        b'{"data": null}',
        b'{"data": [null]}',
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"embedding": [1.0]}]}',
        b'{"data": [{"index": "0", "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": "AACAPw=="}]}',
        b'{"data": [{"index": 0, "embedding": ["a"]}]}',
        b'{"data": [{"index": 0, "embedding": [[1.0]]}]}',
        b'{"data": [{"index": 0, "embedding": [{}]}]}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [null]}]}',
        b'{"data": [{"index": 0, "embedding": [1e400]}]}',
        b'{"data": [{"index": 0, "embedding": [0]}]}',
    ],
)
async def test_whatever_is_answered_that_holds_no_vectors_is_useless_and_says_whose_answer_it_was(
    body: bytes, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.body = body
    paid = OpenAIEmbedder(base_url=endpoint.url, api_key="k", model="small", dimensions=1, retries=0)
    with pytest.raises(EmbeddingFailed, match=f"small at {endpoint.url} gave ") as failed:
        await paid.embed(["bread"])
    await paid.close()
    assert failed.value.useless
    assert not failed.value.refused, "it gives none for any text"


def test_vectors_of_a_wrong_size_are_paid_for_one_text_a_try(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    many = 60
    endpoint.dimensions = 32
    with running(tmp_path / "node", env=environment(endpoint)) as node, node.client() as ledger:
        items = [{"task": f"bake {n}", "content": f"bread number{n}", "types": ["tool"]} for n in range(many)]
        ledger.save_many([{**item, "scopes": ["public"]} for item in items])
        until(lambda: endpoint.calls > 3, "it is tried again")
        for number in range(20):
            assert found(node, f"bread {number}")["degraded"]
        texts, calls = len(endpoint.texts), endpoint.calls
        assert texts <= many + calls, "a whole batch is paid for once"
        assert sum(text.startswith("bread ") for text in endpoint.texts) <= 1, "no query asks after a useless answer"


async def test_a_query_that_the_endpoint_refuses_keeps_no_other_from_its_vector(endpoint: EmbeddingEndpoint) -> None:
    endpoint.refuse = "poison"
    paid = OpenAIEmbedder(base_url=endpoint.url, api_key="k", model="small", dimensions=64, retries=0)
    queries = QueryEmbedder(KeptEmbedder(paid, MemoryEmbeddings()), paid, 10.0)
    for number in range(FAILURES + 1):
        vector, reason = await queries.vector(f"poison {number}")
        assert vector is None
        assert reason is not None
    assert queries.breaker.reason is None
    vector, reason = await queries.vector("bread")
    assert vector is not None
    assert reason is None
    await queries.close()
    await paid.close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_circuit_opens_after_failures_in_a_row_and_waits_longer_each_time() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        breaker.failed("gone")
    breaker.succeeded()
    for _ in range(FAILURES - 1):
        breaker.failed("gone")
    assert breaker.reason is None
    breaker.failed("gone")
    assert breaker.reason == "gone"
    first = breaker.due()
    clock.now += first
    assert breaker.due() == 0
    breaker.failed("still gone")
    assert breaker.due() > first
    breaker.succeeded()
    assert breaker.reason is None


def test_a_stated_time_opens_the_circuit_at_once_and_is_followed_within_reason() -> None:
    breaker = Breaker(Clock())
    breaker.failed("too many", 20.0)
    assert breaker.due() == 20.0
    breaker.failed("too many", 1e9)
    assert breaker.due() == LONGEST_STATED


def test_calls_that_fail_together_make_the_pause_no_longer_than_one_does() -> None:
    one, together = Breaker(Clock()), Breaker(Clock())
    for number in range(16):
        together.failed("gone")
        if number < FAILURES:
            one.failed("gone")
    assert together.due() == one.due()


@pytest.mark.parametrize("stated", [None, "", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "nan", "inf", "-1"])
def test_what_states_no_time_is_none(stated: str | None) -> None:
    assert stated_pause(stated) is None


def test_a_stated_time_is_seconds() -> None:
    assert [stated_pause(each) for each in ("0", "2", " 1.5 ")] == [0.0, 2.0, 1.5]


def test_useless_answers_open_the_circuit_at_once_and_are_asked_for_ever_more_seldom() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(12):
        breaker.failed("32 numbers", useless=True)
        assert breaker.reason is not None
        clock.now += breaker.due()
    breaker.failed("32 numbers", useless=True)
    assert breaker.due() == LONGEST_STATED


async def test_a_query_that_missed_its_deadline_has_its_answer_the_next_time(endpoint: EmbeddingEndpoint) -> None:
    endpoint.delay = 1.0
    paid = OpenAIEmbedder(base_url=endpoint.url, api_key="k", model="small", dimensions=64, retries=0)
    queries = QueryEmbedder(KeptEmbedder(paid, MemoryEmbeddings()), paid, 0.1)
    assert await queries.vector("bread") == (None, "small gave no vector within 0.1 s")
    async with asyncio.timeout(PATIENCE):
        while queries._pending:
            await asyncio.wait(queries._pending.values())
    vector, reason = await queries.vector("bread")
    assert vector is not None
    assert reason is None
    assert endpoint.texts == ["bread"]
    await queries.close()
    await paid.close()

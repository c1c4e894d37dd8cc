"""The vector process: searching beside indexing, ending with its parent, and kill -9 at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from kledger.contract.errors import InvalidPayload, LogGap
from ledger.broker.server import EmbeddedServer
from projections.vectors import client as client_module
from projections.vectors.client import VectorClient, spare_process, spawned
from projections.vectors.embedding.embeddings import HashedEmbedder
from projections.vectors.embedding.kept_jetstream import ensure_embeddings_stream
from projections.vectors.engine import Engine
from projections.vectors.errors import EmbeddingFailed, VectorProcessGone, VectorStoreFailed
from projections.vectors.store.directories import read_checkpoint
from projections.vectors.store.edge import EdgeStore
from projections.vectors.wire import Change, Close, EmbeddingModel, Erase, KeptAt, Settings, Store, pack
from tests.journeys.running_node import alive, until
from tests.openai_server import embedding_endpoint
from tests.patience import PATIENCE, comes_true
from tests.processes.started import ROOT
from tests.search.hits import hits

PUBLIC = ["public"]
_WORDS = "archive branch commit container deploy image merge network package remote server volume"
WORDS = [*_WORDS.split(), "压缩", "文件", "服务", "网络"]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[VectorClient]:
    started = await VectorClient.start(Settings(directory=str(tmp_path)))
    yield started
    await started.close()


def a_tool(
    item_id: str, content: str, position: int, *, version: int = 1, scopes: Sequence[str] = ("public",)
) -> Store:
    return Store(item_id, version, position, item_id, content, scopes, ["tool"], "user:ann")


def a_history(events: int, seed: int = 1) -> list[tuple[int, list[Change]]]:
    """What each event, by its position, changes: saves, revisions that supersede, and a few erasures."""
    chance = random.Random(seed)
    versions: dict[str, int] = {}
    history: list[tuple[int, list[Change]]] = []
    for position in range(1, events + 1):
        content = " ".join(chance.choices(WORDS, k=12))
        if versions and chance.random() < 0.3:
            item_id = chance.choice(sorted(versions))
            version = versions[item_id]
            versions[item_id] = version + 1
            revised = a_tool(item_id, content, position, version=version + 1)
            history.append((position, [Close(item_id, version, position), revised]))
        elif versions and chance.random() < 0.03:
            item_id = chance.choice(sorted(versions))
            del versions[item_id]
            history.append((position, [Erase([item_id])]))
        else:
            item_id = f"item-{position}"
            versions[item_id] = 1
            history.append((position, [a_tool(item_id, content, position)]))
    return history


async def feed(client: VectorClient, history: list[tuple[int, list[Change]]], batch: int = 40) -> None:
    """Give the process everything behind what it has applied."""
    applied = (await client.status())["applied"]
    ahead = [(position, changes) for position, changes in history if position > applied]
    for at in range(0, len(ahead), batch):
        part = ahead[at : at + batch]
        changes = [change for _, several in part for change in several]
        applied = await client.index(changes, after=applied, checkpoint=part[-1][0])


async def test_what_was_indexed_is_found_at_once(client: VectorClient) -> None:
    await client.index([a_tool("tar", "compress a folder", 1), a_tool("解压", "解压文件", 2)], after=0, checkpoint=2)
    found = await hits(client, "compress folders", PUBLIC)
    assert (found[0].item_id, found[0].version, found[0].valid_from) == ("tar", 1, 1)
    assert [f.item_id for f in await hits(client, "怎么解压一个文件", PUBLIC, paths="keyword")] == ["解压"]
    assert (await client.status())["applied"] == 2


async def test_each_path_gives_only_its_own_scores(client: VectorClient) -> None:
    await client.index([a_tool("tar", "compress a folder", 1)], after=0, checkpoint=1)
    (words,) = await hits(client, "folder", PUBLIC, paths="keyword")
    (near,) = await hits(client, "folder", PUBLIC, paths="vector")
    (both,) = await hits(client, "folder", PUBLIC)
    assert (words.vector, near.keyword) == (None, None)
    assert both.keyword is not None
    assert both.keyword > (words.keyword or 0)  # fragments are evidence too
    assert both.vector == near.vector


async def test_nobody_finds_what_they_may_not_see(client: VectorClient) -> None:
    await client.index([a_tool("diary", "dear diary", 1, scopes=["user:ann"])], after=0, checkpoint=1)
    assert await hits(client, "diary", ["user:bob", "public"]) == []
    assert await hits(client, "diary", []) == []
    assert len(await hits(client, "diary", ["user:ann"])) == 1


async def test_a_batch_that_was_applied_is_skipped(client: VectorClient) -> None:
    history = a_history(60)
    await feed(client, history)
    digest = await client.digest()
    everything = [change for _, changes in history for change in changes]
    assert await client.index(everything, after=0, checkpoint=60) == 60
    assert await client.digest() == digest


async def test_a_missing_batch_is_refused(client: VectorClient) -> None:
    await client.index([a_tool("one", "first", 1)], after=0, checkpoint=1)
    with pytest.raises(LogGap, match="feed again from 2"):
        await client.index([a_tool("three", "third", 3)], after=2, checkpoint=3)
    assert (await client.status())["applied"] == 1


async def test_a_batch_that_ends_before_it_begins_is_refused(client: VectorClient) -> None:
    with pytest.raises(InvalidPayload):
        await client.index([], after=5, checkpoint=4)


async def test_batches_sent_together_are_applied_in_order(client: VectorClient) -> None:
    history = a_history(200)
    sent = [client.index(changes, after=position - 1, checkpoint=position) for position, changes in history]
    assert await asyncio.gather(*sent) == list(range(1, 201))


async def test_searches_are_answered_while_an_import_runs(client: VectorClient) -> None:
    history = a_history(3_000)
    await feed(client, history[:200])
    importing = asyncio.create_task(feed(client, history, batch=500))
    answered = 0
    while not importing.done():
        await hits(client, "archive branch", PUBLIC)
        answered += 1
    await importing
    # without precedence a search would wait for a whole batch of 500: there are six
    assert answered > 60


async def test_the_digest_is_the_same_for_any_split_into_batches(tmp_path: Path) -> None:
    digests = set()
    for name, batch in (("small", 7), ("large", 500)):
        client = await VectorClient.start(Settings(directory=str(tmp_path / name)))
        await feed(client, a_history(400), batch)
        if name == "large":
            await client.optimize()
        digests.add(await client.digest())
        await client.close()
    assert len(digests) == 1


async def test_a_closed_process_opens_again_where_it_was(tmp_path: Path) -> None:
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    await feed(client, a_history(50))
    digest = await client.digest()
    await client.close()
    again = await VectorClient.start(Settings(directory=str(tmp_path)))
    status = await again.status()
    assert (status["checkpoint"], status["applied"]) == (50, 50)
    assert await again.digest() == digest
    await again.close()


async def test_killed_at_any_moment_and_fed_again_it_says_the_same(tmp_path: Path) -> None:
    history = a_history(1_200)
    undisturbed = await VectorClient.start(Settings(directory=str(tmp_path / "undisturbed")))
    await feed(undisturbed, history)
    expected = await undisturbed.digest()
    await undisturbed.close()

    chance = random.Random(7)
    kills = 0
    while kills < 6:
        client = await VectorClient.start(Settings(directory=str(tmp_path / "killed")))
        feeding = asyncio.create_task(feed(client, history, batch=25))
        await asyncio.sleep(chance.uniform(0.0, 0.4))  # the moment is meant to be any
        if chance.random() < 0.5 and not feeding.done():
            flushing = asyncio.create_task(client.flush())
            await asyncio.sleep(chance.uniform(0.0, 0.03))
            flushing.cancel()
        os.kill(client.pid, signal.SIGKILL)
        await client.wait()
        kills += 1
        await asyncio.gather(feeding, return_exceptions=True)
        await client.close()

    client = await VectorClient.start(Settings(directory=str(tmp_path / "killed")))
    await feed(client, history)
    assert await client.digest() == expected
    found = await hits(client, "archive branch", PUBLIC, limit=5)
    await client.close()
    assert len(found) >= 5


async def test_whoever_waits_hears_that_the_process_has_gone(client: VectorClient) -> None:
    os.kill(client.pid, signal.SIGSTOP)  # else it may have answered before it is killed
    feeding = asyncio.create_task(client.index([a_tool("late", "archive", 1)], after=0, checkpoint=1))
    await comes_true(lambda: client._waiting)
    os.kill(client.pid, signal.SIGKILL)
    with pytest.raises(VectorProcessGone, match="feed it from its checkpoint"):
        await feeding
    with pytest.raises(VectorProcessGone):
        await hits(client, "git", PUBLIC)
    assert not client.running


async def test_a_process_that_hangs_is_killed_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    monkeypatch.setattr(client_module, "_END_SECONDS", 0.1)
    os.kill(client.pid, signal.SIGSTOP)
    await client.close()
    assert await client.wait() == -signal.SIGKILL


async def test_a_process_that_ends_just_before_it_is_killed_is_closed_all_the_same(
    client: VectorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = client._process.kill

    def ended() -> None:
        kill()
        raise ProcessLookupError

    monkeypatch.setattr(client_module, "_END_SECONDS", 0.0)
    monkeypatch.setattr(client._process, "kill", ended)
    os.kill(client.pid, signal.SIGSTOP)
    await client.close()
    assert not client.running


ASKED: dict[str, Callable[[VectorClient], Awaitable[object]]] = {
    "index": lambda client: client.index([a_tool("late", "archive", 1)], after=0, checkpoint=1),
    "examine": lambda client: client.examine([a_tool("late", "archive", 1)], searched=1),
    "erase": lambda client: client.erase(["late"]),
    "status": lambda client: client.status(),
    "awaiting": lambda client: client.awaiting(1),
    "embeddings": lambda client: client.embeddings(),
    "embed": lambda client: client.embed([("late", 1, "task", "content")]),
    "flush": lambda client: client.flush(),
    "clear": lambda client: client.clear(),
    "optimize": lambda client: client.optimize(),
    "digest": lambda client: client.digest(),
    "search": lambda client: hits(client, "git", PUBLIC),
}


@pytest.mark.parametrize("verb", ASKED)
async def test_a_process_that_hangs_holds_nobody_for_ever_whatever_it_was_asked(
    client: VectorClient, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(client_module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(client_module, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(client_module, "SILENT_AT_LENGTH_SECONDS", 0.2)
    os.kill(client.pid, signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(VectorProcessGone, match="answered nothing for"):
            await ASKED[verb](client)
        assert await client.wait() == -signal.SIGKILL
    assert not client.running


async def test_work_at_length_is_no_hanging_nor_is_silence_where_nothing_was_asked(
    client: VectorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(client_module, "SILENT_SECONDS", 0.05)
    os.kill(client.pid, signal.SIGSTOP)
    asleep = asyncio.create_task(client.digest())
    also = asyncio.create_task(client.status())  # waits behind the digest
    await comes_true(lambda: client._silent > 0.5)
    monkeypatch.setattr(client_module, "SILENT_SECONDS", 60.0)
    os.kill(client.pid, signal.SIGCONT)
    await asleep
    assert (await also)["applied"] == 0
    await comes_true(lambda: client._silent == 0)


async def test_a_process_that_says_more_in_a_line_than_is_kept_goes_on(tmp_path: Path) -> None:
    long = "import sys; sys.stderr.write('x' * 1_000_000 + '\\nlast words'); sys.stderr.flush()"
    ready = f"sys.stdout.buffer.write({pack({'id': 0, 'ok': {'vector_weight': 0.5}})!r}); sys.stdout.flush()"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"{long}; {ready}; sys.stdin.read(1)", stdin=pipe, stdout=pipe, stderr=pipe
    )
    client = await VectorClient.start(Settings(directory=str(tmp_path)), process)
    assert client.vector_weight == 0.5
    await client.close()
    with pytest.raises(VectorProcessGone, match="last words"):
        await client.status()


async def test_a_process_that_hangs_as_it_starts_is_told_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "START_SECONDS", 0.1)
    monkeypatch.setattr(client_module, "_END_SECONDS", 0.1)
    process = await spawned()
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(VectorProcessGone, match="was not ready within"):
        await VectorClient.start(Settings(directory=str(tmp_path)), process)
    assert process.returncode == -signal.SIGKILL


def test_the_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys, time\n"
        "from projections.vectors.client import VectorClient, spare_process\n"
        "from projections.vectors.wire import Settings\n"
        "async def main():\n"
        f"    client = await VectorClient.start(Settings(directory={str(tmp_path)!r}))\n"
        "    print(client.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
        parent.wait()
    until(lambda: not alive(child), f"the vector process {child} ends")


async def test_a_directory_that_does_not_load_is_named(tmp_path: Path) -> None:
    client = await VectorClient.start(Settings(directory=str(tmp_path)))
    await feed(client, a_history(5))
    await client.close()
    _spoil(tmp_path)
    with pytest.raises(VectorStoreFailed, match=r"delete .* to have them built anew"):
        await VectorClient.start(Settings(directory=str(tmp_path)))


def _spoil(directory: Path) -> None:
    """Overwrite every file of the one shard in this directory."""
    files = [path for path in directory.glob("*/shard/**/*") if path.is_file()]
    assert files
    for file in files:
        file.write_bytes(b"not what it was")


@pytest.mark.parametrize("content", [b"", b"soon", b"\xa2\x00", "²".encode(), b"1.5"])
def test_a_checkpoint_that_holds_no_position_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint").write_bytes(content)
    with pytest.raises(VectorStoreFailed, match=r"checkpoint does not hold a position; delete .* built anew"):
        read_checkpoint(tmp_path)


async def test_settings_that_say_nowhere_are_refused() -> None:
    with pytest.raises(InvalidPayload, match="needs a directory"):
        await VectorClient.start(Settings())


class FullDisk(EdgeStore):
    """A store whose disk is full when the checkpoint is due."""

    def set_checkpoint(self, position: int) -> None:
        raise VectorStoreFailed(f"no space left for checkpoint {position}")


async def test_a_checkpoint_that_fails_ends_the_work_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projections.vectors.engine.CHECKPOINT_SECONDS", 0.05)
    embedder = HashedEmbedder()
    engine = Engine(FullDisk(tmp_path, embedder.model, embedder.dimensions), embedder)
    working = asyncio.create_task(engine.run())
    with pytest.raises(VectorStoreFailed, match="no space left for checkpoint 1"):
        await asyncio.gather(engine.index([a_tool("tar", "compress", 1)], after=0, checkpoint=1), working)


async def test_an_unknown_verb_is_refused_and_harms_nothing(client: VectorClient) -> None:
    with pytest.raises(InvalidPayload, match="knows no 'dance'"):
        await client._ask("dance")
    assert (await client.status())["applied"] == 0


async def test_paid_embeddings_of_items_are_kept_in_the_log_and_cost_nothing_on_a_new_node(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as ended:
        server = EmbeddedServer(tmp_path / "nats")
        access = await server.start()
        ended.push_async_callback(server.stop)
        await ensure_embeddings_stream(access)
        endpoint = ended.enter_context(embedding_endpoint())
        model = EmbeddingModel(endpoint.url, "secret", "small", 64, deadline=30.0)
        kept_at = KeptAt(access.url, "reader", access.passwords["reader"])
        history = a_history(100)
        digests, calls = set(), []
        for name in ("first", "second"):
            client = await VectorClient.start(
                Settings(directory=str(tmp_path / name), embedding=model, kept_at=kept_at)
            )
            ended.push_async_callback(client.close)
            await feed(client, history)
            texts = {(c.item_id, c.version): c for _, changes in history for c in changes if isinstance(c, Store)}
            while waiting := await client.awaiting(50):
                known = [texts[each.item_id, each.version] for each in waiting]
                await client.embed([(one.item_id, one.version, one.task, one.content) for one in known])
            calls.append(endpoint.calls)
            for _ in range(2):
                assert len(await hits(client, "archive branch", PUBLIC, limit=3, paths="vector")) == 3
            digests.add(await client.digest())
            calls.append(endpoint.calls)
        assert len(digests) == 1
        items, asked, again, asked_again = calls
        assert asked == items + 1, "a question is paid for once"
        assert again == asked, "no item is paid for on a new node"
        assert asked_again == again + 1, "a question is known to the node alone that was asked"


async def test_a_failed_embedding_stops_no_feed(tmp_path: Path) -> None:
    with embedding_endpoint() as endpoint:
        model = EmbeddingModel(endpoint.url, "secret", "small", 64, retries=0)
        client = await VectorClient.start(Settings(directory=str(tmp_path), embedding=model))
        endpoint.refuse = "poison"
        texts = ["good", "poison", "good"]
        sent = [
            client.index([a_tool(f"item-{n}", text, n)], after=n - 1, checkpoint=n)
            for n, text in enumerate(texts, start=1)
        ]
        assert await asyncio.gather(*sent) == [1, 2, 3]
        with pytest.raises(EmbeddingFailed) as failed:
            await client.embed([("item-2", 1, "item-2", "poison")])
        assert failed.value.refused
        assert len(await client.awaiting(9)) == 3
        await client.close()


def test_a_frame_says_its_length() -> None:
    assert pack({"id": 1}) == b'\x08\x00\x00\x00{"id":1}'


def test_without_a_model_it_imports_no_client_of_the_broker_and_nothing_that_reads_requests() -> None:
    """A start waits for what it imports: these take nearly half a second of a processor."""
    program = (
        "import sys, projections.vectors.process\n"
        "print([m for m in ('nats', 'pydantic', 'openai', 'qdrant_client', 'duckdb') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_a_process_that_loads_ahead_is_taken_and_one_that_died_meanwhile_is_not(tmp_path: Path) -> None:
    async with spare_process() as spare:
        client = await VectorClient.start(Settings(directory=str(tmp_path / "taken")), spare)
        assert client.pid == spare.pid
        await client.close()
        assert spare.returncode == 0
    async with spare_process() as spare:
        spare.kill()
        await spare.wait()
        client = await VectorClient.start(Settings(directory=str(tmp_path / "other")), spare)
        assert client.pid != spare.pid
        await client.close()


async def test_a_process_that_nobody_takes_ends_with_whoever_loaded_it() -> None:
    async with spare_process() as spare:
        assert spare.returncode is None
    assert spare.returncode is not None

"""Vectors that begin anew, or whose process is killed or hangs: what is missing meanwhile is no damage."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import ViewBehind
from kledger.contract.words import EVERYTHING
from ledger.store.in_memory import MemoryLedger
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.live.projector import Projector
from projections.vectors import renewal, searches
from projections.vectors.client import VectorClient
from projections.vectors.errors import VectorProcessGone
from projections.vectors.feed import VectorFeed
from projections.vectors.generations import directory_in_use
from projections.vectors.on_disk import mark_of
from projections.vectors.soundness import sound
from projections.vectors.store.port import SearchOptions
from projections.vectors.wire import Settings, Store
from tests.patience import PATIENCE
from tests.projections.histories import saved


@pytest.fixture
async def fed(tmp_path: Path) -> AsyncIterator[VectorFeed]:
    """Twenty versions in a vector process, and the view that they follow from; nothing examines them by itself."""
    ledger, view = MemoryLedger(), View(Instance(open_view(None)))
    projector = Projector(ledger, view)
    feed = VectorFeed(view, Settings(str(tmp_path)), "default")
    await feed.start()
    tasks = [asyncio.create_task(projector.run()), asyncio.create_task(feed._run())]
    last = (await ledger.append_many([saved(f"k{n}") for n in range(20)]))[-1].position
    await view.wait_for(last)
    await feed.wait_for(last, PATIENCE)
    yield feed
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await feed.close()
    projector.close()
    view.close()


async def test_vectors_that_begin_anew_while_they_are_examined_are_not_damaged(
    fed: VectorFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    examining, go_on, examine = asyncio.Event(), asyncio.Event(), VectorClient.examine

    async def slowly(self: VectorClient, stores: Sequence[Store], *, searched: int = 0) -> list[str]:
        examining.set()
        await go_on.wait()
        return await examine(self, stores, searched=searched)

    monkeypatch.setattr(VectorClient, "examine", slowly)
    looking = asyncio.create_task(fed.canary.look())
    await examining.wait()
    fed.will_begin_anew()
    beginning = asyncio.create_task(fed.begin_anew())
    for _ in range(10):  # it goes as far as it may
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(looking, beginning)
    await fed.wait_for(20, PATIENCE)
    assert fed.canary.damage is None
    await fed.canary.look()
    assert fed.canary.damage is None
    assert (await fed.status())["count"] == 20


async def test_a_process_that_is_killed_while_its_vectors_are_examined_leaves_no_damage(
    fed: VectorFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking, go_on, ask = asyncio.Event(), asyncio.Event(), View.ask

    async def slowly(self: View, question: Callable[..., Any], *about: Any) -> Any:
        answer = await ask(self, question, *about)
        asking.set()
        await go_on.wait()
        return answer

    killed = fed.client
    # The process that comes next has nothing of what this one has, as if none of it was durable.
    fed._settings = Settings(str(tmp_path / "nothing yet"))
    with monkeypatch.context() as patched:
        patched.setattr(View, "ask", slowly)
        looking = asyncio.create_task(fed.canary.look())
        await asking.wait()
        os.kill(killed.pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            await fed._view.until(lambda: fed.client is not killed)
        go_on.set()
        with pytest.raises(VectorProcessGone):
            await looking
    assert fed.canary.damage is None
    await fed.wait_for(20, PATIENCE)
    await fed.canary.look()
    assert fed.canary.damage is None


async def test_a_process_that_ends_while_it_is_compared_makes_no_difference(
    fed: VectorFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, examine = fed.client, VectorClient.examine

    async def beside_its_end(self: VectorClient, stores: Sequence[Store], *, searched: int = 0) -> list[str]:
        if self is killed:
            os.kill(killed.pid, signal.SIGKILL)
        return await examine(self, stores, searched=searched)

    monkeypatch.setattr(VectorClient, "examine", beside_its_end)
    compared = await sound(fed, fed._view)
    assert (compared["equal"], compared["differences"]) == (True, [])
    assert fed.client is not killed


async def test_vectors_begin_anew_once_though_two_see_to_it(fed: VectorFeed, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared, clear = [], VectorClient.clear

    async def counted(self: VectorClient) -> int:
        cleared.append(self)
        return await clear(self)

    monkeypatch.setattr(VectorClient, "clear", counted)
    fed.will_begin_anew()
    await asyncio.gather(fed.begin_anew(), fed.begin_anew())
    await fed.wait_for(20, PATIENCE)
    assert len(cleared) == 1
    assert (await fed.status())["count"] == 20


async def test_vectors_that_are_compared_before_their_process_has_started_are_waited_for(
    fed: VectorFeed, tmp_path: Path
) -> None:
    await fed.close()
    started = VectorFeed(fed._view, Settings(str(tmp_path)), "default")
    await started.start()
    with pytest.raises(VectorProcessGone):
        _ = started.client  # there are vectors on disk, and so the start does not wait
    try:
        compared = await sound(started, fed._view)
        assert (compared["equal"], compared["differences"]) == (True, [])
    finally:
        await started.close()


async def test_a_search_that_a_hanging_process_does_not_answer_ends_with_an_error(
    fed: VectorFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SearchOptions([EVERYTHING])
    found = (await fed.searches.answer("deploy", options, "fused")).found
    monkeypatch.setattr(searches, "_ANSWER_PATIENCE", 0.1)
    os.kill(fed.client.pid, signal.SIGSTOP)
    with pytest.raises(ViewBehind, match="does not answer a search"):
        await fed.searches.answer("deploy", options, "fused")
    os.kill(fed.client.pid, signal.SIGCONT)
    monkeypatch.setattr(searches, "_ANSWER_PATIENCE", PATIENCE)
    assert (await fed.searches.answer("deploy", options, "fused")).found == found


async def test_a_process_that_is_still_asked_where_it_is_while_another_takes_over_is_closed(
    fed: VectorFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = VectorFeed(fed._view, Settings(str(tmp_path / "old")), "default")
    settings = Settings(str(tmp_path / "new"))
    other, asked, status = await VectorClient.start(settings), list[VectorClient](), VectorClient.status

    async def taken_over(self: VectorClient) -> dict[str, Any]:
        asked.append(self)
        await feed.replace(other, settings, 0)
        return await status(self)

    monkeypatch.setattr(VectorClient, "status", taken_over)
    await feed._start()
    assert feed.client is other
    assert other.running
    assert [each.running for each in asked] == [False]
    await feed.close()


async def test_a_mark_to_begin_anew_is_of_the_vectors_in_use(fed: VectorFeed, tmp_path: Path) -> None:
    before, later = Settings(str(tmp_path / "second")), Settings(str(tmp_path / "third"))
    async with fed.turn:
        await fed.replace(await VectorClient.start(before), before, 0)
        fed.will_begin_anew()
        assert mark_of(before).exists(), "for whoever starts after a crash"
        await fed.replace(await VectorClient.start(later), later, 0)
        assert mark_of(later).exists()
    await fed.begin_anew()
    assert not mark_of(later).exists()


@pytest.mark.parametrize("step", ["point_to", "discard_others"])
@pytest.mark.parametrize("done", [False, True])
async def test_a_mark_to_begin_anew_outlives_a_renewal_that_is_cut_before_and_behind_each_step(
    fed: VectorFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, done: bool
) -> None:
    as_it_is: Callable[..., None] = getattr(renewal, step)

    def cut(*about: Any) -> None:
        if done:
            as_it_is(*about)
        raise ConnectionAbortedError

    monkeypatch.setattr(renewal, step, cut)
    root = tmp_path / "renewed"
    feed = VectorFeed(fed._view, Settings(str(root)), "default")  # nothing runs it, and so nothing begins anew
    await feed.start()
    feed.will_begin_anew()
    with pytest.raises(ConnectionAbortedError):
        await renewal.renew(feed, feed._view, root, [])
    await feed.close()
    assert mark_of(Settings(str(directory_in_use(root)))).exists(), "for whoever starts after a crash"

"""A view never goes on with another log than the one it was folded from, however many events that has."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import pytest

from kledger.contract.errors import LedgerError, LogGap, LogReplaced
from ledger.backup.restoring import restore
from ledger.backup.writing import back_up
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.store.jetstream import JetStreamLedger
from projections.engine.duckdb import open_view
from projections.engine.same_log import check_same_log
from projections.engine.view import Instance, View
from projections.live.projector import Projector
from projections.live.view_file import LiveFiles
from tests.conftest import saved
from tests.journeys.running_node import RunningNode, caught_up, items, result_of, running, until
from tests.patience import comes_true


@asynccontextmanager
async def broker(directory: Path) -> AsyncIterator[JetStreamLedger]:
    server = EmbeddedServer(directory)
    access = await server.start()
    await ensure_stream(access)
    ledger = await JetStreamLedger.connect(access)
    try:
        yield ledger
    finally:
        await ledger.close()
        await server.stop()


@pytest.fixture
async def copies(tmp_path: Path) -> Path:
    """A broker's directory as it was with 10 events (`older`), with 15 (`now`), and one that went another way."""
    async with broker(tmp_path / "now") as ledger:
        await ledger.append_many([saved(f"k{n}") for n in range(10)])
    shutil.copytree(tmp_path / "now", tmp_path / "older")
    shutil.copytree(tmp_path / "now", tmp_path / "other")
    async with broker(tmp_path / "now") as ledger:
        await ledger.append_many([saved(f"k{n}") for n in range(10, 15)])
    async with broker(tmp_path / "other") as ledger:
        await ledger.append_many([saved(f"other-{n}") for n in range(10)])
    return tmp_path


async def folded(ledger: JetStreamLedger, view: View, to: int) -> None:
    projector = Projector(ledger, view)
    task = asyncio.create_task(projector.run())
    await view.wait_for(to)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    projector.close()


async def trouble_of(ledger: JetStreamLedger, view: View) -> LedgerError:
    """What a projector says that begins on this log, and folds nothing."""
    projector = Projector(ledger, view)
    task = asyncio.create_task(projector.run())
    await comes_true(lambda: projector.trouble is not None)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    projector.close()
    assert projector.trouble is not None
    return projector.trouble


async def test_a_view_stops_at_an_older_log_and_at_one_that_went_another_way(copies: Path) -> None:
    view = View(Instance(open_view(None)))
    async with broker(copies / "now") as ledger:
        await folded(ledger, view, 15)
    async with broker(copies / "older") as ledger:
        trouble = await trouble_of(ledger, view)
        assert isinstance(trouble, LogGap)
        assert "ends at position 10" in trouble.message
        assert "kledger restore-backup" in trouble.message
        assert "kledger repair" in trouble.message
    async with broker(copies / "other") as ledger:
        trouble = await trouble_of(ledger, view)
        assert isinstance(trouble, LogReplaced)
        assert "position 15" in trouble.message
        assert "views and vectors" in trouble.message
    assert view.position == 15
    async with broker(copies / "now") as ledger:
        await check_same_log(ledger, view)
        await ledger.append(saved("k15"))
        await folded(ledger, view, 16)
    view.close()


async def test_a_view_goes_on_with_a_stream_that_was_restored(copies: Path) -> None:
    view = View(Instance(open_view(None)))
    async with broker(copies / "now") as ledger:
        await folded(ledger, view, 15)
        await back_up(ledger, copies / "b")
    server = EmbeddedServer(copies / "new")
    await restore(await server.start(), copies / "b")
    await server.stop()
    async with broker(copies / "new") as ledger:
        await check_same_log(ledger, view)
        await ledger.append(saved("goes on"))
        await folded(ledger, view, 16)
    view.close()


@pytest.mark.parametrize(("comes_back", "error"), [("older", LogGap), ("other", LogReplaced)])
async def test_a_reader_notices_that_its_broker_came_back_with_another_directory(
    copies: Path, comes_back: str, error: type[LedgerError]
) -> None:
    server = EmbeddedServer(copies / "now")
    ledger = await JetStreamLedger.connect(await server.start())
    reading = ledger.read(follow=True)
    seen = 0
    while seen < 15:
        seen = (await anext(reading))[-1].position
    waiting = asyncio.create_task(anext(reading))
    await server.stop()
    shutil.copy(copies / "now" / "port", copies / comes_back / "port")
    back = EmbeddedServer(copies / comes_back)
    await back.start()
    with pytest.raises(error):
        await asyncio.wait_for(waiting, 40)
    await ledger.close()
    await back.stop()


async def test_a_node_on_an_older_directory_that_grew_past_its_views_says_so_and_folds_nothing(copies: Path) -> None:
    """The node folded 15 events; its broker has the first 10 of them and 10 others."""
    data = copies / "data"
    files = LiveFiles(data / "views", None)
    view = View(files.open_live())
    async with broker(copies / "now") as ledger:
        await folded(ledger, view, 15)
    view.close()
    shutil.copytree(copies / "other", data / "broker")
    with running(data) as node, node.client() as client:
        until(lambda: not client.status()["healthy"], "the node is not healthy")
        told = client.status()
        reasons = " ".join(told["reasons"])
        assert "position 15" in reasons
        assert "kledger restore-backup" in reasons
        assert (told["stream"]["head"], told["views"][0]["position"]) == (20, 15)
        assert client.sql("SELECT count(*) FROM events WHERE entity_id LIKE 'other-%'")["rows"] == [[0]]
        assert client.health()["status"] == "unhealthy"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of two stopped nodes: `long` with 40 events, `short` with 10 others."""
    folder = tmp_path_factory.mktemp("nodes")
    for name, count in (("long", 40), ("short", 10)):
        with running(folder / name) as node, node.client() as ledger:
            ledger.save_many(items(count, name))
            caught_up(ledger)
    return folder


def with_views_of(other: str, nodes: Path, own: str, data: Path) -> AbstractContextManager[RunningNode]:
    shutil.copytree(nodes / own, data)
    shutil.rmtree(data / "views")
    shutil.copytree(nodes / other / "views", data / "views")
    return running(data)


@pytest.mark.parametrize(("own", "other"), [("long", "short"), ("short", "long")])
def test_views_of_another_node_are_told_and_folded_on_once_they_are_made_anew(
    own: str, other: str, nodes: Path, tmp_path: Path
) -> None:
    with with_views_of(other, nodes, own, tmp_path / "data") as node, node.client() as ledger:
        until(lambda: any("stands still" in reason for reason in ledger.status()["reasons"]), "the node says so")
        assert any("kledger rebuild" in reason for reason in ledger.status()["reasons"])
        rebuilt = result_of(ledger, "rebuild")
        assert (rebuilt["swapped"], rebuilt["position"]) == (True, ledger.status()["stream"]["head"])
        assert rebuilt["certificate"] is not None, "it is for what was made, at the end of this log"
        saved_after = ledger.save("Go on", "without a restart", ["tool"], scopes=["public"])
        assert ledger.get(saved_after["id"])["content"] == "without a restart"
        caught_up(ledger)
        until(lambda: ledger.status()["healthy"], "the node is well", instead=ledger.status()["reasons"])
        assert result_of(ledger, "verify")["equal"]


def test_a_comparison_never_folds_a_log_into_the_views_of_another(nodes: Path, tmp_path: Path) -> None:
    """They would be of both from then on, and the next start could not tell."""
    data = tmp_path / "data"
    with with_views_of("short", nodes, "long", data) as node, node.client() as ledger:
        with pytest.raises(LedgerError) as told:
            result_of(ledger, "verify")
        assert told.value.code == "log_replaced"
        assert ledger.status()["views"][0]["position"] == 10
    with running(data) as node, node.client() as ledger:
        until(lambda: any("stands still" in reason for reason in ledger.status()["reasons"]), "it is still told")

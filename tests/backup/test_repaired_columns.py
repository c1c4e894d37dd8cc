"""A repair writes a new backup that has the decoded columns which the old one had, and goes on with them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ledger.archive.archived import Archived
from ledger.backup.checking import check_backup
from ledger.backup.manifest import load
from ledger.backup.repairing import repair
from ledger.backup.restoring import restore
from ledger.backup.writing import back_up
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.event import StoredEvent
from tests.archive.archives import archived
from tests.archive.test_sealed_columns import KEYS, LOG, SIZE, keyring
from tests.backup.test_columns import NAMES, TAIL, from_backup, key_of
from tests.conftest import LoopThread, remove_streams
from tests.integrity.logs import ListedLedger

WHOLE = [*LOG, LOG[0]._replace(position=len(LOG) + 1, message_id="later")]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data, loop = tmp_path_factory.mktemp("node"), LoopThread()
    loop.run(archived(data, LOG[:-TAIL], SIZE, keyring(KEYS)))
    yield data
    loop.close()


async def kept(node: Path, where: Path, log: list[StoredEvent], *, columns: bool | None) -> int | None:
    return (await back_up(ListedLedger(log), where, archived=Archived.of_node(node), columns=columns)).columns


@pytest.fixture
async def damaged(embedded_server: EmbeddedServer, tmp_path: Path) -> AsyncIterator[BrokerAccess]:
    """A broker whose stream has another event in one place."""
    log = [*WHOLE[:2], WHOLE[2]._replace(body=b"{}"), *WHOLE[3:]]
    await back_up(ListedLedger(log), tmp_path / "damaged")
    await remove_streams(embedded_server.access)
    await restore(embedded_server.access, tmp_path / "damaged")
    yield embedded_server.access
    await remove_streams(embedded_server.access)


async def test_it_has_those_of_the_old_one_and_views_are_folded_from_them(
    node: Path, tmp_path: Path, damaged: BrokerAccess
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    assert await kept(node, old, LOG, columns=True) == len(NAMES)
    repaired = await repair(damaged, old, new)
    assert repaired.changed == [(3, 3)]
    assert sorted(load(new).columns or ()) == NAMES
    checked = check_backup(new)
    assert (checked.problems, checked.position, checked.columns) == ([], len(WHOLE), len(NAMES))
    await kept(node, tmp_path / "plain", WHOLE, columns=False)
    assert await from_backup(new, key_of(node)) == await from_backup(tmp_path / "plain", key_of(node))
    assert await kept(node, new, WHOLE, columns=None) == len(NAMES), "it goes on with them"


async def test_columns_of_the_old_one_that_are_damaged_are_left_out(
    node: Path, tmp_path: Path, damaged: BrokerAccess
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await kept(node, old, LOG, columns=True)
    shutil.rmtree(old / "columns" / NAMES[1])
    await repair(damaged, old, new)
    assert sorted(load(new).columns or ()) == [NAMES[0], *NAMES[2:]]
    assert check_backup(new).problems == []


async def test_it_has_none_where_the_old_one_had_none(node: Path, tmp_path: Path, damaged: BrokerAccess) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await kept(node, old, LOG, columns=None)
    await repair(damaged, old, new)
    assert load(new).columns is None
    assert not (new / "columns").exists()

"""A command whose own broker cannot write says so, instead of that it does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.broker import disk_watch
from ledger.broker.server import EmbeddedServer
from producers.cli.commands.backup.broker import own_broker


async def _in_trouble(server: EmbeddedServer) -> None:
    while server.trouble is None:  # noqa: ASYNC110  # it is looked at, and tells nobody
        await asyncio.sleep(0.05)


async def test_a_broker_that_cannot_write_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch.BrokerDisk, "_hindrance", lambda _disk: ("its disk is full", "there is room"))
    with pytest.raises(BrokerUnavailable, match="its disk is full: make room, and run it again"):  # noqa: PT012
        async with own_broker(tmp_path) as server:
            with server.files.log.open("a") as log:
                log.write("no space left on device\n")
            await asyncio.wait_for(_in_trouble(server), 30)
            raise BrokerUnavailable("did not answer")


async def test_one_that_can_is_not(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnavailable, match="did not answer"):
        async with own_broker(tmp_path):
            raise BrokerUnavailable("did not answer")

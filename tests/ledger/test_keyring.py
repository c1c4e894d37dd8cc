"""A keyring asks the vault once a name, from any thread, and never keeps a node from stopping."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import Held, MemoryVault, Tombstone
from tests.patience import PATIENCE


class CountingVault(MemoryVault):
    """Remembers what it was asked; silent for as long as it is told to be."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []
        self.speaks = asyncio.Event()
        self.speaks.set()

    async def look(self, names: Iterable[str]) -> dict[str, Held]:
        self.asked.append(list(names))
        await self.speaks.wait()
        return self.held(self.asked[-1])


async def test_a_thread_asks_the_vault_on_the_loop_once_a_name() -> None:
    vault = CountingVault()
    key = await vault.obtain("user:ada")
    keyring = Keyring.over(vault, asyncio.get_running_loop())
    for _ in range(2):
        assert await asyncio.to_thread(keyring.look, "user:ada") is key
    assert vault.asked == [["user:ada"]]


async def test_a_name_without_a_key_is_asked_for_again() -> None:
    vault = CountingVault()
    keyring = Keyring.over(vault, asyncio.get_running_loop())
    assert await asyncio.to_thread(keyring.look, "user:ada") is None
    key = await vault.obtain("user:ada")
    assert await asyncio.to_thread(keyring.look, "user:ada") is key


async def test_a_tombstone_is_never_replaced_by_a_key() -> None:
    vault = CountingVault()
    key = await vault.obtain("user:ada")
    stone = Tombstone("user:ada", "user:local", "2026-03-05T12:00:00Z", "r")
    keyring = Keyring(vault.held)
    keyring.take({"user:ada": stone})
    keyring.take({"user:ada": key})
    keyring.forget("user:ada")
    assert keyring.known("user:ada") == stone


async def test_a_closed_keyring_keeps_nobody_waiting_for_a_silent_vault() -> None:
    vault = CountingVault()
    vault.speaks.clear()
    keyring = Keyring.over(vault, asyncio.get_running_loop())
    asking = asyncio.create_task(asyncio.to_thread(keyring.look, "user:ada"))
    while not vault.asked:  # noqa: ASYNC110  # asked from a thread
        await asyncio.sleep(0.001)
    keyring.close()
    with pytest.raises(BrokerUnavailable):
        await asyncio.wait_for(asking, PATIENCE)

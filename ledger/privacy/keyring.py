"""Which data keys does this process know? Those it needed so far; others are asked of the vault, once.

Folding happens in threads, the vault lives on the event loop: `Keyring.over` bridges the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from kledger.contract.errors import BrokerUnavailable
from ledger.privacy.vault import Held, Tombstone, Vault

ANSWER_SECONDS = 30.0
_LOOK_UP_SECONDS = 0.2
Fetch = Callable[[list[str]], Mapping[str, Held]]


class Keyring:
    """Keys and tombstones by name. Safe to use from several threads."""

    def __init__(self, fetch: Fetch = lambda _names: {}) -> None:
        self._fetch = fetch
        self._held: dict[str, Held] = {}
        self._lock = Lock()
        self._closed = False
        self._told: list[Callable[[], None]] = []

    @classmethod
    def over(cls, vault: Vault, loop: asyncio.AbstractEventLoop) -> Keyring:
        """A keyring that asks a vault; not from the loop's own thread, which would wait for itself."""

        def fetch(names: list[str]) -> Mapping[str, Held]:
            asked = asyncio.run_coroutine_threadsafe(vault.look(names), loop)
            until = time.monotonic() + ANSWER_SECONDS
            while not keyring._closed:
                with contextlib.suppress(TimeoutError):
                    return asked.result(_LOOK_UP_SECONDS)
                if time.monotonic() > until:
                    break
            asked.cancel()
            raise BrokerUnavailable(f"the vault did not answer within {ANSWER_SECONDS:g} s: retry")

        keyring = cls(fetch)
        return keyring

    def close(self) -> None:
        """Keep nobody waiting for the vault any more: the loop that it lives on is about to wait for us."""
        self._closed = True

    def known(self, name: str) -> Held | None:
        """What is known without asking."""
        return self._held.get(name)

    def look(self, name: str) -> Held | None:
        """What is known of a name, asked of the vault when it has to be. Raises what the vault raises."""
        if name not in self._held:
            self.learn([name])
        return self._held.get(name)

    def learn(self, names: Iterable[str]) -> None:
        """Ask for those that are not known yet. Raises what the vault raises."""
        missing = [name for name in dict.fromkeys(names) if name not in self._held]
        if missing:
            self.take(self._fetch(missing))

    def again(self, names: Iterable[str]) -> None:
        """Ask for these whatever is known of them, unless it is a tombstone. Raises what the vault raises."""
        names = list(names)
        with self._lock:
            for name in names:
                if not isinstance(self._held.get(name), Tombstone):
                    self._held.pop(name, None)
        self.learn(names)

    def take(self, found: Mapping[str, Held]) -> None:
        """Remember these; a tombstone is never replaced by a key."""
        with self._lock:
            for name, held in found.items():
                if not isinstance(self._held.get(name), Tombstone):
                    self._held[name] = held

    def forget(self, name: str) -> None:
        """Drop what is known of a name, so that the vault is asked again, and tell those who listen."""
        with self._lock:
            if not isinstance(self._held.get(name), Tombstone):
                self._held.pop(name, None)
            listening = list(self._told)
        for tell in listening:
            tell()

    def when_forgotten(self, tell: Callable[[], None]) -> None:
        """Call `tell` (from whichever thread) each time that a name is dropped."""
        with self._lock:
            self._told.append(tell)

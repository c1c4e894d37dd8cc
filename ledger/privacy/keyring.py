"""Keyring: a thread-safe cache of data keys and tombstones in front of the vault.

Folding runs in threads, the vault on the event loop: `Keyring.over` bridges the two.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from kledger.contract.errors import BrokerUnavailable
from ledger.privacy.vault import Held, Keys, Tombstone

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
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    def over(cls, vault: Keys, loop: asyncio.AbstractEventLoop) -> Keyring:
        """A keyring that queries a vault. Must not be used from the loop's own thread: it would deadlock."""

        def fetch(names: list[str]) -> Mapping[str, Held]:
            future = asyncio.run_coroutine_threadsafe(vault.look(names), loop)
            until = time.monotonic() + ANSWER_SECONDS
            while not keyring._closed:
                with contextlib.suppress(TimeoutError):
                    return future.result(_LOOK_UP_SECONDS)
                if time.monotonic() > until:
                    break
            future.cancel()
            raise BrokerUnavailable(f"the vault did not answer within {ANSWER_SECONDS:g} s: retry")

        keyring = cls(fetch)
        return keyring

    def close(self) -> None:
        """End all waiting for the vault, because its event loop is about to wait for our threads."""
        self._closed = True

    def known(self, name: str) -> Held | None:
        """The cached key or tombstone of a name; never queries the vault."""
        return self._held.get(name)

    def look(self, name: str) -> Held | None:
        """The key or tombstone of a name, from the vault if it is not cached. Raises what the vault raises."""
        if name not in self._held:
            self.learn([name])
        return self._held.get(name)

    def learn(self, names: Iterable[str]) -> None:
        """Fetch the names that are not cached. Raises what the vault raises."""
        missing = [name for name in dict.fromkeys(names) if name not in self._held]
        if missing:
            self.take(self._fetch(missing))

    def again(self, names: Iterable[str]) -> None:
        """Fetch these names again, except where a tombstone is cached. Raises what the vault raises."""
        names = list(names)
        with self._lock:
            for name in names:
                if not isinstance(self._held.get(name), Tombstone):
                    self._held.pop(name, None)
        self.learn(names)

    def take(self, fetched: Mapping[str, Held]) -> None:
        """Cache these; a tombstone is never replaced by a key."""
        with self._lock:
            for name, held in fetched.items():
                if not isinstance(self._held.get(name), Tombstone):
                    self._held[name] = held

    def forget(self, name: str) -> None:
        """Invalidate a name, so that the vault is queried again, and call the listeners."""
        with self._lock:
            if not isinstance(self._held.get(name), Tombstone):
                self._held.pop(name, None)
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def when_forgotten(self, listener: Callable[[], None]) -> None:
        """Call `listener` (on any thread) each time that a name is invalidated."""
        with self._lock:
            self._listeners.append(listener)

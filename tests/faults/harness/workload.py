"""What do the clients say, and what were they told? Many small writes, each repeated until it is acknowledged."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from tests.faults.poison import MARKER
from tests.journeys.running_node import items

BASE = 12
"""Items that are there from the start, to be rated and revised."""

Order = Callable[[LedgerClient], dict[str, int]]
"""Sends one request; returns the event's or item's name and the position that was acknowledged."""


@dataclass
class Workload:
    """Writes of one life of a log. `acknowledged` holds each item's position, `ratings` how many each item got."""

    chance: random.Random
    acknowledged: dict[str, int] = field(default_factory=dict)
    ratings: dict[str, int] = field(default_factory=dict)
    moved: list[str] = field(default_factory=list)
    """Acknowledgements that named another position than one before: never."""
    sent: int = 0
    repeated: int = 0
    _open: list[tuple[str, Order]] = field(default_factory=list)
    _done: list[tuple[str, Order]] = field(default_factory=list)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """The items that later writes are about."""
        self._add("base", _save_many(items(BASE, "base")))

    def write(self, lots: int = 4) -> None:
        """More to say: saves in batches and one by one, ratings, revisions, a profile."""
        for _ in range(lots):
            self._number += 1
            name = f"{self._number:05d}"
            kind = self.chance.randrange(6)
            about = f"base-{self.chance.randrange(BASE):05d}"
            if kind <= 1:
                lot = [{**item, "id": f"w{name}-{n}"} for n, item in enumerate(items(self.chance.randint(2, 12), name))]
                self._add(name, _save_many(lot))
            elif kind == 2:
                self._add(name, _save(name, items(1, name)[0]))
            elif kind == 3:
                self.ratings[about] = self.ratings.get(about, 0) + 1
                self._add(name, _rate(name, about))
            elif kind == 4:
                self._add(name, _revise(name, about))
            else:
                self._add(name, _patch(name))

    def poison(self) -> None:
        """An event that no fold can take."""
        self._number += 1
        name = f"{self._number:05d}"
        self._add(name, _save(name, {**items(1, name)[0], "content": f"{MARKER} {name}"}))

    def send(self, url: str) -> bool:
        """Send what is not acknowledged, in any order, and some of what is, once more; whether all is now."""
        again = self.chance.sample(self._done, min(len(self._done), 2))
        orders = self._open + again
        self.chance.shuffle(orders)
        self.repeated += len(again)
        halves = [orders[::2], orders[1::2]]
        threads = [threading.Thread(target=self._send, args=(url, half), daemon=True) for half in halves if half]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        return not self._open

    def _add(self, name: str, order: Order) -> None:
        self._open.append((name, order))

    def _send(self, url: str, orders: list[tuple[str, Order]]) -> None:
        with LedgerClient(url, retries=0, timeout=20, read_your_writes=False) as client:
            for named in orders:
                try:
                    kept = named[1](client)
                except LedgerError as error:
                    if error.code not in ("node_unreachable", "broker_unavailable", "unknown_knowledge", "view_behind"):
                        raise
                    continue
                with self._lock:
                    self.sent += 1
                    for name, position in kept.items():
                        if self.acknowledged.setdefault(name, position) != position:
                            self.moved.append(f"{name} was at {self.acknowledged[name]}, is said to be at {position}")
                    if named in self._open:
                        self._open.remove(named)
                        self._done = [*self._done[-30:], named]


def _save_many(payloads: list[dict[str, Any]]) -> Order:
    def order(client: LedgerClient) -> dict[str, int]:
        told: dict[str, int] = {}
        for one in client.save_many(payloads)["results"]:
            assert one["outcome"] != "refused", one
            assert one["id"] is not None
            assert one["position"] is not None
            told[one["id"]] = one["position"]
        return told

    return order


def _save(name: str, payload: dict[str, Any]) -> Order:
    given = {field: payload[field] for field in ("task", "content", "types", "scopes", "source")}
    return lambda client: {
        f"s{name}": client.save(**given, id=f"s{name}", owner="agent:storekeeper", idempotency_key=name)["position"]
    }


def _rate(name: str, about: str) -> Order:
    return lambda client: {f"rating {name}": client.rate(about, "helpful", idempotency_key=name)["position"]}


def _revise(name: str, about: str) -> Order:
    return lambda client: {
        f"revision {name}": client.revise(about, content=f"Moved to row {name}", idempotency_key=name)["position"]
    }


def _patch(name: str) -> Order:
    def order(client: LedgerClient) -> dict[str, int]:
        client.acting_as(user="ann").profiles.patch("work", {"expertise": [name]}, idempotency_key=name)
        return {}

    return order

"""Versions with large texts are examined in as many requests as they need: the vector process refuses a larger one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from projections.vectors.changes import MOST_CHARACTERS, in_requests
from projections.vectors.client import VectorClient
from projections.vectors.wire import MAX_FRAME_BYTES, Store, pack


def version(number: int, characters: int) -> Store:
    return Store(f"k{number}", 1, number, "t", "\u20ac" * characters, ["public"], ["tool"], "user:a", number)


class Asked(VectorClient):
    """A client whose process finds the first version of each request wrong."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int]] = []

    async def _ask(self, verb: str, **arguments: Any) -> Any:
        changes: Sequence[Any] = arguments["changes"]
        assert len(pack({"verb": verb, **arguments})) <= MAX_FRAME_BYTES
        self.requests.append((len(changes), arguments["searched"]))
        return [changes[0]["item_id"]]


async def test_versions_that_do_not_fit_one_request_are_examined_in_several() -> None:
    asked = Asked()
    large = [version(number, 1_000_000) for number in range(30)]
    assert await asked.examine(large, searched=10) == ["k0", "k7", "k14", "k21", "k28"]
    assert asked.requests == [(7, 10), (7, 3), (7, 0), (7, 0), (2, 0)]


def test_small_versions_go_together_and_one_that_is_larger_than_all_goes_alone() -> None:
    sizes = [1, 2, MOST_CHARACTERS + 5, 3]
    parts = list(in_requests([version(number, size) for number, size in enumerate(sizes)]))
    assert [[store.item_id for store in part] for part in parts] == [["k0", "k1"], ["k2"], ["k3"]]
    assert list(in_requests([])) == []

"""People of their own for each test of recall, in projects of their own: no test sees what another one saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode

_NUMBERS = count(1)


def new_number() -> int:
    """A number that no other test has."""
    return next(_NUMBERS)


@contextmanager
def somebody(node: RunningNode, number: int | None = None) -> Iterator[LedgerClient]:
    """A person whom no other test is, with an agent, in the project `web` and the number."""
    own = new_number() if number is None else number
    with node.client() as client:
        yield client.acting_as(user=f"ann{own}", agent=f"coder{own}", project=f"web{own}")

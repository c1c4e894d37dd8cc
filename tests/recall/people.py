"""People of their own for each test of recall, in projects of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode

_NUMBERS = count(1)


@contextmanager
def somebody(node: RunningNode) -> Iterator[LedgerClient]:
    """A person whom no other test is."""
    number = next(_NUMBERS)
    with node.client() as client:
        yield client.acting_as(user=f"own{number}", project=f"own{number}")

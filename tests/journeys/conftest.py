"""The shared node of the session, asked by its operator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    """The shared node, asked by its operator."""
    with shared_node.client() as client:
        yield client

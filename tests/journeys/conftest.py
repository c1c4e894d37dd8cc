"""One node for all journeys that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from producers.sdk import LedgerClient
from tests.journeys.running_node import RunningNode, running


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that no test stops, with whatever the tests before have said to it."""
    with running(tmp_path_factory.mktemp("shared") / "data") as node:
        yield node


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    """The shared node, asked by its operator."""
    with shared_node.client() as client:
        yield client

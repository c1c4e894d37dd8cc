"""One node for the tests of recall, and a person of her own for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode, running
from tests.recall.people import new_number, somebody
from tests.temporary_files import OF_THE_SESSION


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    data: Path = tmp_path_factory.mktemp(f"{OF_THE_SESSION}recall") / "data"
    with running(data) as node:
        yield node


@pytest.fixture
def number() -> int:
    return new_number()


@pytest.fixture
def ann(node: RunningNode, number: int) -> Iterator[LedgerClient]:
    with somebody(node, number) as client:
        yield client

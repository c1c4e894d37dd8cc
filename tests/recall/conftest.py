"""One node for the tests of recall."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.running_node import RunningNode, running


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    data: Path = tmp_path_factory.mktemp("recall") / "data"
    with running(data) as node:
        yield node

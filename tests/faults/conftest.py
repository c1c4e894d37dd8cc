"""One node for all faults that it has to survive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.running_node import RunningNode, running
from tests.temporary_files import OF_THE_SESSION


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node whose parts are killed and stopped, while it stays."""
    with running(tmp_path_factory.mktemp(f"{OF_THE_SESSION}faults") / "data") as started:
        yield started

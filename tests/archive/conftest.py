"""A loop for tests whose examples are drawn by chance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import LoopThread


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()

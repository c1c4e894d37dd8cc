"""A scripted node that the commands ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.doors.scripted_node import ScriptedNode, commanded_node


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    """For nobody, unless a command says for whom."""
    with commanded_node(monkeypatch) as running:
        yield running

"""A walk through one interface of the shared node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.journeys.running_node import RunningNode
from tests.knowhub.walking import Walk
from tests.openai_chat import ChatEndpoint


@pytest.fixture
def walk(request: pytest.FixtureRequest, shared_node: RunningNode) -> Iterator[Walk]:
    """The parameter names the interface."""
    with ExitStack() as stack:
        yield Walk(shared_node.url, request.param, stack, ChatEndpoint())

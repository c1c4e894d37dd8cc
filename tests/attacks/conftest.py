"""One guarded node for all attacks: none of them may change it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.guarded_node import Guarded, guarded


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A node with tokens, attacked by every test of this folder."""
    with guarded(tmp_path_factory.mktemp("attacked") / "data") as node:
        yield node


@pytest.fixture
def unharmed(target: Guarded) -> Iterator[Guarded]:
    """The same, compared afterwards: the stream has not moved, and every item and profile is what it was."""
    before = target.state()
    yield target
    assert target.state() == before

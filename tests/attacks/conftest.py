"""One guarded node for all attacks: none of them may change it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.guarded_node import Guarded, guarded
from tests.temporary_files import OF_THE_SESSION


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A node with tokens, attacked by every test of this folder."""
    with guarded(tmp_path_factory.mktemp(f"{OF_THE_SESSION}attacked") / "data") as node:
        before = node.state()
        yield node
        assert node.state() == before, "an attack changed an item or a profile"


@pytest.fixture
def unharmed(target: Guarded) -> Iterator[Guarded]:
    """The same, which afterwards has to have the stream that it had: nothing follows from what is not in it."""
    before = target.head()
    yield target
    assert target.head() == before

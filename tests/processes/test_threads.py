"""A node that may not have its threads says so at its start."""

from __future__ import annotations

import _thread
from collections.abc import Callable

import pytest

from kledger.contract.errors import NodeMisconfigured
from producers.node.start.threads import NEEDED, OF_QUACK, check_threads
from tests.journeys.running_node import until

BEGIN = _thread.start_new_thread


def at_most(most: int) -> Callable[..., int]:
    """As the system answers to a user whose limit of processes is reached after so many."""
    begun = [0]

    def start(*asked: object) -> int:
        if begun[0] == most:
            raise RuntimeError("can't start new thread")
        begun[0] += 1
        return BEGIN(*asked)  # type: ignore[call-overload, no-any-return]

    return start


@pytest.mark.parametrize("quack", [True, False])
def test_a_node_tries_whether_it_may_have_its_threads_and_leaves_none(
    quack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed, ended = NEEDED + OF_QUACK * quack, _thread._count()
    check_threads(quack)
    until(lambda: _thread._count() <= ended, "all threads have ended")
    monkeypatch.setattr(_thread, "start_new_thread", at_most(needed))
    check_threads(quack)
    monkeypatch.setattr(_thread, "start_new_thread", at_most(needed - 1))
    with pytest.raises(NodeMisconfigured, match=f"{needed - 1} further threads, and a node needs {needed}") as refused:
        check_threads(quack)
    assert ("--quack off" in refused.value.message) == quack
    assert "ulimit -u" in refused.value.message
    until(lambda: _thread._count() <= ended, "all threads have ended")

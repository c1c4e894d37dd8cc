"""A node that was killed while it forgot somebody says so until that is done: it serves the view of before."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from producers.node.eraser import Eraser
from producers.node.receipts import Receipts, new_order

GOES_ON = "begun before the node's start and goes on"


@pytest.fixture
def receipts(tmp_path: Path) -> Receipts:
    (tmp_path / "receipts").mkdir()
    return Receipts(tmp_path / "receipts")


def _eraser(receipts: Receipts) -> Eraser:
    nothing = cast("Any", None)
    return Eraser(nothing, nothing, nothing, nothing, nothing, receipts, "default", b"")


def test_an_order_that_was_pending_at_the_start_is_a_reason_of_health_until_it_is_done(
    receipts: Receipts,
) -> None:
    order = new_order("user:ann", "user:local")
    receipts.begin(order)
    eraser = _eraser(receipts)
    assert [GOES_ON in why for why in eraser.reasons()] == [True]
    receipts.finish(order, {})
    assert eraser.reasons() == []


def test_an_order_that_fails_is_told_with_its_fault(receipts: Receipts) -> None:
    receipts.begin(new_order("user:ann", "user:local"))
    eraser = _eraser(receipts)
    eraser.trouble = "the vault does not answer"
    assert [each.rpartition(": ")[2] for each in eraser.reasons()] == ["the vault does not answer"]
    eraser.trouble = None
    assert [GOES_ON in why for why in eraser.reasons()] == [True]


def test_an_order_of_the_node_itself_is_no_reason(receipts: Receipts) -> None:
    eraser = _eraser(receipts)
    receipts.begin(new_order("user:ann", "user:local"))
    assert eraser.reasons() == []

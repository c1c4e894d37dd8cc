"""Headers of restored events: what is read at one look is what looking for each header finds."""

from __future__ import annotations

import pytest

from ledger.broker.nats_parser import headers_in
from ledger.broker.restored import MESSAGE_ID, STORED_NS, told_in_batch
from ledger.wire.publication import MSG_ID

_BATCH = "\r\nNats-Batch-Id: abc_-9\r\nNats-Batch-Sequence: 7"
_TOLD = f"\r\n{STORED_NS}: 1700000000000000001\r\n{MSG_ID}: 01J:x.y"


@pytest.mark.parametrize(
    "between", ["", "\r\nNats-Expected-Last-Sequence: 6"], ids=["in the middle", "at the beginning of a batch"]
)
@pytest.mark.parametrize("end", ["", "\r\nNats-Batch-Commit: 1"], ids=["not last", "last"])
def test_an_event_of_a_batch_tells_its_time_and_id_at_one_look(between: str, end: str) -> None:
    block = f"NATS/1.0{_TOLD}{between}{_BATCH}{end}\r\n\r\n".encode()
    headers = headers_in(block)
    assert told_in_batch(block) == (int(headers[STORED_NS]), headers[MSG_ID])


def test_so_does_one_that_was_streamed() -> None:
    assert told_in_batch(f"NATS/1.0{_TOLD}\r\nNats-Expected-Last-Sequence: 6\r\n\r\n".encode()) == told_in_batch(
        f"NATS/1.0{_TOLD}\r\n\r\n".encode()
    )
    assert told_in_batch(f"NATS/1.0{_TOLD}\r\n\r\n".encode()) == (1700000000000000001, "01J:x.y")


@pytest.mark.parametrize(
    "lines",
    [
        f"\r\n{STORED_NS}: 5{_BATCH}",
        f"\r\n{MSG_ID}: a{_BATCH}",
        f"\r\n{STORED_NS}: 5x\r\n{MSG_ID}: a{_BATCH}",
        f"\r\n{STORED_NS}: 5\r\n{MSG_ID}: a b{_BATCH}",
        f"{_TOLD}\r\n{MESSAGE_ID}: YQ=={_BATCH}",
        f"{_TOLD}{_BATCH}\r\n{STORED_NS}: 6",
        f"{_TOLD}\r\n{MSG_ID}: b{_BATCH}",
    ],
)
def test_headers_of_any_other_form_are_looked_for_one_by_one(lines: str) -> None:
    assert told_in_batch(f"NATS/1.0{lines}\r\n\r\n".encode()) is None


def test_a_message_without_headers_tells_nothing() -> None:
    assert told_in_batch(None) is None
    assert told_in_batch(b"") is None

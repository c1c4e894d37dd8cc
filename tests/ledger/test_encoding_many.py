"""Encoding many events at once: the same as each alone, in batches that the broker takes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy.vault import DataKey, new_secret
from ledger.store import batch_encoder
from ledger.store.batch_encoder import BatchEncoder
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.envelope import MAX_BODY_BYTES
from ledger.wire.publication import Publication, publication, publications
from ledger.wire.seal_mac import Witness
from tests.sealed_events import sealed_event

MOST = 2 * MAX_BODY_BYTES
ADA = DataKey("user:ada", new_secret())


def saved(number: int, content: str = "c") -> NewEvent:
    fact = KnowledgeSaved(types=["tool"], task="t", content=content, scopes=["public"], owner="user:ada")
    return NewEvent(fact, f"item-{number}", "user:ada", id=f"event-{number}")


async def batches(events: list[NewEvent]) -> list[list[Publication]]:
    """The messages of each batch."""
    encoder = BatchEncoder(events, MOST)
    found: list[list[Publication]] = []
    while True:
        batch: list[Publication] = []
        while piece := await encoder.piece():
            batch += piece
        if not batch:
            return found
        found.append(batch)


def test_events_are_encoded_together_as_each_alone() -> None:
    events = list(EXAMPLES.values())
    assert publications(events, MOST) == [publication(event, MOST) for event in events]


def test_sealed_and_clear_events_encoded_together_stay_apart() -> None:
    events = [sealed_event(event, [ADA]) if n % 2 else event for n, event in enumerate(map(saved, range(20)))]
    for number, message in enumerate(publications(events, MOST)):
        document = orjson.loads(message.body)
        assert document["id"] == f"event-{number}"
        assert ("sealmac" in document) is bool(number % 2)
        assert document["data"]["content"].startswith("sealed:v1:user:ada:" if number % 2 else "c")


@given(sizes=st.lists(st.integers(1, 60), max_size=40), count=st.integers(1, 9), at_once=st.integers(1, 5))
def test_batches_have_each_event_once_in_order_within_both_limits(sizes: list[int], count: int, at_once: int) -> None:
    events = [saved(number, "x" * size) for number, size in enumerate(sizes)]
    alone = [publication(event, MOST) for event in events]
    most = 3 * min((len(each.body) for each in alone), default=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_encoder, "MAX_MESSAGES", count)
        patch.setattr(batch_encoder, "MAX_BYTES", most)
        patch.setattr(batch_encoder, "_AT_ONCE", at_once)
        found = asyncio.run(batches([each for event in events for each in (event, event)]))
    assert [message for batch in found for message in batch] == alone
    for batch, after in zip(found, [*found[1:], None][: len(found)], strict=True):
        size = sum(len(message.body) for message in batch)
        assert len(batch) == 1 or size <= most
        assert len(batch) <= count
        # It is full: the first message of the next one has no room in it.
        assert after is None or len(batch) == count or size + len(after[0].body) > most


@given(secret=st.binary(min_size=32, max_size=32), data=st.binary())
def test_the_mac_of_an_event_is_hmac_sha256(secret: bytes, data: bytes) -> None:
    message = b'["ledger.a.b","event-1",%b]' % data
    expected = hmac.digest(secret, message, hashlib.sha256)
    assert Witness(secret).mac_of("ledger.a.b", "event-1", data) == base64.b64encode(expected).decode()

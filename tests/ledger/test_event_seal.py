"""Sealing an event: what is not sealed of it is written as in an event in clear, and no nonce comes twice."""

from __future__ import annotations

import os
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import Fact, NewEvent
from ledger.events import FACTS
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy import vault
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.sealed import open_document
from ledger.privacy.vault import DataKey, new_secret
from ledger.wire.envelope import encode
from ledger.wire.subjects import stated_by

ADA = DataKey("user:ada", new_secret())
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
DOCUMENTS = st.dictionaries(
    TEXTS, st.recursive(st.none() | st.booleans() | TEXTS | NUMBERS, st.lists, max_leaves=5), max_size=3
)


def written(fact: Fact) -> bytes:
    return fact.__pydantic_serializer__.to_json(fact)


def opened(fact: Fact) -> bytes:
    """The data of an event that is sealed for Ada, opened again."""
    event = NewEvent(fact, "entity", "user:ada", id="event-1")
    data = orjson.loads(encode(event.sealed_by(EventSeal((ADA,)))))["data"]
    by = stated_by(event.org, event.actor)
    return orjson.dumps(open_document(data, {"user:ada": ADA}.get, "event-1", by=by))


@pytest.mark.parametrize("kind", FACTS.values(), ids=FACTS)
def test_a_sealed_event_opens_to_the_bytes_of_one_that_is_not_sealed(kind: type[Fact]) -> None:
    stated = kind.example.data
    examples = [kind(**stated)]
    for name, field in kind.model_fields.items():  # and without each field that may be left out
        if name in stated and not field.is_required() and name not in kind.at_least_one:
            examples.append(kind(**{each: value for each, value in stated.items() if each != name}))
    for fact in examples:
        assert opened(fact) == written(fact)


@given(tags=DOCUMENTS, confidence=st.floats(0, 1))
def test_whatever_an_item_says_is_written_alike(tags: dict[str, Any], confidence: float) -> None:
    fact = KnowledgeSaved(
        types=["tool"], task="t", content="c", tags=tags, scopes=["public"], owner="user:ada", confidence=confidence
    )
    assert opened(fact) == written(fact)


def test_no_nonce_is_given_twice_nor_in_a_child() -> None:
    given = [vault._nonce() for _ in range(1_000)]
    assert {len(nonce) for nonce in given} == {vault.NONCE_BYTES}
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # its nonces would be the parent's next ones, if they were kept
        os.write(writing, b"".join(vault._nonce() for _ in range(100)))
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(reading, 100 * vault.NONCE_BYTES)
    given += [vault._nonce() for _ in range(1_000)]
    given += [told[at : at + vault.NONCE_BYTES] for at in range(0, len(told), vault.NONCE_BYTES)]
    assert len(given) == 2_100
    assert len(set(given)) == 2_100

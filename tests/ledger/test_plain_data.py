"""An event's data is written as pydantic writes it, whatever it holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.bounds import MAX_DEPTH
from ledger.event import Fact
from ledger.events import FACTS
from ledger.events.knowledge import KnowledgeSaved
from ledger.wire.plain_data import data_of, written

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


class Colour(StrEnum):
    RED = "red"


class Number(Enum):
    ONE = 1


class Name(str):
    """A text of a type of its own."""


MADE_BY_CODE = (
    *(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2026, 1, 2), date(2026, 1, 2), timedelta(seconds=90)),
    *(Colour.RED, Number.ONE, Name("n"), ("a", 1), {"a"}, UUID(int=7), Decimal("1.50"), b"bytes", 1e16, 1e-7, -0.0),
)
"""What no JSON holds, or writes in several ways."""


def as_pydantic(fact: Fact) -> bytes:
    return fact.__pydantic_serializer__.to_json(fact)


def saved(tags: dict[str, Any]) -> KnowledgeSaved:
    return KnowledgeSaved(types=["tool"], task="t", content="c", tags=tags, scopes=["public"], owner="user:ada")


@pytest.mark.parametrize("kind", FACTS.values(), ids=FACTS)
def test_a_fact_of_any_kind_is_written_as_pydantic_writes_it(kind: type[Fact]) -> None:
    stated = kind.example.data
    for without in ("", *stated):  # also without each field that may be left out
        if not without or (not kind.model_fields[without].is_required() and without not in kind.at_least_one):
            fact = kind(**{name: value for name, value in stated.items() if name != without})
            assert written(data_of(fact)) == as_pydantic(fact)


@given(tags=st.dictionaries(TEXTS, st.recursive(TEXTS | NUMBERS, st.lists, max_leaves=5), max_size=3))
def test_numbers_and_texts_are_written_as_pydantic_writes_them(tags: dict[str, Any]) -> None:
    fact = saved(tags)
    assert written(data_of(fact)) == as_pydantic(fact)


@pytest.mark.parametrize("value", MADE_BY_CODE, ids=repr)
def test_what_code_has_put_into_a_document_is_written_as_pydantic_writes_it(value: object) -> None:
    fact = saved({"value": value, "inside": [{"again": value}]})
    assert written(data_of(fact)) == as_pydantic(fact)


def test_a_document_as_deep_as_may_be_is_written() -> None:
    deep: Any = "x"
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    fact = saved({"deep": deep})
    assert written(data_of(fact)) == as_pydantic(fact)


@pytest.mark.parametrize("kind", FACTS.values(), ids=FACTS)
def test_fields_of_later_versions_are_those_that_pydantic_leaves_out(kind: type[Fact]) -> None:
    assert {name for name, field in kind.model_fields.items() if field.exclude_if is not None} == set(kind.added)

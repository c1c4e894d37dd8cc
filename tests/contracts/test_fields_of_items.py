"""A field of a save is carried from its request to the event, and compared where an id is saved again."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from kledger.answers.knowledge import ItemChange, Shown
from kledger.contract.knowledge import Source
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import SaveRequest
from ledger.events.knowledge import FACTS, KnowledgeConfirmed, KnowledgeRated, KnowledgeSaved
from producers.operations.stating import saved_fact
from projections.views.knowledge.ask import statement_of
from projections.views.knowledge.tables import SHOWN

NOT_COMPARED = {"owner", "helpful", "harmful", "confidence", "origin"}
"""The owner is compared beside the statement; counts move, and where an item is from is no part of what it says."""
OTHER_VALUES: dict[str, Any] = {"source": Source(name="another"), "memory": None}


def test_a_save_states_every_field_of_its_event() -> None:
    fact = saved_fact(SaveRequest(content="Vent first.", types=["tool"]), Caller(user="ann"))
    assert fact.model_fields_set == set(KnowledgeSaved.model_fields)


@pytest.mark.parametrize("name", KnowledgeSaved.model_fields)
def test_an_id_that_is_saved_again_is_compared_by_all_that_it_says(name: str) -> None:
    fact = KnowledgeSaved(**KnowledgeSaved.example.data)
    other = fact.model_copy(update={name: OTHER_VALUES.get(name, "another")})
    assert (statement_of(other) == statement_of(fact)) is (name in NOT_COMPARED)


def test_a_column_that_answers_show_is_in_the_shape_of_all_of_them() -> None:
    assert set(SHOWN) == set(Shown.__annotations__) - {"acl"}, "an ACL is made of two columns"


def test_every_event_that_makes_a_version_is_a_change_that_its_history_names() -> None:
    making = {fact.name.partition(".")[2] for fact in FACTS if fact not in (KnowledgeRated, KnowledgeConfirmed)}
    assert set(get_args(ItemChange)) == making

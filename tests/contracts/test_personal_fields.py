"""What somebody can say in words is sealed with their key: each event names those fields, and none is forgotten."""

from __future__ import annotations

import re

import pytest

from ledger.event import Fact
from ledger.events import FACTS
from ledger.events.knowledge import KnowledgeRetired
from tests.contracts.shapes import parts

NO_WORDS = re.compile(r"pattern=|max_length=(\d\d?|1\d\d|200)\b|(entity|scope|moment)_or_value_error")
"""An id or a word out of a list: of a form, or of 200 characters at most."""
IDS_AND_TIMES = {
    *("trace_id", "message_id", "agent_id", "document", "resource_ids[]", "session"),
    *("timestamp", "created_at", "updated_at"),
}
"""Those among the longer texts."""
OF_THE_NODE = {"skipped[].reason"}


def in_words(fact: type[Fact]) -> set[str]:
    """The places of an event that take words of anybody."""
    return {
        place
        for place, kind, constraints in parts(fact)
        if ((kind == str(str) and not NO_WORDS.search(str(constraints))) or kind.startswith("dict"))
        and place.split(".")[-1] not in IDS_AND_TIMES
        and place not in OF_THE_NODE
    }


@pytest.mark.parametrize("name", FACTS)
def test_every_event_says_which_of_its_fields_are_personal_and_has_them(name: str) -> None:
    places = {place.replace("[]", "") for place, *_ in parts(FACTS[name])}
    assert set(FACTS[name].personal) <= places


@pytest.mark.parametrize("name", FACTS)
def test_whatever_takes_words_is_personal(name: str) -> None:
    sealed = tuple(f"{each}." for each in FACTS[name].personal)
    clear = {each for each in in_words(FACTS[name]) if not f"{each.replace('[]', '')}.".startswith(sealed)}
    assert clear == set(), "words of a person that would stay readable when the person is forgotten"


def test_words_that_are_left_out_are_found() -> None:
    class Forgetful(KnowledgeRetired):
        note: str

    assert in_words(Forgetful) == {"reason", "note"}

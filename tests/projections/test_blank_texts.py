"""A text that shows nothing is no knowledge: refused by the models and by the fold, unless it was kept before."""

from __future__ import annotations

import orjson
import pytest
from pydantic import ValidationError

from kledger.contract.bounds import LATER, is_blank
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised
from projections.engine import batch
from tests.projections.histories import rows, saved, stored, view_of

BLANK = (
    " ",
    "\n\t ",
    "\u200b\u200d\ufeff",
    "\x07\x1b",
    "\u3000",
    "\u3164\u115f",
    "\u2800",
    "\u0301",
    "\u00ad\u202e",
    "️",
)
SAID = (".", "?", "1", "是", "é", "👍", "—", "ا", "\ue000", "[erased]")


@pytest.fixture(params=["judged by the models", "parsed by SQL"], autouse=True)
def _both_roads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 256 if request.param == "judged by the models" else 0)


def published(event: NewEvent, field: str, text: str) -> NewEvent:
    """The event as somebody publishes it who has no models."""
    return NewEvent(type(event.fact).model_construct(**{**dict(event.fact), field: text}), event.entity_id, event.actor)


def kept_at(moment_ns: int, *events: NewEvent, first: int = 1) -> list[StoredEvent]:
    return [each._replace(stored_ns=moment_ns + each.position * 1_000) for each in stored(events, first)]


def contents(log: list[StoredEvent]) -> list[tuple[str, str]]:
    return rows(view_of(log).con, "SELECT id, content FROM knowledge ORDER BY id")


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_a_blank_text_is_refused_whether_it_is_saved_or_revised(text: str) -> None:
    log = kept_at(
        LATER,
        published(saved("k1"), "content", text),
        saved("k2", content="says something"),
        published(NewEvent(KnowledgeRevised(content="x"), "k2", "agent:a"), "content", text),
    )
    assert rows(view_of(log).con, "SELECT position, code FROM refused_events ORDER BY position") == [
        (1, "invalid_payload"),
        (3, "invalid_payload"),
    ]
    assert contents(log) == [("k2", "says something")]


@pytest.mark.parametrize("text", SAID, ids=ascii)
def test_whatever_shows_something_is_taken(text: str) -> None:
    assert not is_blank(text)
    assert contents(kept_at(LATER, saved("k1", content=text))) == [("k1", text)]


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_what_the_log_kept_before_the_bound_counts_as_it_did_with_all_that_came_of_it(text: str) -> None:
    before = kept_at(
        LATER - 1_000_000,
        published(saved("k1"), "content", text),
        NewEvent(KnowledgeRated(verdict="helpful"), "k1", "agent:a"),
    )
    after = kept_at(LATER, NewEvent(KnowledgeRevised(content="now it says something"), "k1", "agent:a"), first=3)
    assert rows(view_of(before).con, "SELECT id, content, helpful FROM knowledge") == [("k1", text, 2)]
    assert contents([*before, *after]) == [("k1", "now it says something")]


def test_the_event_model_refuses_a_blank_text_before_anything_is_published() -> None:
    with pytest.raises(ValidationError, match="says nothing"):
        saved("k1", content=" \u200b")
    with pytest.raises(ValidationError, match="says nothing"):
        KnowledgeRevised.model_validate_json(orjson.dumps({"content": "\u3000"}))

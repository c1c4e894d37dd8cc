"""What counts, and what does not: each refusal with its code, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kledger.contract.knowledge import AclEntry
from ledger.event import Fact, NewEvent, StoredEvent
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeEvolved,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
)
from ledger.events.profile import ProfileCreated, ProfileDisabled, ProfilePatched, ProfileReplaced
from ledger.events.scope_type import ScopeTypeRegistered
from projections.engine import batch
from tests.projections.histories import replace_position, rows, saved, stored, view_of


@pytest.fixture(params=["judged by the models", "parsed by SQL"], autouse=True)
def _both_roads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a batch, the gate says the same."""
    monkeypatch.setattr(batch, "SMALL", 256 if request.param == "judged by the models" else 0)


def refused(*events: NewEvent) -> list[tuple[int, str]]:
    """Position and code of each event that does not count."""
    return refused_of(stored(events))


def refused_of(log: list[StoredEvent]) -> list[tuple[int, str]]:
    return rows(view_of(log).con, "SELECT position, code FROM refused_events ORDER BY position")


def about(fact: KnowledgeRevised | KnowledgeRetired, actor: str, item: str = "k1") -> NewEvent:
    return NewEvent(fact, item, actor)


def test_an_item_is_saved_once() -> None:
    assert refused(saved("k1"), saved("k1", content="another")) == [(2, "knowledge_exists")]


def test_the_same_id_in_another_organisation_is_another_item() -> None:
    assert refused(saved("k1"), replace(saved("k1"), org="elsewhere")) == []


def test_writers_revise_and_evolve_and_leave_everything_else_to_the_owner() -> None:
    def shared(*writers: str) -> NewEvent:
        acl = [AclEntry(entity=one, permission="read_write") for one in writers]
        return NewEvent(KnowledgeShared(acl=[*acl, AclEntry(entity="user:r", permission="read")]), "k1", "agent:a")

    def by(actor: str, fact: Fact) -> NewEvent:
        return NewEvent(fact, "k1", actor)

    evolved = KnowledgeEvolved(evolution="e1", base_version=3, content="evolved")
    assert refused(
        saved("k1"),
        shared("user:w"),
        by("user:w", KnowledgeRevised(content="bettered")),
        by("user:w", evolved),
        by("user:r", KnowledgeRevised(content="x")),
        by("user:w", KnowledgeRevised(content="x", scopes=["public"])),
        by("user:w", KnowledgeRevised(content="x", owner="user:w")),
        by("user:w", KnowledgeRetired()),
        by("user:w", KnowledgeShared(acl=[])),
        shared(),
        by("user:w", KnowledgeRevised(content="too late")),
    ) == [(position, "not_owner") for position in (5, 6, 7, 8, 9, 11)]


def test_types_of_scopes_are_the_operators_to_register_and_built_in_ones_stay() -> None:
    def registered(kind: str, actor: str = "user:local", priority: float = 2.5) -> NewEvent:
        return NewEvent(ScopeTypeRegistered(type=kind, priority=priority), kind, actor)

    log = [registered("guild"), registered("guild", "user:ada"), registered("team"), registered("guild", priority=0.5)]
    assert refused(*log) == [(2, "not_owner"), (3, "illegal_scope")]
    assert rows(view_of(stored(log)).con, "SELECT type, priority, position FROM scope_types") == [("guild", 0.5, 4)]


def test_nobody_saves_what_another_is_to_own() -> None:
    stolen = NewEvent(
        KnowledgeSaved(types=["tool"], task="t", content="c", scopes=["public"], owner="user:victim"),
        "k1",
        "user:thief",
    )
    assert refused(stolen) == [(1, "not_owner")]


@pytest.mark.parametrize(
    "fact", [KnowledgeRevised(content="x"), KnowledgeRetired(), KnowledgeRestored()], ids=lambda fact: fact.name
)
def test_only_the_owner_changes_an_item(fact: KnowledgeRevised) -> None:
    assert refused(saved("k1", "agent:a"), about(fact, "agent:b")) == [(2, "not_owner")]


@pytest.mark.parametrize(
    "fact", [KnowledgeRated(verdict="helpful"), KnowledgeScored(score=5)], ids=lambda fact: fact.name
)
def test_anybody_rates_and_scores(fact: KnowledgeRated) -> None:
    assert refused(saved("k1", "agent:a"), NewEvent(fact, "k1", "user:reader")) == []


def test_an_owner_that_gave_an_item_away_owns_it_no_more() -> None:
    log = [
        saved("k1", "agent:a"),
        about(KnowledgeRevised(owner="agent:b"), "agent:a"),
        about(KnowledgeRevised(content="mine?"), "agent:a"),
        about(KnowledgeRevised(content="mine!"), "agent:b"),
    ]
    assert refused(*log) == [(3, "not_owner")]


def test_what_was_never_saved_cannot_be_rated() -> None:
    assert refused(NewEvent(KnowledgeRated(verdict="harmful"), "nothing", "agent:a")) == [(1, "unknown_knowledge")]


def test_an_item_is_retired_once_and_restored_once() -> None:
    retire, restore = about(KnowledgeRetired(), "agent:a"), NewEvent(KnowledgeRestored(), "k1", "agent:a")
    log = [saved(), restore, retire, replace(retire, id="again"), replace(restore, id="back"), replace(restore, id="?")]
    assert refused(*log) == [(2, "illegal_state"), (4, "illegal_state"), (6, "illegal_state")]


def test_a_revision_of_a_version_that_is_not_the_current_one_is_refused() -> None:
    late = about(KnowledgeRevised(content="late", expected_version=1), "agent:a")
    log = [saved(), about(KnowledgeRevised(content="first", expected_version=1), "agent:a"), late]
    assert refused(*log) == [(3, "version_conflict")]


def test_an_event_that_is_kept_twice_counts_once() -> None:
    log = stored([saved("k1"), NewEvent(KnowledgeRated(verdict="helpful"), "k1", "agent:b")])
    again = replace_position(log[1], 3)
    con = view_of([*log, again]).con
    assert rows(con, "SELECT helpful FROM knowledge") == [(2,)]
    assert rows(con, "SELECT position, code FROM refused_events") == [(3, "duplicate_event")]


def test_an_event_that_names_another_actor_than_its_subject_is_refused() -> None:
    (event,) = stored([saved("k1", "user:victim")])
    forged = event._replace(subject=event.subject.replace("user.victim", "user.thief"))
    assert refused_of([forged]) == [(1, "illegal_subject")]


@pytest.mark.parametrize(
    "move",
    [
        lambda subject: subject.replace(".k1.", ".k2."),
        lambda subject: subject.replace(".knowledge.", ".profile."),
        lambda subject: subject.replace(".saved.", ".revised."),
        lambda subject: subject + ".more",
        lambda subject: subject.replace(".k1.", ".*."),
        lambda subject: subject.replace(".k1.", ".."),
        lambda subject: subject.replace(".k1.", ".k=311."),
        lambda _: "ledger.>",
    ],
    ids=["another id", "another entity", "another event", "longer", "a wildcard", "empty", "not canonical", "all"],
)
def test_an_event_counts_only_on_the_subject_that_names_it(move: Callable[[str], str]) -> None:
    (event,) = stored([saved("k1")])
    assert refused_of([event._replace(subject=move(event.subject))]) == [(1, "illegal_subject")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"\xff\xfe", "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b"[]", "invalid_payload"),
        (b"null", "invalid_payload"),
        (b"{}", "invalid_payload"),
    ],
    ids=["nothing", "half", "no text", "deep", "a list", "null", "an empty object"],
)
def test_what_is_no_event_is_refused_and_the_next_good_one_counts(body: bytes, code: str) -> None:
    good = stored([saved("k1"), saved("k2")])
    log = [good[0], good[0]._replace(position=2, body=body), replace_position(good[1], 3)]
    bench = view_of(log)
    assert rows(bench.con, "SELECT position, code FROM refused_events") == [(2, code)]
    assert rows(bench.con, "SELECT id FROM knowledge ORDER BY id") == [("k1",), ("k2",)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"type": "knowledge.invented"}, "invalid_payload"),
        ({"dataschema": "urn:kledger:knowledge.saved:99"}, "unsupported_version"),
        ({"dataschema": "urn:kledger:knowledge.rated:1"}, "invalid_payload"),
        ({"specversion": "0.3"}, "invalid_payload"),
        ({"time": "yesterday"}, "invalid_payload"),
        ({"time": "2026-01-01T00:00:00"}, "invalid_payload"),
        ({"id": ""}, "invalid_payload"),
        ({"id": 7}, "invalid_payload"),
        ({"actor": "nobody"}, "invalid_payload"),
        ({"data": None}, "invalid_payload"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_envelope_that_does_not_fit_is_refused(change: dict[str, object], code: str) -> None:
    (event,) = stored([saved("k1")])
    document = orjson.loads(event.body) | change
    assert refused_of([event._replace(body=orjson.dumps(document))]) == [(1, code)]


@pytest.mark.parametrize(
    "change",
    [
        {"score": 6},
        {"score": "3"},
        {"score": 3.5},
        {"types": []},
        {"types": ["Tool Box"]},
        {"types": "tool"},
        {"scopes": ["everybody"]},
        {"scopes": []},
        {"content": ""},
        {"content": 5},
        {"tags": []},
        {"confidence": 1.5},
        {"owner": None},
        {"helpful": -1},
        {"source": {"urls": [1]}},
    ],
    ids=str,
)
def test_data_that_does_not_fit_its_schema_is_refused_whoever_wrote_it(change: dict[str, object]) -> None:
    (event,) = stored([saved("k1")])
    document = orjson.loads(event.body)
    document["data"] |= change
    assert refused_of([event._replace(body=orjson.dumps(document))]) == [(1, "invalid_payload")]


def test_another_spelling_of_the_same_event_counts_as_much() -> None:
    (event,) = stored([saved("k1", tags={"a": 1.0}, task="制表\t符")])
    document = orjson.loads(event.body)
    document["data"].pop("confidence")
    document["extension"] = "of somebody"
    bench = view_of([event._replace(body=orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))])
    assert rows(bench.con, "SELECT id, confidence, task FROM knowledge") == [("k1", 0.5, "制表\t符")]


def test_a_profile_is_its_owners_alone_and_is_created_first() -> None:
    of: dict[str, Any] = {"owner": "user:1", "memory_type": "user"}
    log = [
        NewEvent(ProfilePatched(patch={}, **of), "user:1/user", "user:1"),
        NewEvent(ProfileCreated(content={}, **of), "user:1/user", "user:1"),
        NewEvent(ProfileCreated(content={}, **of), "user:1/user", "user:1"),
        NewEvent(ProfileReplaced(content={}, **of), "user:1/user", "user:2"),
        NewEvent(ProfileReplaced(content={}, **of), "user:2/user", "user:2"),
        NewEvent(ProfileDisabled(**of), "user:1/user", "user:1"),
        NewEvent(ProfilePatched(patch={}, **of), "user:1/user", "user:1"),
        NewEvent(ProfileReplaced(content={"a": 1}, **of), "user:1/user", "user:1"),
    ]
    assert refused(*log) == [
        (1, "unknown_profile"),
        (3, "illegal_state"),
        (4, "not_owner"),
        (5, "illegal_subject"),
        (7, "illegal_state"),
    ]


def test_a_goal_is_its_owners_alone_and_may_be_focused_ever_again() -> None:
    fact = GoalFocused(goal_id="g/1", owner="agent:a", description="目标")
    own = NewEvent(fact, "agent:a/g/1", "agent:a")
    assert refused(own, replace(own, id="again")) == []
    assert refused(NewEvent(fact, "agent:a/g/1", "agent:b")) == [(1, "not_owner")]
    assert refused(NewEvent(fact, "agent:b/g/1", "agent:b")) == [(1, "illegal_subject")]

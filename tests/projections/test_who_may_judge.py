"""Who may rate, score and confirm an item? Whoever reads it; of a person's own item nobody else's word counts."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.knowledge import AclEntry
from kledger.contract.scopes import Caller
from ledger.event import Fact, NewEvent, StoredEvent
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeScored,
    KnowledgeShared,
)
from ledger.readers import judge_of, may_judge, readers
from projections.engine import batch
from projections.fold_kit import visibility
from tests.projections.histories import new_view, rows, saved, state, stored, view_of
from tests.projections.honest_log import honest_log
from tests.projections.test_laws import law

VERDICTS: list[Fact] = [KnowledgeRated(verdict="helpful"), KnowledgeScored(score=1), KnowledgeConfirmed()]
READERS = ("user:u", "agent:a", "agent:b", "team:t", "project:p", "department:d", "public")


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)


@pytest.fixture(params=[0, 256], ids=["as a set", "one by one"])
def _each_road(request: pytest.FixtureRequest, _as_it_was: None) -> None:
    batch.SMALL = request.param


def refused(log: list[NewEvent]) -> list[tuple[int, str]]:
    """(position, code) of what does not count."""
    return rows(view_of(stored(log)).con, "SELECT position, code FROM refused_events ORDER BY position")


def by(actor: str, fact: Fact, through: str | None = None) -> NewEvent:
    return NewEvent(fact.model_copy(update={"through": through}), "k1", actor)


@pytest.mark.usefixtures("_each_road")
@pytest.mark.parametrize("fact", VERDICTS, ids=lambda fact: fact.name)
@pytest.mark.parametrize("through", [None, "user:u", "agent:mallory", "team:t", "public"])
def test_nobodys_verdict_counts_on_what_only_persons_read_but_theirs(fact: Fact, through: str | None) -> None:
    share = NewEvent(KnowledgeShared(acl=[AclEntry(entity="user:bob", permission="read")]), "k1", "agent:a")
    log = [
        saved("k1", "agent:a", scopes=["user:u"]),
        share,
        *(by(actor, fact, through) for actor in ("user:u", "user:bob", "agent:a")),
        *(by(actor, fact, through) for actor in ("agent:mallory", "user:local", "team:t", "user:u2")),
    ]
    assert refused(log) == [(position, "not_reader") for position in (6, 7, 8, 9)]


@pytest.mark.usefixtures("_each_road")
@pytest.mark.parametrize("fact", VERDICTS, ids=lambda fact: fact.name)
def test_who_judges_what_a_group_reads_names_a_group_that_reads_it(fact: Fact) -> None:
    log = [
        saved("k1", "agent:a", scopes=["team:t", "department:d", "user:u"]),
        *(by("user:member", fact, through) for through in ("team:t", "department:d", None)),
        by("user:u", fact, "user:u"),
        *(by("user:member", fact, through) for through in ("team:other", "user:u", "agent:a", "public", "user:member")),
    ]
    assert refused(log) == [(position, "not_reader") for position in (6, 7, 8, 9, 10)]


@pytest.mark.usefixtures("_each_road")
@pytest.mark.parametrize("fact", VERDICTS, ids=lambda fact: fact.name)
def test_what_is_public_is_judged_by_anybody(fact: Fact) -> None:
    log = [saved("k1"), *(by("agent:x", fact, through) for through in (None, "public", "agent:x", "team:t"))]
    assert refused(log) == []


@pytest.mark.usefixtures("_each_road")
@pytest.mark.parametrize("fact", VERDICTS, ids=lambda fact: fact.name)
def test_who_reads_an_item_where_the_verdict_stands_decides(fact: Fact) -> None:
    def owner(said: Fact, actor: str = "agent:a") -> NewEvent:
        return NewEvent(said, "k1", actor)

    acl = [AclEntry(entity="user:bob", permission="read")]
    log = [
        saved("k1", "agent:a"),
        by("user:bob", fact),  # public
        owner(KnowledgeRevised(scopes=["agent:a"])),
        by("user:bob", fact),  # 4: closed
        owner(KnowledgeShared(acl=acl)),
        by("user:bob", fact),
        owner(KnowledgeShared(acl=[])),
        by("user:bob", fact),  # 8: taken back
        owner(KnowledgeRevised(owner="user:bob")),
        by("user:bob", fact),
        by("agent:a", fact),  # still its scope
        owner(KnowledgeRevised(scopes=["user:bob"]), "user:bob"),
        by("agent:a", fact),  # 13: no more
        owner(KnowledgeRetired(), "user:bob"),
        by("user:bob", fact),
    ]
    assert refused(log) == [(position, "not_reader") for position in (4, 8, 13)]
    whole = stored(log)
    at_once = state(view_of(whole))
    for cut in range(1, len(log)):
        assert state(view_of(whole, [cut])) == at_once


def test_the_reason_names_the_item_the_actor_and_the_scope_it_claimed() -> None:
    log = [saved("k1", "agent:a", scopes=["team:t"]), by("agent:mallory", VERDICTS[0], "team:x")]
    ((reason,),) = rows(view_of(stored(log)).con, "SELECT reason FROM refused_events")
    assert reason == "k1 is rated by those who read it, and agent:mallory does not through team:x"


@pytest.mark.parametrize("spaced", [False, True], ids=["as we write it", "as others do"])
@pytest.mark.parametrize("small", [0, 256], ids=["as a set", "one by one"])
def test_a_log_of_version_1_in_which_readers_judged_gives_the_views_that_it_gave(spaced: bool, small: int) -> None:
    batch.SMALL = small
    found = {name: part.digest[:16] for name, part in state(view_of(honest_log(spaced))).items() if part.rows}
    assert found == {
        "events": "d4243830b6374823",
        "event_keys": "5ea5feeafa833f6c",
        "feedback": "5b265019b825d257",
        "knowledge_versions": "83700d82b38c5f70",
        "knowledge_state": "eb4d34e6b498fa0b",
    }


@pytest.mark.usefixtures("_each_road")
@pytest.mark.parametrize("fact", VERDICTS, ids=lambda fact: fact.name)
def test_version_2_says_through_what_its_actor_reads_and_version_1_never(fact: Fact) -> None:
    one, two = stored([saved("k1", scopes=["team:t"]), by("user:u", fact)])[1], by("user:u", fact, "team:t")
    stated = stored([saved("k1", scopes=["team:t"]), two])[1]
    assert b":1" in orjson.loads(one.body)["dataschema"].encode()
    assert b":2" in orjson.loads(stated.body)["dataschema"].encode()
    missing = _with(one, dataschema=orjson.loads(stated.body)["dataschema"])
    ignored = _with(one, through="team:nobody's")
    log = [stored([saved("k1", scopes=["team:t"])])[0]]
    for number, event in enumerate((one, stated, missing, ignored), 2):
        log.append(_with(event, id=f"e{number}")._replace(position=number))
    con = view_of(log).con
    assert rows(con, "SELECT position, code FROM refused_events") == [(4, "invalid_payload")]
    told = rows(con, "SELECT position, version, data->>'through' FROM events WHERE position > 1 ORDER BY position")
    assert told == [(2, 1, None), (3, 2, "team:t"), (5, 1, None)]


def _with(event: StoredEvent, **said: str) -> StoredEvent:
    document = orjson.loads(event.body)
    for name, value in said.items():
        (document["data"] if name == "through" else document)[name] = value
    return event._replace(body=orjson.dumps(document))


_entities = st.sampled_from(READERS[:-1])
_some = st.lists(st.sampled_from(READERS), min_size=1, max_size=3)


@law
@given(scopes=_some, shared=_some, owner=_entities, actor=_entities, data=st.data())
def test_sql_and_python_say_the_same_of_who_may_judge(
    scopes: list[str], shared: list[str], owner: str, actor: str, data: st.DataObject
) -> None:
    shared = [each for each in shared if each != "public"]
    through = data.draw(st.none() | st.sampled_from(READERS))
    who = readers(scopes, shared, owner)
    named = "FROM (SELECT $1::VARCHAR[] AS scopes, $2::VARCHAR[] AS shared_with, $3 AS owner, $4 AS a, $5 AS t)"
    predicate = visibility.may_judge("a", "t", visibility.readers(), visibility.shared(visibility.readers()))
    said = new_view().con.execute(
        f"SELECT list_contains(scopes, 'public') OR {predicate} {named}", [scopes, shared, owner, actor, through]
    )
    assert said.fetchone() == (may_judge(actor, through, who),)


@given(scopes=_some, owner=_entities, entities=st.lists(_entities, max_size=3))
def test_whoever_reads_an_item_judges_it_in_a_way_that_counts(
    scopes: list[str], owner: str, entities: list[str]
) -> None:
    caller, who = Caller(further=tuple(dict.fromkeys(entities))), readers(scopes, [], owner)
    judge = judge_of(caller, who)
    assert (judge is not None) == bool({*caller.reading_as(), "public"} & set(who))
    if judge is not None:
        assert judge.actor in caller.reading_as()
        assert judge.through in {*caller.reading_as(), "public"}
        assert may_judge(judge.actor, judge.through, who)

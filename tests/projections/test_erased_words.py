"""What was erased is a fact of the view: no text that somebody states passes for it, and none of it is missed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import duckdb
import pytest

from kledger.contract.knowledge import Case, Source
from ledger.event import Fact, NewEvent, StoredEvent
from ledger.events.extraction import ExtractionRequested
from ledger.events.goal import GoalFocused, goal_entity_id
from ledger.events.knowledge import (
    KnowledgeEvolved,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
)
from ledger.events.resource import ResourceRetired, ResourceSaved
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import ERASED
from ledger.privacy.vault import DataKey, MemoryVault
from ledger.privacy.whose_text import has_text
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.engine.digest import digests, state_digest
from projections.fold_kit.erased import places_of, within
from projections.live.persons import embedded_hashes, left_in_clear
from projections.vectors.changes import changes_after
from projections.vectors.wire import Store
from projections.views.goals.ask import goal
from projections.views.knowledge.ask import saved_statements
from projections.views.knowledge.versions import version_of
from projections.views.lineage.ask import stated_events
from projections.views.resources.ask import is_erased
from tests.projections.histories import new_view, rows, stored
from tests.sealed_events import sealed_event

ADA, SCRIBE = "user:ada", "agent:scribe"
QUOTED = f"the page said {ERASED} where her name was"


@pytest.fixture(params=["few", "many", "one by one"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every road of a fold: event by event, set by set, and each event in a batch of its own."""
    monkeypatch.setattr(batch, "SMALL", 0 if request.param == "many" else 64)
    return str(request.param)


@pytest.fixture
async def vault() -> MemoryVault:
    vault = MemoryVault()
    await vault.obtain(ADA)
    return vault


async def forget(vault: MemoryVault) -> None:
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")


def folded(vault: MemoryVault, log: list[StoredEvent], road: str) -> duckdb.DuckDBPyConnection:
    bench = new_view(Keyring(vault.held))
    for part in [[event] for event in log] if road == "one by one" else [log]:
        fold_batch(bench, part)
    assert rows(bench.con, "SELECT code, reason FROM refused_events") == []
    return bench.con


def stores(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The items that the vectors get."""
    return [change.item_id for change in changes_after(con, "default", 0, 100)[0] if isinstance(change, Store)]


def save(item: str, owner: str, content: str, **said: Any) -> NewEvent:
    given: dict[str, Any] = {"types": ["tool"], "task": "where", "scopes": ["public"], "owner": owner, **said}
    return NewEvent(KnowledgeSaved(**given, content=content), item, owner)


def told(item: str, fact: Fact, actor: str = SCRIBE) -> NewEvent:
    return NewEvent(fact, item, actor)


async def kept(vault: MemoryVault, *events: NewEvent, hers: str = ADA) -> list[StoredEvent]:
    """As our doors keep them: what is hers sealed, all else in clear."""
    key = await vault.obtain(hers)
    assert isinstance(key, DataKey)
    return stored([sealed_event(e, [key]) if e.actor == hers and has_text(e.fact) else e for e in events])


ERASED_VERSIONS = "SELECT id, version, erased FROM knowledge_versions ORDER BY valid_from"


async def test_a_text_that_says_the_mark_is_somebodys_words_and_one_whose_key_is_destroyed_was_erased(
    road: str, vault: MemoryVault
) -> None:
    log = await kept(
        vault, save("a", SCRIBE, ERASED), save("b", SCRIBE, QUOTED), save("c", ADA, ERASED), save("d", ADA, "hers")
    )
    con = folded(vault, log, road)
    assert rows(con, ERASED_VERSIONS) == [(item, 1, False) for item in "abcd"]
    assert stores(con) == ["a", "b", "c", "d"]
    await forget(vault)
    con = folded(vault, log, road)
    assert rows(con, ERASED_VERSIONS) == [("a", 1, False), ("b", 1, False), ("c", 1, True), ("d", 1, True)]
    assert rows(con, "SELECT id FROM knowledge WHERE NOT erased ORDER BY id") == [("a",), ("b",)]
    assert rows(con, "SELECT id FROM knowledge_at(4) WHERE erased ORDER BY id") == [("c",), ("d",)]
    assert rows(con, "SELECT content FROM knowledge WHERE erased") == [(ERASED,), (ERASED,)]
    assert stores(con) == ["a", "b"]
    said = saved_statements(con, "default", ["a", "c"])
    assert (said["a"].erased, said["c"].erased) == (False, True)


async def test_whether_words_were_erased_goes_from_version_to_version_as_the_words_do(
    road: str, vault: MemoryVault
) -> None:
    log = await kept(
        vault,
        save("a", SCRIBE, ERASED),
        told("a", KnowledgeRevised(task="her task"), ADA),
        save("b", ADA, "hers"),
        told("b", KnowledgeScored(score=5), ADA),
        told("b", KnowledgeRevised(tags={"of": "nobody"}), ADA),
        told("b", KnowledgeRetired(), ADA),
        save("c", SCRIBE, "before"),
        told("c", KnowledgeEvolved(evolution="e", base_version=1, content=ERASED)),
        told("c", KnowledgeRevised(content="after")),
    )
    await forget(vault)
    bench = new_view(Keyring(vault.held))
    for part in [[event] for event in log] if road == "one by one" else [log]:
        fold_batch(bench, part)
    found = {(item, version): gone for item, version, gone in rows(bench.con, ERASED_VERSIONS)}
    counted = {key for key in found if key[0] == "b"}
    assert counted == {("b", version) for version in range(1, 5)}
    assert all(found[key] for key in counted)
    assert not any(gone for (item, _), gone in found.items() if item != "b")
    then = version_of(bench.con, "default", "b", 2)
    assert then is not None
    assert then.erased


async def test_a_task_that_was_erased_erases_no_content_that_says_the_mark(road: str, vault: MemoryVault) -> None:
    hers = await vault.obtain(ADA)
    assert isinstance(hers, DataKey)
    revised = sealed_event(told("a", KnowledgeRevised(task="her task")), [hers])
    again = told("a", KnowledgeRevised(tags={"a": 1}))
    log = stored([save("a", SCRIBE, ERASED), revised, again])
    await forget(vault)
    con = folded(vault, log, road)
    assert rows(con, "SELECT task, content, erased FROM knowledge") == [(ERASED, ERASED, False)]


async def test_whoever_states_content_anew_after_an_erased_one_is_read(road: str, vault: MemoryVault) -> None:
    hers = await vault.obtain(ADA)
    assert isinstance(hers, DataKey)
    log = stored([sealed_event(save("a", SCRIBE, "hers"), [hers]), told("a", KnowledgeRevised(content=ERASED))])
    await forget(vault)
    con = folded(vault, log, road)
    assert rows(con, ERASED_VERSIONS) == [("a", 1, True), ("a", 2, False)]


def everything(actor: str, word: str) -> list[NewEvent]:
    """One event of each kind that a retry is compared with, or that is read for its words."""
    about: dict[str, Any] = {"owner": actor, "scopes": [actor]}
    return [
        save("k", actor, word, task=word, tags={"a": word}, source=Source(name=word, urls=[word]), scopes=[actor]),
        told("k", KnowledgeRated(verdict="helpful", case=Case(reason=word, query=word)), actor),
        NewEvent(GoalFocused(goal_id="g", owner=actor, description=word), goal_entity_id(actor, "g"), actor),
        NewEvent(ResourceSaved(title=word, body=word, **about), "r", actor),
        NewEvent(ResourceRetired(reason=word), "r", actor),
        NewEvent(
            ExtractionRequested(kind="statement", messages=[{"id": "m", "role": "user", "content": word}], **about),
            "x-1",
            actor,
        ),
    ]


async def test_every_event_says_what_of_it_was_erased_and_only_that(road: str, vault: MemoryVault) -> None:
    hers, others = everything(ADA, "hers"), everything(SCRIBE, ERASED)
    others = [replace(event, entity_id=event.entity_id.replace("k", "l")) for event in others[:3]]
    log = await kept(vault, *hers, *others)
    await forget(vault)
    con = folded(vault, log, road)
    found = stated_events(con, "default", [ADA, SCRIBE], [event.id for event in (*hers, *others)])
    fields = (
        "content",
        "task",
        "tags",
        "source",
        "case",
        "description",
        "title",
        "body",
        "reason",
        "messages",
        "owner",
    )
    erased = [{name for name in fields if found[event.id].erases(name)} for event in hers]
    assert erased[:4] == [{"content", "task", "tags", "source"}, {"case"}, {"description"}, {"title", "body"}]
    assert erased[4:] == [{"reason"}, {"messages"}]
    assert not any(found[event.id].erased for event in others)
    ours, theirs = goal(con, "default", [ADA], "g"), goal(con, "default", [SCRIBE], "g")
    assert ours is not None
    assert theirs is not None
    assert (ours.erased, theirs.erased) == (True, False)
    assert [is_erased(con, "default", "r", version) for version in (1, 2)] == [True, True]
    assert within(places_of(con, [6])[6], "messages")


async def test_what_a_person_keeps_in_clear_under_the_mark_is_told_of_as_readable(
    road: str, vault: MemoryVault
) -> None:
    clear = NewEvent(ResourceSaved(title=ERASED, body="her address", owner=ADA, scopes=[ADA]), "r", ADA)
    con = folded(vault, stored([clear, save("k", ADA, ERASED, task="her illness")]), road)
    assert left_in_clear(con, ADA) == [1, 2]
    assert len(embedded_hashes(con, ADA)) == 1, "an embedding may be kept of what stands beside the mark"


async def test_no_digest_counts_what_was_erased_so_that_old_ones_stay_what_they_were(
    road: str, vault: MemoryVault
) -> None:
    moment = datetime.fromisoformat("2026-03-05T12:00:00+00:00")
    events = [
        save("a", SCRIBE, ERASED),
        save("b", SCRIBE, QUOTED),
        save("c", ADA, "hers", tags={"a": "hers"}),
        told("c", KnowledgeScored(score=4), ADA),
    ]
    fixed = [replace(e, id=f"event-{n}", time=moment) for n, e in enumerate(events)]
    log = await kept(vault, *fixed)
    await forget(vault)
    con = folded(vault, log, road)
    before = state_digest(digests(con))
    assert before == BEFORE
    con.execute("UPDATE knowledge_versions SET erased = NOT erased")
    assert state_digest(digests(con)) == before


BEFORE = "5cecfc7890d50bc164d0088853927f50b0afbabac4231a4ffd8ca2e2433b7c95"
"""Of the same log, as it was told before the view knew what was erased."""

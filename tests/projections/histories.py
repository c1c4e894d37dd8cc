"""Histories to fold: what writers said, in the order in which the log kept it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import duckdb
from hypothesis import strategies as st

from kledger.contract.bounds import is_blank
from kledger.contract.knowledge import Case, Source
from ledger.event import Fact, Lineage, NewEvent, StoredEvent
from ledger.events.conflict import ConflictRecorded, ConflictResolved
from ledger.events.evolution import (
    EvolutionFailed,
    EvolutionProposed,
    EvolutionRejected,
    EvolutionRequested,
    EvolutionStarted,
)
from ledger.events.extraction import (
    Extracted,
    ExtractionCompleted,
    ExtractionFailed,
    ExtractionRequested,
    ExtractionStarted,
)
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import FACTS as ABOUT_ITEMS
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeConfirmed,
    KnowledgeEvolved,
    KnowledgeExpired,
    KnowledgeMerged,
    KnowledgePromoted,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    KnowledgeUnmerged,
    Origin,
)
from ledger.events.process import ProcessFact
from ledger.events.profile import ProfileCreated, ProfileDisabled, ProfilePatched, ProfileReplaced
from ledger.events.project import ProjectMemberAssigned
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.slim import (
    Similar,
    Skipped,
    SlimApplied,
    SlimApproved,
    SlimFailed,
    SlimProposed,
    SlimRejected,
    SlimReported,
    SlimRequested,
    SlimReverted,
    SlimStarted,
    SlimWithdrawn,
)
from ledger.events.statement import StatementDropped, StatementHeld, StatementReleased
from ledger.events.usage import Usage
from ledger.privacy.keyring import Keyring
from ledger.wire.envelope import encode
from ledger.wire.subjects import event_subject
from projections.engine.batch import fold_batch
from projections.engine.digest import RelationDigest
from projections.engine.duckdb import open_view
from projections.fold_kit.workbench import Workbench
from projections.views.knowledge.tables import OUTDATED
from tests.projections.damage import DAMAGE, older
from tests.projections.document_facts import DOCUMENTS, about_documents
from tests.projections.edges import edged, with_id_of
from tests.projections.empty_views import empty
from tests.projections.memory_facts import memories
from tests.projections.planned_digests import digests
from tests.projections.project_facts import PROJECT, assigned
from tests.projections.resource_facts import RESOURCES, about_resources
from tests.projections.sharing import scope_types, shares

START_NS = 1_790_000_000_000_000_000
OWNERS = ("agent:a", "user:王", "org:x y")
ITEMS = ("k1", "k2", "论/文.1", "k*>4")


def stored(events: Sequence[NewEvent], first: int = 1) -> list[StoredEvent]:
    """The events as the log would hold them, a millisecond apart."""
    return [
        StoredEvent(
            first + n,
            START_NS + (first + n) * 1_000_000,
            event_subject(e.org, e.fact.entity(), e.entity_id, e.fact.verb(), e.actor),
            encode(e),
        )
        for n, e in enumerate(events)
    ]


_ring: deque[Workbench] = deque()


def new_view(keyring: Keyring | None = None) -> Workbench:
    """An empty view in memory; the last three stay valid, an older one is emptied and used again."""
    if len(_ring) < 3:
        _ring.append(Workbench(open_view(None)))
    else:
        _ring.rotate(-1)
    bench = _ring[-1]
    bench.keyring = keyring or Keyring()
    empty(bench.con)
    bench.at(None)  # it was emptied behind its back
    return bench


def view_of(events: Sequence[StoredEvent], cuts: Sequence[int] = ()) -> Workbench:
    """A view with the events folded in, in batches that end at each of `cuts`."""
    bench = new_view()
    for part in parts(events, cuts):
        fold_batch(bench, part)
    return bench


def parts(events: Sequence[StoredEvent], cuts: Sequence[int]) -> list[list[StoredEvent]]:
    """The events in parts that end at each of `cuts`."""
    edges = sorted({0, len(events), *(cut % (len(events) + 1) for cut in cuts)})
    return [list(events[start:end]) for start, end in pairwise(edges)]


def state(bench: Workbench) -> dict[str, RelationDigest]:
    """The digest of every relation; what an item's state has for the rules, and no digest, is that of its version."""
    assert rows(bench.con, OUTDATED) == []
    return digests(bench.con)


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


def saved(item: str = "k1", owner: str = "agent:a", **said: Any) -> NewEvent:
    """A save that the gate accepts."""
    given: dict[str, Any] = {"types": ["tool"], "task": "a task", "content": "a content", "scopes": ["public"]}
    return NewEvent(KnowledgeSaved(**{**given, "owner": owner, **said}), item, owner)


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_tags = st.dictionaries(_texts, st.one_of(_texts, st.integers(-5, 5), st.booleans(), st.none()), max_size=2)
_ids = st.none() | st.sampled_from(["t1", "t2", "轨迹", 'q"uote'])
_owners = st.sampled_from(OWNERS)
_scopes = st.lists(st.sampled_from([*OWNERS, "public", "team:t", "project:p"]), min_size=1, max_size=3)
_through = st.none() | st.sampled_from([*OWNERS, "public", "team:t"])
_sources = st.builds(Source, name=st.none() | _texts, trace_id=_ids, message_id=_ids)
_cases = st.builds(Case, task=st.none() | _texts, reason=st.none() | _texts, trace_id=_ids)
_contents = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20).filter(
    lambda text: not is_blank(text)
)

_saves = st.builds(
    KnowledgeSaved,
    types=st.lists(st.sampled_from(["tool", "plan"]), min_size=1, max_size=2),
    task=_texts,
    content=_contents,
    tags=_tags,
    scopes=_scopes,
    owner=_owners,
    resource_ids=st.lists(_contents, max_size=2),
    source=_sources,
    score=st.integers(1, 5),
    confidence=st.floats(0, 1),
    memory=st.none() | memories(_contents),
    origin=st.none() | st.builds(Origin, trace_id=_ids, message_id=_ids, created_at=st.none() | st.just("2026-03-05")),
)
_revisions = st.builds(
    KnowledgeRevised,
    content=_contents,
    task=st.none() | _texts,
    tags=st.none() | _tags,
    scopes=st.none() | _scopes,
    owner=st.none() | _owners,
    expected_version=st.none() | st.integers(1, 4),
)
_processes = st.sampled_from(["p1", "进程"])
_versions = st.integers(1, 4)
_item_ids = st.sampled_from(ITEMS)
_of_items: dict[type[Fact], st.SearchStrategy[Fact]] = {
    KnowledgeSaved: _saves,
    KnowledgeRevised: _revisions,
    KnowledgeShared: shares(OWNERS),
    KnowledgeRated: st.builds(
        KnowledgeRated, verdict=st.sampled_from(["helpful", "harmful"]), case=_cases, through=_through
    ),
    KnowledgeScored: st.builds(KnowledgeScored, score=st.integers(1, 5), through=_through),
    KnowledgeRetired: st.builds(KnowledgeRetired, reason=st.none() | _texts),
    KnowledgeConfirmed: st.builds(KnowledgeConfirmed, case=_cases, through=_through),
    KnowledgeEvolved: st.builds(KnowledgeEvolved, evolution=_processes, base_version=_versions, content=_contents),
    KnowledgeReverted: st.builds(
        KnowledgeReverted,
        to_version=_versions,
        types=st.just(["plan"]),
        task=_texts,
        content=_contents,
        tags=_tags,
        scopes=_scopes,
        resource_ids=st.lists(_contents, max_size=1),
        source=_sources,
        score=st.integers(1, 5),
        cause=st.none() | _processes,
    ),
    KnowledgeAbsorbed: st.builds(
        KnowledgeAbsorbed,
        slim=_processes,
        merged=st.lists(_item_ids, min_size=1, max_size=2),
        task=st.none() | _texts,
        tags=st.none() | _tags,
    ),
    KnowledgeMerged: st.builds(KnowledgeMerged, into=_item_ids, slim=_processes),
    KnowledgeUnmerged: st.builds(KnowledgeUnmerged, slim=_processes),
    KnowledgePromoted: st.builds(KnowledgePromoted, cause=st.sampled_from(["recalled", "confirmed"]), through=_through),
    KnowledgeExpired: st.builds(KnowledgeExpired, after=st.integers(1, 5)),
}
# An event that is not named here is drawn from the types of its fields.
_about_items = st.one_of(_saves, _revisions, *(_of_items.get(fact, st.builds(fact)) for fact in ABOUT_ITEMS))
_usages = st.builds(
    Usage,
    model=st.just("m"),
    prompt_version=st.just("1"),
    input_tokens=st.integers(0, 9),
    cost_usd=st.none() | st.floats(0, 1),
)
_started = {"call": st.just("c-1"), "model": st.just("m")}
_about_processes = st.one_of(
    st.builds(EvolutionRequested, item_id=_item_ids, base_version=_versions, feedback=_contents),
    st.builds(EvolutionRequested, item_id=_item_ids, base_version=_versions, feedback=_contents),
    st.builds(EvolutionStarted, **_started),
    st.builds(EvolutionProposed, item_id=_item_ids, content=_contents, usage=_usages),
    st.builds(EvolutionRejected, item_id=_item_ids, reason=st.none() | _texts),
    st.builds(EvolutionFailed, item_id=_item_ids, code=st.just("model_failed"), reason=_texts),
    st.builds(
        ExtractionRequested,
        kind=st.just("task"),
        messages=st.lists(_tags, min_size=1, max_size=2),
        owner=_owners,
        scopes=_scopes,
    ),
    st.builds(ExtractionStarted, **_started),
    st.builds(
        ExtractionCompleted,
        items=st.lists(st.builds(Extracted, knowledge_id=_item_ids, action=st.just("saved")), max_size=2),
        usage=_usages,
    ),
    st.builds(ExtractionFailed, code=st.just("model_failed"), reason=_texts, usage=st.none() | _usages),
    st.builds(SlimRequested, owner=_owners, scopes=st.none() | _scopes, threshold=st.floats(0.5, 1)),
    st.builds(SlimStarted, **_started),
    st.builds(
        SlimProposed,
        group=st.integers(0, 3),
        survivor=_item_ids,
        survivor_version=_versions,
        merged=st.lists(
            st.builds(Similar, id=_item_ids, version=_versions, similarity=st.floats(0, 1)), min_size=1, max_size=2
        ),
        tags=st.none() | _tags,
        usage=st.none() | _usages,
    ),
    st.builds(SlimReported, candidates=st.just(3), groups=st.just(1), items=st.just(2), seconds=st.floats(0, 9)),
    st.builds(
        SlimApplied,
        groups=st.just(1),
        skipped=st.lists(st.builds(Skipped, group=st.integers(0, 2), reason=_texts), max_size=2),
    ),
    st.builds(SlimApproved, reason=st.none() | _texts),
    st.builds(SlimWithdrawn, reason=st.none() | _texts),
    st.builds(SlimReverted, groups=st.just(1)),
    st.builds(SlimRejected, reason=st.none() | _texts),
    st.builds(SlimFailed, code=st.just("model_failed"), reason=_texts),
    st.builds(
        ConflictRecorded,
        first=_item_ids,
        first_version=_versions,
        second=_item_ids,
        second_version=_versions,
        reason=_texts,
    ),
    st.builds(ConflictResolved, winner=st.none() | _item_ids),
    st.builds(
        StatementHeld,
        item_id=_item_ids,
        retired_at=_versions,
        scopes=_scopes,
        statement=_tags,
    ),
    st.builds(StatementReleased, by=_owners, item_id=_item_ids, reason=st.none() | _texts),
    st.builds(StatementDropped, by=_owners, item_id=_item_ids, reason=st.none() | _texts),
)
_memory = {"owner": st.sampled_from(["user:王", "user:2"]), "memory_type": st.sampled_from(["user", "work"])}
_documents = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers(0, 9) | _texts,
        lambda inner: st.dictionaries(st.sampled_from("ab"), inner),
        max_leaves=3,
    ),
    max_size=3,
)
_about_profiles = st.one_of(
    st.builds(ProfileCreated, content=_documents, **_memory),
    st.builds(ProfileReplaced, content=_documents, **_memory),
    st.builds(ProfilePatched, patch=_documents, **_memory),
    st.builds(ProfileDisabled, **_memory),
)
_served = st.builds(ServedItem, id=st.sampled_from(ITEMS), version=st.integers(1, 3), relevance=st.floats(0, 2))
_recalls = st.builds(
    RecallServed,
    kind=st.sampled_from(["search", "recall", "page"]),
    query=_texts,
    visible_scopes=_scopes,
    items=st.lists(_served, max_size=3),
    view_position=st.integers(0, 9),
)
_resources = about_resources(_texts, _contents, _tags, _scopes, _owners)
_ingested = about_documents(_texts, _scopes, _owners)

_focuses = st.builds(
    GoalFocused,
    goal_id=st.sampled_from(["g1", "目标/2"]),
    owner=_owners,
    description=_contents,
    items=st.lists(_served, max_size=3),
    recall=st.none() | st.just("recall-1"),
)


@st.composite
def _event(draw: st.DrawFn) -> NewEvent:
    people = (_about_profiles, _resources, _ingested, _recalls, _focuses, scope_types(), assigned())
    fact: Fact = draw(st.one_of(_about_items, _about_items, _about_processes, *people))
    ids, actors = _of_whom_and_by_whom(fact, draw(_owners))
    return NewEvent(
        fact,
        draw(ids),
        draw(st.sampled_from(actors)),
        org=draw(st.sampled_from(["default", "default", "orgä"])),
        lineage=Lineage(draw(_ids), draw(_ids), causation_id=draw(_ids)),
        id=draw(st.uuids()).hex,
        time=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw(st.integers(0, 10**12))),
    )


def _of_whom_and_by_whom(fact: Fact, anybody: str) -> tuple[st.SearchStrategy[str], list[str]]:
    """The ids that the entity of a fact may have, and who may state it: most often somebody who has the right to."""
    if isinstance(fact, (ProfileCreated, ProfileReplaced, ProfilePatched, ProfileDisabled)):
        return st.just(f"{fact.owner}/{fact.memory_type}"), [fact.owner, fact.owner, anybody]
    if fact.entity() == "resource":
        return st.sampled_from(RESOURCES), [getattr(fact, "owner", anybody), anybody]
    if fact.entity() == "document":
        return st.sampled_from(DOCUMENTS), [getattr(fact, "owner", anybody), anybody]
    if isinstance(fact, RecallServed):
        return st.uuids().map(lambda each: each.hex), [anybody]
    if fact.entity() == "scope_type":
        return st.just(str(fact.stated_id())), ["user:local", "user:local", anybody]
    if isinstance(fact, ProjectMemberAssigned):
        return st.just(PROJECT), ["user:local", "user:local", anybody]
    if isinstance(fact, GoalFocused):
        return st.just(fact.stated_id()), [fact.owner, fact.owner, anybody]
    if isinstance(fact, ProcessFact):
        return _processes, [OWNERS[0], OWNERS[0], anybody]
    if isinstance(fact, KnowledgePromoted | KnowledgeExpired):
        return st.sampled_from(ITEMS), ["user:local", "user:local", anybody]
    if isinstance(fact, KnowledgeSaved):
        return st.sampled_from(ITEMS), [fact.owner, fact.owner, anybody]
    return st.sampled_from(ITEMS), [anybody]


_BECOMES = ("as it is",) * 7 + ("damaged", "older", "another again", "edged", "edged", "with the id of another")


@st.composite
def histories(draw: st.DrawFn, max_size: int = 14) -> list[StoredEvent]:
    """A log: every kind of event, with refusable, repeated, older and damaged ones among them, and ids of others."""
    told: list[StoredEvent] = []
    for event in stored(draw(st.lists(_event(), min_size=1, max_size=max_size))):
        told.append(_odd(draw, event, told, draw(st.sampled_from(_BECOMES))))
    return told


def _odd(draw: st.DrawFn, event: StoredEvent, told: list[StoredEvent], becomes: str) -> StoredEvent:
    """The event as something is wrong with it, where that can be; `told` are those before it."""
    if becomes == "damaged":
        damaged: StoredEvent = draw(st.sampled_from(DAMAGE))(event)
        return damaged
    if becomes == "older" and ".saved." in event.subject and b'"knowledge.saved"' in event.body:
        return older(event)
    if becomes == "another again" and told:
        return replace_position(draw(st.sampled_from(told)), event.position)
    if becomes == "edged":
        return draw(edged(event))
    if becomes == "with the id of another" and told:
        return with_id_of(event, draw(st.sampled_from(told)))
    return event


def replace_position(event: StoredEvent, position: int) -> StoredEvent:
    """The same message, kept again at another position."""
    return event._replace(position=position, stored_ns=START_NS + position * 1_000_000)

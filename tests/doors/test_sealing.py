"""What of an event is sealed, and for whom: by the doors' ledger, around one in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from typing import Any

import orjson
import pytest

from kledger.contract.errors import InvalidPayload, SubjectForgotten
from kledger.contract.knowledge import AclEntry, Case, Source
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import SaveRequest
from ledger.event import NO_LINEAGE, Fact, NewEvent
from ledger.events.conflict import ConflictRecorded, ConflictResolved
from ledger.events.document import DocumentIngested, DocumentRemoved
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeEvolved,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
)
from ledger.events.profile import ProfileDisabled, ProfileReplaced
from ledger.events.recall import RecallServed
from ledger.events.resource import ResourceRetired, ResourceSaved
from ledger.events.summary import AbstractCompleted, AbstractRequested
from ledger.events.usage import Usage
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import MemoryVault
from ledger.store.atomic_batch import MAX_MESSAGES
from producers.operations.knowledge import saving
from producers.operations.publish import Tally, publish
from producers.operations.sealing import SealingLedger
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.fold_kit.workbench import Workbench
from projections.live.belonging import belonged_before
from projections.live.persons import PersonsOfItems, embedded_hashes, items_of, left_in_clear
from tests.doors.live_desk import LiveDesk, live_desk

SECRET = "marker-一二三"
USAGE = Usage(model="big", prompt_version="1")
ITEM: dict[str, Any] = {"types": ["tool"], "task": SECRET, "content": SECRET}
FULL = {**ITEM, "tags": {SECRET: SECRET}, "source": Source(name=SECRET, urls=[SECRET, SECRET], submitted_by=SECRET)}


class Sealing:
    """A desk whose log is sealed, and what reached that log."""

    def __init__(self, desk: LiveDesk) -> None:
        self.desk, self.vault = desk, MemoryVault()
        desk.view.instance.bench.keyring = Keyring(self.vault.held)
        view = desk.view
        self.ledger = SealingLedger(desk.ledger, self.vault, PersonsOfItems(view).of, before=belonged_before(view))

    async def append(self, fact: Fact, actor: str, entity_id: str = "k1") -> str:
        """The data of the event as the log has it, as text."""
        kept = await self.ledger.append(NewEvent(fact, entity_id, actor))
        async for events in self.desk.ledger.read(kept.position):
            return orjson.dumps(orjson.loads(events[0].body)["data"]).decode()
        raise AssertionError("the log does not have it")


@pytest.fixture
async def sealing() -> AsyncIterator[Sealing]:
    async with live_desk() as desk:
        yield Sealing(desk)


@pytest.mark.parametrize(
    ("fact", "entity_id"),
    [
        (KnowledgeSaved(**FULL, scopes=["public"], owner="user:ada"), "k1"),
        (KnowledgeRevised(**FULL, reason=SECRET), "k1"),
        (KnowledgeRated(verdict="harmful", case=Case(task=SECRET, query=SECRET, outcome=SECRET, reason=SECRET)), "k1"),
        (KnowledgeScored(score=2, reason=SECRET), "k1"),
        (KnowledgeRetired(reason=SECRET), "k1"),
        (ProfileReplaced(owner="user:ada", memory_type="user", content={SECRET: [SECRET]}), "user:ada/user"),
        (ProfileDisabled(owner="user:ada", memory_type="user", reason=SECRET), "user:ada/user"),
        (RecallServed(query=SECRET, visible_scopes=["public"], items=[], view_position=1), "r1"),
        (GoalFocused(goal_id="g", owner="user:ada", description=SECRET), "user:ada/g"),
    ],
    ids=lambda given: given.name if isinstance(given, Fact) else None,
)
async def test_no_word_of_a_person_reaches_the_log_in_clear(sealing: Sealing, fact: Fact, entity_id: str) -> None:
    data = await sealing.append(fact, "user:ada", entity_id)
    assert SECRET not in data
    assert "sealed:v1:user:ada:" in data


async def test_what_gates_and_foreign_readers_need_stays_readable(sealing: Sealing) -> None:
    fact = KnowledgeSaved(**FULL, scopes=["user:ada", "team:x"], owner="user:ada", resource_ids=["code/x"])
    data = orjson.loads(await sealing.append(fact, "user:ada"))
    assert (data["owner"], data["scopes"], data["types"]) == ("user:ada", ["user:ada", "team:x"], ["tool"])
    assert (data["score"], data["resource_ids"]) == (3, ["code/x"])
    rated = KnowledgeRated(verdict="helpful", case=Case(query=SECRET, trace_id="t1", timestamp="2026-01-01"))
    data = orjson.loads(await sealing.append(rated, "user:ada"))
    assert (data["verdict"], data["case"]["trace_id"], data["case"]["timestamp"]) == ("helpful", "t1", "2026-01-01")


@pytest.mark.parametrize(("owner", "scopes"), [("agent:a", ["public"]), ("user:local", ["user:local"])])
async def test_what_belongs_to_no_person_stays_in_clear(sealing: Sealing, owner: str, scopes: list[str]) -> None:
    assert SECRET in await sealing.append(KnowledgeSaved(**FULL, scopes=scopes, owner=owner), owner)


async def test_what_an_agent_knows_of_persons_is_sealed_for_each_of_them(sealing: Sealing) -> None:
    fact = KnowledgeSaved(**ITEM, scopes=["user:bob", "user:ada", "public"], owner="agent:a")
    assert SECRET not in await sealing.append(fact, "agent:a")
    assert set(sealing.vault.held(["user:ada", "user:bob"])) == {"user:ada", "user:bob"}


async def test_a_case_is_sealed_for_whom_an_item_of_the_same_list_belongs_to(sealing: Sealing) -> None:
    """However many events are between: a list is sealed in pieces, and the view does not have the item yet."""

    async def unknown(_org: str, _items: Sequence[str]) -> dict[str, list[str]]:
        return {}

    ledger = SealingLedger(sealing.desk.ledger, sealing.vault, unknown)
    theirs = KnowledgeSaved(**ITEM, scopes=["public"], owner="agent:a")
    others = [NewEvent(theirs, f"other-{n}", "agent:a") for n in range(MAX_MESSAGES)]
    save = NewEvent(KnowledgeSaved(**ITEM, scopes=["public"], owner="user:ada"), "k1", "user:ada")
    rated = NewEvent(KnowledgeRated(verdict="harmful", case=Case(task=SECRET, outcome=SECRET)), "k1", "agent:a")
    kept = await ledger.append_many([save, *others, rated])
    async for events in sealing.desk.ledger.read(kept[-1].position):
        assert b"sealed:v1:user:ada:" in events[0].body
        assert SECRET.encode() not in events[0].body


async def test_a_case_about_somebodys_item_is_sealed_for_both(sealing: Sealing) -> None:
    await sealing.append(KnowledgeSaved(**ITEM, scopes=["public"], owner="user:ada"), "user:ada")
    await sealing.desk.view.wait_for(1)
    about = KnowledgeRated(verdict="helpful", case=Case(query=SECRET))
    assert SECRET not in await sealing.append(about, "agent:a")
    await sealing.append(about, "user:bob")
    assert set(sealing.vault.held(["user:ada", "user:bob", "agent:a"])) == {"user:ada", "user:bob"}


async def test_a_case_is_sealed_for_whom_the_item_belongs_to_since_it_was_last_asked(sealing: Sealing) -> None:
    await sealing.append(KnowledgeSaved(**ITEM, scopes=["public"], owner="agent:a"), "agent:a")
    await sealing.desk.view.wait_for(1)
    about = KnowledgeRated(verdict="helpful", case=Case(query=SECRET))
    assert SECRET in await sealing.append(about, "agent:a")
    await sealing.append(KnowledgeRevised(scopes=["user:ada"]), "agent:a")
    await sealing.desk.view.wait_for(3)
    assert SECRET not in await sealing.append(about, "agent:a")


async def test_what_a_writer_writes_into_somebodys_item_is_sealed_for_both_and_reading_makes_nothing_theirs(
    sealing: Sealing,
) -> None:
    acl = [AclEntry(entity="user:bob", permission="read_write"), AclEntry(entity="user:carol", permission="read")]
    await sealing.append(KnowledgeSaved(**ITEM, scopes=["user:ada"], owner="user:ada"), "user:ada")
    await sealing.append(KnowledgeShared(acl=acl), "user:ada")
    await sealing.desk.view.wait_for(2)
    assert SECRET not in await sealing.append(KnowledgeRevised(content=SECRET), "user:bob")
    assert set(sealing.vault.held(["user:ada", "user:bob", "user:carol"])) == {"user:ada", "user:bob"}
    assert SECRET in await sealing.append(KnowledgeSaved(**ITEM, scopes=["agent:a"], owner="agent:a"), "agent:a", "k2")
    await sealing.append(KnowledgeShared(acl=acl), "agent:a", "k2")
    await sealing.append(KnowledgeRevised(content=SECRET), "user:bob", "k2")
    await sealing.desk.view.wait_for(6)
    ask = sealing.desk.view.ask
    assert [await ask(items_of, f"user:{name}") for name in ("ada", "bob", "carol")] == [["k1"], ["k1", "k2"], []]
    assert [len(await ask(embedded_hashes, f"user:{name}")) for name in ("ada", "bob", "carol")] == [1, 1, 0]
    assert [await ask(left_in_clear, f"user:{name}") for name in ("bob", "carol")] == [[3, 6], []]
    await sealing.vault.destroy("user:bob", by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
    con = open_view(None)
    bench = Workbench(con, Keyring(sealing.vault.held))
    fold_batch(bench, [event async for events in sealing.desk.ledger.read() for event in events])
    said = con.execute("SELECT id, version, content FROM knowledge_versions ORDER BY id, version").fetchall()
    assert said == [
        *(("k1", 1, SECRET), ("k1", 2, SECRET), ("k1", 3, "[erased]")),
        *(("k2", 1, SECRET), ("k2", 2, SECRET), ("k2", 3, "[erased]")),
    ]
    with closing(con.cursor()) as cursor:
        assert left_in_clear(cursor, "user:bob") == []


async def test_words_of_a_writer_are_sealed_for_them_when_the_owner_states_them_anew_or_has_them_rewritten(
    sealing: Sealing,
) -> None:
    view = sealing.desk.view
    acl = [AclEntry(entity="user:bob", permission="read_write")]

    async def said(fact: Fact, entity_id: str = "k1", actor: str = "agent:a") -> bool:
        """Whether what was said is in the log in clear."""
        clear = SECRET in await sealing.append(fact, actor, entity_id)
        await view.wait_for((await sealing.ledger.head()).position)
        return clear

    def reverted(to_version: int) -> KnowledgeReverted:
        return KnowledgeReverted(**FULL, to_version=to_version, scopes=["agent:a"], resource_ids=[], score=3)

    assert await said(KnowledgeSaved(**ITEM, scopes=["agent:a"], owner="agent:a"))
    await said(KnowledgeShared(acl=acl))
    assert not await said(KnowledgeRevised(content=SECRET), actor="user:bob")  # version 3
    assert await said(KnowledgeRevised(task=f"{SECRET} is how"))
    assert await said(reverted(2)), "version 5 has no word of the writer"
    assert not await said(reverted(4)), "nor is it the task alone that version 4 has"
    assert not await said(reverted(6))
    asked = EvolutionRequested(item_id="k1", base_version=7, feedback="-", apply=True, model="big")
    await said(asked, "e1")
    proposed = EvolutionProposed(item_id="k1", content=SECRET, usage=USAGE)
    assert not await said(proposed, "e1")
    assert not await said(KnowledgeEvolved(evolution="e1", base_version=7, content=SECRET))
    assert not await said(reverted(8)), "version 8 is made of the writer's words"
    assert await said(KnowledgeRevised(**FULL))
    assert await said(reverted(10))
    assert len(await view.ask(embedded_hashes, "user:bob")) == 2, "with and without the other task"


async def test_what_is_said_of_two_items_is_sealed_for_the_persons_of_both(sealing: Sealing) -> None:
    await sealing.append(KnowledgeSaved(**ITEM, scopes=["public"], owner="user:ada"), "user:ada", "k1")
    await sealing.append(KnowledgeSaved(**ITEM, scopes=["public"], owner="agent:a"), "agent:a", "k2")
    await sealing.desk.view.wait_for(2)
    for first, second in (("k1", "k2"), ("k2", "k1")):
        fact = ConflictRecorded(first=first, first_version=1, second=second, second_version=1, reason=SECRET)
        assert SECRET not in await sealing.append(fact, "agent:a", f"conflict-{first}")
        await sealing.desk.view.wait_for((await sealing.ledger.head()).position)
        assert SECRET not in await sealing.append(ConflictResolved(reason=SECRET), "agent:a", f"conflict-{first}")
    saved = NewEvent(KnowledgeSaved(**ITEM, scopes=["user:cy"], owner="agent:a"), "k3", "agent:a")
    of_new = ConflictRecorded(first="k2", first_version=1, second="k3", second_version=1, reason=SECRET)
    kept = await sealing.ledger.append_many([saved, NewEvent(of_new, "conflict-k3", "agent:a")])
    async for events in sealing.desk.ledger.read(kept[0].position):
        assert not any(SECRET.encode() in event.body for event in events), "also where one was saved with it"


@pytest.mark.parametrize("kind", ["resource", "document"])
async def test_a_resource_and_a_document_belong_to_all_whose_they_ever_were_as_an_item_does(
    sealing: Sealing, kind: str
) -> None:
    def whole(scopes: list[str], owner: str = "agent:a") -> Fact:
        said: dict[str, Any] = {"title": SECRET, "scopes": scopes, "owner": owner}
        if kind == "resource":
            return ResourceSaved(**said, body=SECRET, metadata={SECRET: SECRET})
        return DocumentIngested(**DocumentIngested.example.data | said | {"summary": SECRET})

    async def said(fact: Fact, entity_id: str) -> bool:
        """Whether what was said is in the log in clear."""
        clear = SECRET in await sealing.append(fact, "agent:a", entity_id)
        await sealing.desk.view.wait_for((await sealing.ledger.head()).position)
        return clear

    assert await said(whole(["agent:a"]), "r/1")
    assert not await said(whole(["user:ada"]), "r/1")
    assert not await said(whole(["agent:a"]), "r/1")
    gone = ResourceRetired(reason=SECRET) if kind == "resource" else DocumentRemoved(reason=SECRET)
    assert not await said(gone, "r/1")
    assert await said(whole(["agent:a"]), "r/2")
    if kind == "document":
        await said(AbstractRequested(document="r/1"), "abstract-1")
        summed = AbstractCompleted(**AbstractCompleted.example.data | {"summary": SECRET, "scopes": ["agent:a"]})
        assert not await said(summed.model_copy(update={"owner": "agent:a"}), "abstract-1")


async def test_what_is_left_in_clear_is_named_by_the_events_that_hold_the_words(sealing: Sealing) -> None:
    async def said(fact: Fact, item: str, actor: str = "agent:a") -> None:
        await sealing.append(fact, actor, item)

    await said(KnowledgeSaved(**ITEM, scopes=["public"], owner="agent:a"), "k1")
    await said(KnowledgeRevised(scopes=["user:bob"]), "k1")
    await said(KnowledgeSaved(**ITEM, scopes=["public"], owner="agent:a"), "k2")
    await said(KnowledgeRevised(content="other words"), "k2")
    await said(KnowledgeRated(verdict="helpful"), "k2", "agent:b")
    await said(KnowledgeRevised(owner="user:carol"), "k2")
    await sealing.desk.view.wait_for(6)
    await said(KnowledgeRevised(content="her own words, sealed"), "k2", "user:carol")
    await said(KnowledgeSaved(**ITEM, scopes=["user:dan"], owner="user:dan"), "k3", "user:dan")
    await sealing.desk.view.wait_for(8)
    for person in ("bob", "carol", "dan"):
        await sealing.vault.destroy(f"user:{person}", by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
    con = open_view(None)
    bench = Workbench(con, Keyring(sealing.vault.held))
    fold_batch(bench, [event async for events in sealing.desk.ledger.read() for event in events])
    with closing(con.cursor()) as cursor:
        assert left_in_clear(cursor, "user:bob") == [1], "the save holds the words, not the event that scoped it to him"
        assert left_in_clear(cursor, "user:carol") == [3, 4], "the task is from the save, the content from its revision"
        assert left_in_clear(cursor, "user:dan") == []


async def test_nothing_more_is_kept_of_somebody_who_was_forgotten(sealing: Sealing) -> None:
    saved = KnowledgeSaved(**ITEM, scopes=["public"], owner="user:ada")
    await sealing.append(saved, "user:ada")
    await sealing.vault.destroy("user:ada", by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
    sealing.ledger.forget("user:ada")
    with pytest.raises(SubjectForgotten, match="r-1"):
        await sealing.append(saved, "user:ada", "k2")
    assert (await sealing.desk.ledger.head()).position == 1


async def test_a_search_of_somebody_who_was_forgotten_is_recorded_without_its_words(sealing: Sealing) -> None:
    await sealing.vault.destroy("user:ada", by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
    fact = RecallServed(query=SECRET, visible_scopes=["public"], items=[], view_position=1)
    assert orjson.loads(await sealing.append(fact, "user:ada", "r1"))["query"] == "[erased]"


async def test_many_are_sealed_each_for_its_own_person(sealing: Sealing) -> None:
    about = [("user:ada", "k1"), ("agent:a", "k2"), ("user:bob", "k3")]
    facts = [(KnowledgeSaved(**ITEM, scopes=["public"], owner=owner), item, owner) for owner, item in about]
    await sealing.ledger.append_many([NewEvent(*each) for each in facts])
    (bodies,) = [[event.body.decode() for event in events] async for events in sealing.desk.ledger.read()]
    assert ["sealed:v1:user:ada:" in bodies[0], SECRET in bodies[1], "sealed:v1:user:bob:" in bodies[2]] == [True] * 3


async def test_a_text_that_passes_for_a_sealed_one_is_refused_before_it_is_kept(sealing: Sealing) -> None:
    for said in ({"content": "sealed:v1:user:ada:AAAA"}, {"tags": {"a": ["sealed:v1:x"]}}):
        fact = KnowledgeSaved(**{**ITEM, **said}, scopes=["public"], owner="agent:a")
        with pytest.raises(InvalidPayload, match="begins with sealed:v1:"):
            await publish(sealing.ledger, Tally(), [NewEvent(fact, "k1", "agent:a")])
    quoted = KnowledgeSaved(**{**ITEM, "content": 'says "sealed:v1:x"'}, scopes=["public"], owner="agent:a")
    await publish(sealing.ledger, Tally(), [NewEvent(quoted, "k1", "agent:a")])


async def test_a_retried_save_is_the_same_event_although_it_is_sealed_anew(sealing: Sealing) -> None:
    sealing.desk.ledger, inner = sealing.ledger, sealing.desk.ledger  # type: ignore[assignment]
    payload = SaveRequest(id="k1", task=SECRET, content=SECRET, types=["tool"])
    first = await saving.save(sealing.desk, Caller(user="ada"), NO_LINEAGE, payload)
    again = await saving.save(sealing.desk, Caller(user="ada"), NO_LINEAGE, payload)
    assert (again["position"], again["duplicate"], (await inner.head()).position) == (first["position"], True, 1)


async def test_the_first_cases_of_an_item_belong_to_whom_the_item_does(sealing: Sealing) -> None:
    save = KnowledgeSaved(**ITEM, scopes=["user:ada"], owner="agent:a")
    case = KnowledgeRated(verdict="helpful", case=Case(outcome=SECRET), through="agent:a")
    kept = await sealing.ledger.append_many([NewEvent(fact, "k9", "agent:a") for fact in (save, case)])
    async for events in sealing.desk.ledger.read(kept[0].position):
        assert [SECRET in event.body.decode() for event in events] == [False, False]
        break

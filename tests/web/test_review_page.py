"""What waits is decided on the page of review: by who may, with a notice, and taken back where that can be."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kledger import LedgerClient
from ledger.event import NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.store.jetstream import JetStreamLedger
from producers.web.pages.review import conflicts
from tests.journeys.running_node import RunningNode, caught_up, running, until
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.web.visitor import Visitor, undone, visitor, words

TABS = ("conflicts", "proposals", "approvals", "held", "expired")
DECISIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("conflicts", {"what": "both"}),
    ("evolutions", {"what": "apply"}),
    ("evolutions", {"what": "reject"}),
    ("evolutions", {"what": "revert"}),
    ("slims", {"what": "apply"}),
    ("slims", {"what": "reject"}),
    ("slims", {"what": "revert"}),
    ("approvals", {"what": "approve", "version": "1"}),
    ("approvals", {"what": "reject", "version": "1"}),
    ("held", {"what": "release"}),
    ("held", {"what": "drop"}),
)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def chat(server: EmbeddingEndpoint) -> Iterator[ChatEndpoint]:
    with server.chat.scripted() as chat:
        yield chat


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, server: EmbeddingEndpoint) -> Iterator[RunningNode]:
    """A node with a model at the edge."""
    environment = {"KLEDGER_MODEL_URL": server.url, "KLEDGER_MODEL": "big", "KLEDGER_MODEL_PRICES": '{"big": [1, 2]}'}
    with running(tmp_path_factory.mktemp("review") / "data", env=environment) as node:
        yield node


@pytest.fixture
def ledger(node: RunningNode) -> Iterator[LedgerClient]:
    with node.client() as ledger:
        yield ledger


@pytest.fixture
def ana(node: RunningNode) -> Iterator[Visitor]:
    """Somebody of this test alone, at the pages."""
    with visitor(node.url, user=f"ana-{uuid.uuid4().hex[:8]}") as person:
        yield person


@pytest.fixture
def anas(ledger: LedgerClient, ana: Visitor) -> LedgerClient:
    """The same person, as a program."""
    return ledger.acting_as(user=name_of(ana))


def name_of(person: Visitor) -> str:
    """The user that a person looks as."""
    found = re.search(r"You look as user:(\S+?)\.", words(person.get("/ui/review").text))
    assert found is not None
    return found[1]


def conflict(node: RunningNode, owner: str, first: str, second: str) -> str:
    """Two items contradict each other."""
    name = f"conflict-{uuid.uuid4().hex[:8]}"
    fact = ConflictRecorded(first=first, first_version=1, second=second, second_version=1, reason="oil or electric")

    async def append() -> None:
        log = await JetStreamLedger.connect(node.access, role="node", name="test")
        await log.append(NewEvent(fact, name, owner))
        await log.close()

    asyncio.run(append())
    with node.client() as ledger:
        caught_up(ledger)
    return name


def lamps(node: RunningNode, anas: LedgerClient) -> tuple[str, str, str]:
    """Two lamps of hers, and the conflict between them."""
    oil = anas.save("The lamp at the pier", "The lamp burns oil, at night.", ["plan"])["id"]
    electric = anas.save("The lamp at the pier", "The lamp is electric, at night.", ["plan"])["id"]
    return oil, electric, conflict(node, anas.get(oil)["owner"], oil, electric)


def found(client: LedgerClient, query: str) -> list[str]:
    """Those of the client's own: what other tests made public is found as well."""
    (owner,) = client.whoami()["entities"]
    return [item["id"] for item in client.search(query, owner=owner, record=False)["results"]]


def decided(person: Visitor, path: str, **fields: str) -> str:
    """Send a decision, and read the page that follows."""
    answer = person.post(f"/ui/review/{path}", fields)
    assert answer.status_code == 200, words(answer.text)
    return str(answer.text)


def test_a_conflict_stands_side_by_side_and_the_one_that_is_not_kept_is_out_of_recall_until_that_is_undone(
    node: RunningNode, ana: Visitor, anas: LedgerClient
) -> None:
    oil, electric, named = lamps(node, anas)
    page = ana.get("/ui/review").text
    assert "What you decide is recorded as" not in words(page)
    with visitor(node.url) as operator:  # a decision of the operator is recorded as the owner's, and the page says so
        owner = anas.get(oil)["owner"]
        assert f"What you decide is recorded as a decision of {owner}." in words(operator.get("/ui/review").text)
    assert "<mark>burns oil</mark>" in page
    assert "<mark>is electric</mark>" in page
    assert "oil or electric" in page
    page = decided(ana, "conflicts", id=named, winner=electric, what="keep", reason="there is a cable")
    assert "“The lamp at the pier” holds, and “The lamp at the pier” is out of recall." in words(page)
    assert found(anas, "lamp at the pier") == [electric]
    assert "there is a cable" in ana.get("/ui/review?tab=conflicts&of=resolved").text
    undone(ana, page)
    assert set(found(anas, "lamp at the pier")) == {oil, electric}


def test_a_conflict_is_merged_in_words_of_ones_own_and_that_is_undone(
    node: RunningNode, ana: Visitor, anas: LedgerClient
) -> None:
    oil, electric, named = lamps(node, anas)
    page = decided(ana, "conflicts", id=named, winner=oil, what="merge", content="Oil until May,\r\nthen electric.")
    assert anas.get(oil)["content"] == "Oil until May,\nthen electric."
    assert anas.get(electric)["status"] == "retired"
    undone(ana, page)
    assert anas.get(oil)["content"] == "The lamp burns oil, at night."
    assert anas.get(electric)["status"] == "active"


def test_a_merge_that_was_revised_since_is_not_undone_over_the_revision(
    node: RunningNode, ana: Visitor, anas: LedgerClient
) -> None:
    oil, electric, named = lamps(node, anas)
    decided(ana, "conflicts", id=named, winner=oil, what="merge", content="Oil until May, then electric.")
    anas.revise(oil, content="Oil until June, then electric.")
    undo = {"restore": electric, "revert": oil, "to": "1"}
    assert ana.post("/ui/review/conflicts/undo", undo).status_code == 409
    assert anas.get(oil)["content"] == "Oil until June, then electric."


def test_a_side_that_was_restored_and_retired_again_since_is_not_brought_back_by_the_undo(
    node: RunningNode, ana: Visitor, anas: LedgerClient
) -> None:
    oil, electric, named = lamps(node, anas)
    page = decided(ana, "conflicts", id=named, winner=oil, what="merge", content="Oil until May, then electric.")
    anas.restore(electric)
    anas.retire(electric, reason="there is no cable after all")
    assert "It was changed since, and stays as it is." in words(undone(ana, page))
    assert anas.get(electric)["status"] == "retired"
    assert anas.get(oil)["content"] == "Oil until May, then electric."


def test_both_sides_of_a_conflict_may_hold(node: RunningNode, ana: Visitor, anas: LedgerClient) -> None:
    oil, electric, named = lamps(node, anas)
    assert "Both hold." in words(decided(ana, "conflicts", id=named, what="both"))
    assert {anas.get(each)["status"] for each in (oil, electric)} == {"active"}
    assert anas.conflicts()["total"] == 0


def test_more_conflicts_than_a_page_has_stand_on_the_next_one(
    node: RunningNode, ana: Visitor, anas: LedgerClient
) -> None:
    oil, electric, _ = lamps(node, anas)
    for _ in range(conflicts.PER_PAGE):
        conflict(node, anas.get(oil)["owner"], oil, electric)
    page = ana.get("/ui/review").text
    assert page.count("Two items contradict each other") == conflicts.PER_PAGE
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    assert ana.get(following[1].replace("&amp;", "&")).text.count("Two items contradict each other") == 1


def proposed(chat: ChatEndpoint, anas: LedgerClient, to: str) -> tuple[str, str]:
    """An item of hers and what a model would make of it."""
    item = anas.save("Reset the alarm", "Press the red button.", ["tool"], scopes=["public"])["id"]
    chat.says({"content": "Press the <green> button.", "task": None, "reason": "as the feedback asks"}, to=to)
    evolution = anas.evolve(item, to, dry_run=True)["evolution"]
    assert evolution["status"] == "proposed"
    return item, evolution["id"]


def test_a_proposal_of_a_model_is_shown_as_what_it_changes_applied_and_reverted(
    ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    item, evolution = proposed(chat, anas, "basilisk")
    page = ana.get("/ui/review?tab=proposals").text
    assert "<del>red</del>" in page.replace(" </del>", "</del>")
    assert "<ins>&lt;green&gt;" in page
    assert "basilisk" in page
    assert "tokens" in words(page)
    page = decided(ana, "evolutions", id=evolution, what="apply")
    assert anas.get(item)["content"] == "Press the <green> button."
    assert "Revert" in words(ana.get("/ui/review?tab=proposals&of=applied").text)
    undone(ana, page)
    assert anas.get(item)["content"] == "Press the red button."


def test_a_proposal_is_rejected_with_a_reason_and_the_item_stays(
    ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    item, evolution = proposed(chat, anas, "manticore")
    decided(ana, "evolutions", id=evolution, what="reject", reason="red it is")
    assert anas.evolution(evolution)["status"] == "rejected"
    assert anas.evolution(evolution)["reason"] == "red it is"
    assert anas.get(item)["version"] == 1


def test_a_proposal_of_an_item_that_changed_since_offers_no_apply_and_is_refused(
    ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    item, evolution = proposed(chat, anas, "cockatrice")
    anas.revise(item, content="Press no button.")
    page = ana.get("/ui/review?tab=proposals").text
    assert 'value="apply"' not in page
    assert "The item is no longer at version 1" in words(page)
    assert ana.post("/ui/review/evolutions", {"id": evolution, "what": "apply"}).status_code == 409
    assert anas.get(item)["content"] == "Press no button."


def test_items_that_say_the_same_are_shown_in_a_group_merged_and_brought_back(
    ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    word = uuid.uuid4().hex[:8]
    chat.says(lambda _: {"task": "Dry the nets", "content": f"Dry the nets {word} in the wind.", "types": ["plan"]})
    ids = [
        anas.save("Dry the nets", f"Dry the nets of {word} in the wind{end}", ["plan"])["id"]
        for end in (".", ". ", "!")
    ]
    slim = anas.slim(dry_run=True)
    assert slim["status"] == "reported"
    (group,) = slim["groups"]
    page = ana.get("/ui/review?tab=proposals").text
    assert page.count("similar by") == 2
    assert "Dry the nets" in words(page)
    page = decided(ana, "slims", id=slim["id"], what="apply")
    until(lambda: anas.slim_get(slim["id"])["status"] == "applied", "the slim is applied")
    assert {anas.get(each)["status"] for each in ids if each != group["survivor"]} == {"merged"}
    undone(ana, page)
    until(lambda: anas.slim_get(slim["id"])["status"] == "reverted", "the slim is reverted")
    assert {anas.get(each)["status"] for each in ids} == {"active"}


def test_a_merge_says_before_what_has_changed_since_it_was_compared_and_merges_the_rest(
    ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    word = uuid.uuid4().hex[:8]
    chat.says(lambda _: {"task": "Mend", "content": f"Mend what is torn, says {word}.", "types": ["plan"]})
    texts = (f"Mend the sails of {word} by hand", f"Tar the ropes of {word} in May")
    pairs = [[anas.save(text, text + end, ["plan"])["id"] for end in (".", "!")] for text in texts]
    slim = anas.slim(dry_run=True)
    assert len(slim["groups"]) == 2
    anas.revise(pairs[0][1], content="Somebody else mends them now")
    page = words(ana.get("/ui/review?tab=proposals").text)
    assert f"Cannot be merged any more: {pairs[0][1]}" in page
    assert "Merge them" in page
    anas.revise(pairs[1][1], content="Ropes are of nylon now")
    page = words(ana.get("/ui/review?tab=proposals").text)
    assert "Nothing of this can be merged any more" in page
    assert "Merge them" not in page
    refused = ana.post("/ui/review/slims", id=slim["id"], what="apply")
    assert refused.status_code == 409
    assert anas.slim_get(slim["id"])["status"] == "reported"


def shared(ledger: LedgerClient, person: str) -> tuple[str, str]:
    """A project that a person coordinates, and what somebody proposed to it."""
    project = f"harbour-{uuid.uuid4().hex[:8]}"
    ledger.assign_roles(project, f"user:{person}", ["coordinator"])
    scribe = ledger.acting_as(agent="scribe", project=project)
    memory = scribe.remember("Each change has a reviewer.", kind="convention", scopes=[f"project:{project}"])
    assert memory["status"] == "proposed"
    return project, memory["id"]


def test_a_coordinator_approves_what_was_proposed_to_the_project(node: RunningNode, ledger: LedgerClient) -> None:
    project, memory = shared(ledger, "cora")
    with visitor(node.url, user="cora", project=project) as cora:
        assert "proposed by agent:scribe" in words(cora.get("/ui/review?tab=approvals").text)
        title = ledger.get(memory)["task"]
        assert f"“{title}” is shared now." in words(decided(cora, "approvals", id=memory, version="1", what="approve"))
    assert ledger.get(memory)["status"] == "active"


def test_of_a_later_version_it_is_shown_what_it_changes_and_a_rejection_gives_its_reason(
    node: RunningNode, ledger: LedgerClient
) -> None:
    project, memory = shared(ledger, "cleo")
    scribe = ledger.acting_as(agent="scribe", project=project)
    with visitor(node.url, user="cleo", project=project) as cleo:
        decided(cleo, "approvals", id=memory, version="1", what="approve")
        later = scribe.remember(
            "Each change has two reviewers.", kind="convention", scopes=[f"project:{project}"], supersedes=memory
        )["id"]
        page = cleo.get("/ui/review?tab=approvals").text
        assert "A later version of" in words(page)
        assert "<ins>two reviewers</ins>" in page
        told = words(decided(cleo, "approvals", id=later, version="1", what="reject", reason="one is enough"))
        assert "is declined; its author reads the reason." in told
        declined = cleo.get("/ui/review?tab=approvals&of=rejected").text
        assert f'href="/ui/items/{later}"' in declined
        assert 'value="approve"' not in declined
    assert scribe.memory(later)["status"] == "rejected"
    assert scribe.memory(later)["reason"] == "one is enough"
    assert scribe.get(memory)["status"] == "active"


def test_a_member_who_is_no_coordinator_sees_the_proposal_without_a_form_and_decides_nothing(
    node: RunningNode, ledger: LedgerClient
) -> None:
    project, memory = shared(ledger, "cid")
    with visitor(node.url, user="moe", project=project) as moe:
        page = moe.get("/ui/review?tab=approvals").text
        assert "Each change has a reviewer." in page
        assert "A coordinator of the project decides on this." in words(page)
        assert 'value="approve"' not in page
        assert moe.post("/ui/review/approvals", {"id": memory, "version": "1", "what": "approve"}).status_code == 403
    assert ledger.get(memory)["status"] == "proposed"


def held(anas: LedgerClient, what: str) -> dict[str, Any]:
    """Something that was retired and is said again by an import."""
    item = anas.save("Mooring", what, ["tool"])["id"]
    anas.retire(item, reason="the pier is closed")
    anas.save_many([{"task": "Mooring", "content": what, "types": ["tool"]}])
    (one,) = anas.held_statements()["results"]
    return dict(one)


def test_a_held_statement_says_who_retired_it_and_is_saved_after_all(ana: Visitor, anas: LedgerClient) -> None:
    one = held(anas, "The ferry moors at the north pier at six.")
    page = words(ana.get("/ui/review?tab=held").text)
    assert "The ferry moors at the north pier at six." in page
    assert f"{one['retired_by']} retired what said it before: Mooring (the pier is closed)" in page
    decided(ana, "held", id=one["id"], what="release", reason="open again")
    assert anas.get(one["knowledge_id"])["status"] == "active"


def test_a_held_statement_is_dropped(ana: Visitor, anas: LedgerClient) -> None:
    one = held(anas, "The ferry moors at the south pier at six.")
    decided(ana, "held", id=one["id"], what="drop")
    assert anas.held_statements()["total"] == 0
    assert anas.held_statements(status="dropped")["total"] == 1


def test_expired_memories_are_shown_first_then_cleaned_and_brought_back(ana: Visitor, anas: LedgerClient) -> None:
    memory = anas.remember("Ana is calm today.", "short", kind="mood", lifetime=1)["id"]
    until(lambda: anas.memories(status="expired")["total"] == 1, "the memory is over")
    assert "Ana is calm today." in ana.get("/ui/review?tab=expired").text
    page = ana.get("/ui/review?tab=expired&preview=1").text
    assert "1 of them are yours to clean" in words(page)
    assert anas.get(memory)["status"] != "retired"
    page = decided(ana, "expired")
    assert "1 expired memories are out of recall." in words(page)
    assert anas.get(memory)["status"] == "retired"
    assert "1 memory is in recall again." in words(undone(ana, page))


def test_where_nothing_waits_each_tab_says_what_would_stand_there(node: RunningNode) -> None:
    with visitor(node.url, user=f"nobody-{uuid.uuid4().hex[:8]}") as nobody:
        for tab in TABS:
            page = words(nobody.get(f"/ui/review?tab={tab}").text)
            assert "stands here" in page or "stand here" in page


def test_who_has_no_part_in_it_sees_nothing_of_what_waits_and_every_decision_is_refused(
    node: RunningNode, ledger: LedgerClient, ana: Visitor, anas: LedgerClient, chat: ChatEndpoint
) -> None:
    oil, electric, named = lamps(node, anas)
    item, evolution = proposed(chat, anas, "wyvern")
    _, memory = shared(ledger, "cyd")
    statement = held(anas, "The ferry moors nowhere at all, on Sundays.")
    slim = anas.slim(dry_run=True)["id"]
    ids = {"conflicts": named, "evolutions": evolution, "slims": slim, "approvals": memory, "held": statement["id"]}
    with visitor(node.url, user="mallory") as mallory:
        for tab in (*TABS, "refused"):
            page = mallory.get(f"/ui/review?tab={tab}").text
            assert not any(each in page for each in (oil, electric, "wyvern", memory, "moors nowhere"))
        for what, fields in DECISIONS:
            answer = mallory.post(f"/ui/review/{what}", {"id": ids[what], **fields})
            assert answer.status_code in (403, 404), (what, fields, words(answer.text))
        assert mallory.post("/ui/review/refused", {"position": "1", "what": "retry"}).status_code == 403
        assert mallory.post("/ui/review/refused", {"position": "1", "what": "dismiss"}).status_code == 403
        undo = {"restore": oil, "revert": oil, "to": "1"}
        assert mallory.post("/ui/review/conflicts/undo", undo).status_code == 404
        assert "0 memories are in recall again." in words(mallory.post("/ui/review/expired/undo", {"ids": oil}).text)
        assert mallory.post("/ui/review/expired").status_code == 200  # it cleans what is hers: nothing
    # What the node itself still had to write of the others' work may come meanwhile: nothing here is hers.
    assert ledger.sql("SELECT type FROM events WHERE actor LIKE '%mallory%'")["rows"] == []
    assert anas.get(item)["version"] == 1


def test_a_decision_that_is_none_is_refused_and_changes_nothing(ana: Visitor, ledger: LedgerClient) -> None:
    before = ledger.status()["stream"]["head"]
    for what in ("conflicts", "evolutions", "slims", "approvals", "held", "refused"):
        assert (
            ana.post(f"/ui/review/{what}", {"id": "x", "position": "1", "version": "1", "what": "<b>"}).status_code
            == 422
        ), what
    for number in ("the first", "", "-1", "1" * 5_000):
        assert ana.post("/ui/review/refused", {"position": number, "what": "retry"}).status_code == 422
        assert ana.post("/ui/review/conflicts/undo", {"revert": "x", "to": number}).status_code == 422
    assert ledger.status()["stream"]["head"] == before


def test_without_the_token_of_the_form_nothing_is_decided(node: RunningNode, ana: Visitor, anas: LedgerClient) -> None:
    _, _, named = lamps(node, anas)
    ana.csrf = "made up"
    assert ana.post("/ui/review/conflicts", {"id": named, "what": "both"}).status_code == 403
    assert anas.conflicts()["total"] == 1

"""Items that say the same become one, and are brought back: through the doors of a real node (mission K5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import IllegalState, InvalidPayload, NotOwner, UnknownProcess, VersionConflict
from kledger.contract.words import MemoryLayer
from producers.cli.main import app
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.patience import PATIENCE

COPY = "Delete a remote branch: git push -d {{remote}} {{branch}}"
REWORDED = "Please remove a remote branch: git push -d {{remote}} {{branch}}. Thanks!"
FORCED = "Delete a remote branch: git push --force -d {{remote}} {{branch}}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node without models."""
    with running(tmp_path_factory.mktemp("plain") / "data") as running_node:
        yield running_node


@pytest.fixture(scope="module")
def plain(node: RunningNode) -> Iterator[LedgerClient]:
    """Its operator."""
    with node.client() as ledger:
        yield ledger


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def chat(server: EmbeddingEndpoint) -> ChatEndpoint:
    return server.chat


@pytest.fixture(scope="module")
def modelled(tmp_path_factory: pytest.TempPathFactory, server: EmbeddingEndpoint) -> Iterator[LedgerClient]:
    """The operator of a node with a model."""
    environment = {"KLEDGER_MODEL_URL": server.url, "KLEDGER_MODEL": "big", "KLEDGER_MODEL_PRICES": '{"big": [1, 2]}'}
    with running(tmp_path_factory.mktemp("modelled") / "data", env=environment) as node, node.client() as ledger:
        yield ledger


def saved(ledger: LedgerClient, *contents: str, **about: Any) -> list[str]:
    about.setdefault("scopes", ["public"])
    return [str(ledger.save("Git branches", content, ["tool"], **about)["id"]) for content in contents]


def found(ledger: LedgerClient, query: str) -> list[str]:
    return [item["id"] for item in ledger.search(query, top_k=20, min_score=1, record=False)["results"]]


def state(ledger: LedgerClient, ids: list[str]) -> list[dict[str, Any]]:
    """What each item says and is, its versions and times apart."""
    told = []
    for name in ids:
        item = {**ledger.get(name)}
        for moving in ("version", "position", "updated_at"):
            item.pop(moving)
        told.append(item)
    return told


def test_without_a_model_the_best_of_each_group_is_kept_and_all_can_be_brought_back(plain: LedgerClient) -> None:
    ana = plain.acting_as(user="ana")
    first, other = saved(ana, COPY, REWORDED, tags={"tool": "git"})
    (forced,) = saved(ana, FORCED)
    (else_where,) = saved(ana, COPY, scopes=["user:ana"])
    ana.rate(other, "harmful", outcome="it said nothing new", reason="a copy")
    ana.revise(other, resource_ids=["code/git"])
    before = state(ana, [first, other, forced, else_where])

    dry = ana.slim(dry_run=True)
    assert (dry["status"], dry["done"], dry["items_before"], dry["items_after"]) == ("reported", True, 4, 3)
    (group,) = dry["groups"]
    assert group["survivor"] == first
    assert [each["id"] for each in group["merged"]] == [other]
    assert 0.8 <= group["merged"][0]["similarity"] <= 1
    assert state(ana, [first, other, forced, else_where]) == before

    done = ana.slim_apply(dry["id"])
    assert (done["status"], done["items_after"], done["usage"]) == ("applied", 3, None)
    merged, survivor = ana.get(other), ana.get(first)
    assert (merged["status"], merged["merged_into"]) == ("merged", first)
    assert merged["content"] == REWORDED
    assert (survivor["content"], survivor["resource_ids"]) == (COPY, ["code/git"])
    assert other not in found(ana, "remove a remote branch")
    assert first in found(ana, "remove a remote branch please")
    edges = plain.lineage(other)["edges"]
    assert ("merged_into", first) in {(edge["relation"], edge["ref"]) for edge in edges}, edges
    assert other in {edge["ref"] for edge in plain.lineage(first)["edges"] if edge["relation"] == "absorbed"}
    told = {(event["role"], event["event_type"], event["entity_id"]) for event in plain.lineage(first)["events"]}
    assert told >= {("change", "knowledge.absorbed", first), ("mention", "knowledge.merged", other)}

    back = ana.slim_revert(dry["id"])
    assert (back["status"], back["items_after"], back["groups"][0]["skipped"]) == ("reverted", 4, None)
    assert state(ana, [first, other, forced, else_where]) == before
    assert {first, other} <= set(found(ana, "remove a remote branch"))
    assert ana.slim_revert(dry["id"])["status"] == "reverted"  # once more changes nothing
    with pytest.raises(IllegalState):
        ana.slim_apply(dry["id"])
    caught_up(plain)
    assert result_of(plain, "verify")["equal"] is True
    assert plain.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]


def test_memory_that_a_project_shares_is_merged_with_nothing(plain: LedgerClient) -> None:
    plain.appoint_coordinator("ledger", "agent:lead")
    lead = plain.acting_as(agent="lead", project="ledger")
    first, _ = (lead.remember("PostgreSQL instead of MySQL", kind="adr")["id"] for _ in range(2))
    assert plain.get(first)["status"] == "active"
    shared = lead.slim(dry_run=True)
    assert (shared["status"], shared["items_before"], shared["groups"]) == ("reported", 0, [])
    saved(lead, COPY, COPY)
    assert len(lead.slim(dry_run=True)["groups"]) == 1, "what is its own alone is"


def test_only_what_the_caller_owns_within_the_scopes_given_is_merged(plain: LedgerClient) -> None:
    bob, eve = plain.acting_as(user="bob"), plain.acting_as(user="eve", project="x")
    text = "Keep the raw answer beside the parsed one in the {} store"
    bobs = saved(bob, text.format("trace"), text.format("trace"))
    (shared,) = saved(bob, text.format("trace"), acl=[{"entity": "user:carl", "permission": "read"}])
    bobs_private = saved(bob, text.format("event"), text.format("event"), scopes=["user:bob"])
    eves = saved(eve, text.format("trace"), text.format("trace"), scopes=["project:x"])
    done = bob.slim(scopes=["user:bob"])
    assert [group["survivor"] for group in done["groups"]] == [bobs_private[0]]
    assert [bob.get(name)["status"] for name in (*bobs, *bobs_private)] == ["active"] * 3 + ["merged"]
    assert [group["survivor"] for group in bob.slim(dry_run=True)["groups"]] == [bobs[0]]
    assert shared not in str(bob.slim(dry_run=True)["groups"])  # others see it, by its ACL
    with pytest.raises(NotOwner):
        bob.slim(owner="user:eve")
    assert plain.acting_as(user="mallory").slim()["groups"] == []
    with pytest.raises(UnknownProcess):
        eve.slim_get(done["id"])
    assert [each["id"] for each in eve.slims()["results"]] == []
    by_operator = plain.slim(owner="user:eve")
    assert by_operator["owner"] == "user:eve"
    assert [eve.get(name)["status"] for name in eves] == ["active", "merged"]
    with pytest.raises(InvalidPayload):
        bob.slim(threshold=0.1)


def test_who_owns_nothing_is_told_whose_items_a_slim_merges(plain: LedgerClient) -> None:
    for text in (COPY, REWORDED):
        plain.acting_as(agent="tidy").save("Delete a branch", text, ["tool"], scopes=["public"])
    told = plain.acting_as(user="owns-nothing").slim(dry_run=True)
    assert (told["items_before"], told["groups"]) == (0, [])
    assert "user:owns-nothing owns no item" in (told["note"] or "")
    assert "`owner`" in (told["note"] or "")
    meant = plain.slim(owner="agent:tidy", dry_run=True)
    assert (len(meant["groups"]), "owns no item" in (meant["note"] or "")) == (1, False)


def test_a_group_that_changed_meanwhile_is_left_and_named_and_one_that_was_rated_is_not(plain: LedgerClient) -> None:
    cat = plain.acting_as(user="cat")
    steady = saved(
        cat, "Look at the slowest consumer before adding another", "Look at the slowest consumer before adding another"
    )
    moving = saved(cat, "A cache needs an owner and an expiry date", "A cache needs an owner and an expiry date.")
    dry = cat.slim(dry_run=True)
    assert len(dry["groups"]) == 2
    cat.rate(steady[1], "helpful", outcome="it did")
    cat.revise(moving[1], content="A cache needs nothing")
    waiting = cat.slim_get(dry["id"])  # says before what an apply would leave
    assert moving[1] in next(group["skipped"] or "" for group in waiting["groups"] if group["survivor"] == moving[0])
    assert (waiting["status"], waiting["items_after"]) == ("reported", 3)
    done = cat.slim_apply(dry["id"])
    skipped = {group["survivor"]: group["skipped"] for group in done["groups"]}
    assert skipped[steady[0]] is None
    assert moving[1] in (skipped[moving[0]] or "")
    assert (done["status"], done["items_before"], done["items_after"]) == ("applied", 4, 3)
    cat.revise(steady[0], content="Look at the fastest one")
    back = cat.slim_revert(dry["id"])
    assert (back["status"], back["items_after"]) == ("reverted", 4)
    assert "has changed" in str({group["survivor"]: group["skipped"] for group in back["groups"]}[steady[0]])
    assert [cat.get(name)["status"] for name in steady] == ["active", "active"]
    assert cat.get(steady[0])["content"] == "Look at the fastest one"


def test_what_was_merged_comes_back_whatever_became_of_the_survivor_and_what_was_given_away_is_named(
    plain: LedgerClient,
) -> None:
    dan = plain.acting_as(user="dan")
    text = "Freeze the schema of {} before the migration begins"
    groups = [saved(dan, text.format(name), text.format(name)) for name in ("orders", "users", "bills")]
    done = dan.slim()
    assert done["items_after"] == 3
    (kept, back), (gone, home), (stays, theirs) = groups
    dan.retire(kept)
    dan.revise(gone, owner="user:eva")
    dan.revise(theirs, owner="user:eva")
    reverted = dan.slim_revert(done["id"])
    skipped = {group["survivor"]: group["skipped"] for group in reverted["groups"]}
    assert skipped == {
        kept: f"{kept} has changed since it took the others in",
        gone: f"{gone} has changed since it took the others in",
        stays: f"{theirs} has another owner now",
    }
    assert (reverted["merged"], reverted["items_after"]) == (1, 5)
    assert [plain.get(name)["status"] for name in (back, home, stays, theirs)] == ["active"] * 3 + ["merged"]
    caught_up(plain)
    assert plain.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]


def test_two_slims_are_reverted_in_either_order(plain: LedgerClient) -> None:
    gus = plain.acting_as(user="gus")
    text = "Ask the owner of a queue before purging it"
    first = saved(gus, text, text)
    older = gus.slim()
    (better,) = saved(gus, text, score=5)
    later = gus.slim()
    assert [gus.get(name)["status"] for name in (*first, better)] == ["merged", "merged", "active"]
    for each in (older, later):
        gus.slim_revert(each["id"])
    assert [gus.get(name)["status"] for name in (*first, better)] == ["active"] * 3


def test_a_slim_of_which_every_group_changed_is_refused_and_still_waits(plain: LedgerClient) -> None:
    dan = plain.acting_as(user="dan-who-waits")
    pair = saved(dan, "Wind the clock of the tower on Sunday", "Wind the clock of the tower on Sunday.")
    dry = dan.slim(dry_run=True)
    dan.revise(pair[1], content="The clock of the tower winds itself")
    with pytest.raises(VersionConflict) as refused:
        dan.slim_apply(dry["id"])
    assert pair[1] in refused.value.message
    assert dan.slim_get(dry["id"])["status"] == "reported"
    assert dan.slim_reject(dry["id"])["status"] == "rejected"


def test_a_dry_run_can_be_rejected_and_the_request_of_the_source_works_as_written(
    node: RunningNode, plain: LedgerClient
) -> None:
    dan = plain.acting_as(user="dan-who-rejects")
    names = saved(dan, "Write down what was tried", "Write down what was tried!")
    dry = dan.slim(dry_run=True)
    assert dan.slim_reject(dry["id"], reason="both are needed")["status"] == "rejected"
    with pytest.raises(IllegalState):
        dan.slim_apply(dry["id"])
    answer = httpx.post(
        f"{node.url}/api/knowledge/slim",
        json={"model": "google/gemini-2.0-flash-001"},
        headers={"X-Ledger-User": "dan-who-rejects"},
        timeout=PATIENCE,
    )
    assert answer.status_code in (200, 202)
    until(lambda: dan.slim_get(answer.json()["id"])["done"], "the slim is done")
    told = dan.slim_get(answer.json()["id"])
    assert (told["status"], told["model"]) == ("applied", None)
    assert "no model is configured" in (told["note"] or "")
    assert dan.get(names[1])["merged_into"] == names[0]


def test_a_model_writes_what_stands_for_all_and_each_group_is_billed_once(
    modelled: LedgerClient, chat: ChatEndpoint
) -> None:
    ana = modelled.acting_as(user="ana")
    first, other = saved(
        ana, "Retry a failed call three times at most: call retry", "Please retry a failed call three times: call retry"
    )
    third, fourth = saved(ana, "丹顶鹤部署之前检查监控面板", "请在丹顶鹤部署之前检查监控面板")
    same = saved(ana, "The same word for word", "The same word for word")
    chat.says({"task": "Retries", "content": "Retry a failed call three times at most, please."}, to="failed call")
    chat.says("refuse: not this", to="丹顶鹤")
    asked = chat.calls
    before = state(ana, [first, other, third, fourth, *same])

    done = ana.slim("small", idempotency_key="one-slim")
    assert (done["status"], len(done["groups"]), done["items_after"]) == ("applied", 3, 3)
    assert done["usage"] is not None
    assert done["usage"]["calls"] == 2
    assert done["usage"]["model"] == "small"
    assert done["usage"]["prompt_version"].startswith("slim-")
    assert (ana.get(first)["content"], ana.get(first)["task"]) == (
        "Retry a failed call three times at most, please.",
        "Retries",
    )
    assert ana.get(third)["content"] == "丹顶鹤部署之前检查监控面板"  # the model declined: the best is kept
    assert chat.calls == asked + 2
    assert ana.slim("small", idempotency_key="one-slim")["id"] == done["id"]
    assert chat.calls == asked + 2
    assert [change["change"] for change in ana.history(first)["versions"]] == ["saved", "absorbed"]
    assert modelled.sql("SELECT sum(calls) FROM model_usage WHERE kind = 'slim'")["rows"] == [[2]]

    assert ana.slim_revert(done["id"])["status"] == "reverted"
    assert state(ana, [first, other, third, fourth, *same]) == before
    assert {first, other} <= set(found(ana, "retry a failed call"))
    caught_up(modelled)
    assert result_of(modelled, "verify")["equal"] is True
    assert chat.calls == asked + 2  # a replay asks no model


def test_a_model_that_cannot_be_asked_fails_the_slim_before_anything_is_merged(
    modelled: LedgerClient, chat: ChatEndpoint
) -> None:
    bob = modelled.acting_as(user="bob")
    names = saved(bob, "Press the pink button twice", "Please press the pink button twice")
    chat.faults += [401]
    done = bob.slim()
    assert (done["status"], done["code"], done["done"]) == ("failed", "model_failed", True)
    assert [bob.get(name)["status"] for name in names] == ["active", "active"]


def test_a_person_who_is_forgotten_leaves_nothing_in_what_was_merged(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as ledger:
        eve = ledger.acting_as(user="eve")
        saved(
            eve,
            "The zebra code is on the third shelf",
            "Please: the zebra code is on the third shelf",
            tags={"animal": "zebra"},
        )
        assert eve.slim()["status"] == "applied"
        result_of(ledger, "forget", subject="user:eve")
        kept = ledger.sql("SELECT count(*) FROM events WHERE data::VARCHAR LIKE '%zebra%'")["rows"]
        assert kept == [[0]]
        assert ledger.sql("SELECT count(*) FROM knowledge_versions WHERE content LIKE '%zebra%'")["rows"] == [[0]]


def test_what_was_somebodys_is_merged_into_nothing_that_outlasts_them(plain: LedgerClient) -> None:
    """Tags of what is merged come to the survivor, which is not forgotten with those whom it never belonged to."""
    scribe, vera = plain.acting_as(agent="zebrist"), plain.acting_as(user="vera")
    words = "The zebra code is on the third shelf"
    best = saved(scribe, words, score=5)[0]
    (given, kept) = saved(vera, words, f"Please: {words}", tags={"animal": "okapi"})
    for item in (given, kept):
        vera.revise(item, owner="agent:zebrist", scopes=["public"])
    (written,) = saved(scribe, f"{words}.", score=4)
    scribe.share(written, [{"entity": "user:vera", "permission": "read_write"}])
    vera.revise(written, tags={"animal": "okapi, too"})
    scribe.share(written, [])
    done = scribe.slim()
    merged = {frozenset({group["survivor"], *(each["id"] for each in group["merged"])}) for group in done["groups"]}
    assert merged == {frozenset({given, kept, written})}, "what belongs to the same persons is merged"
    assert scribe.get(best)["tags"] == {}
    caught_up(plain)
    told = result_of(plain, "forget", subject="user:vera")
    assert told["receipt"]["left_in_clear"] == []
    for table in ("events", "knowledge_versions", "slims"):
        assert plain.sql(f"SELECT count(*) FROM {table} t WHERE t::VARCHAR LIKE '%okapi%'")["rows"] == [[0]]


def test_the_command_slims_says_where_a_merged_item_went_and_brings_it_back(
    node: RunningNode, plain: LedgerClient
) -> None:
    fay = plain.acting_as(user="fay")
    first, other = saved(fay, "Water the plants on Monday", "Please water the plants on Monday")

    def kledger(*words: str) -> str:
        ran = CliRunner().invoke(app, [*words, "--url", node.url, "--user", "fay"], env={"COLUMNS": "200"})
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    dry = json.loads(kledger("slim", "--dry-run", "--json"))
    assert dry["groups"][0]["merged"][0]["id"] == other
    assert f"merged into {first}" not in kledger("show", other)
    assert "2 before, 1 after" in kledger("slim", "--apply", dry["id"])
    assert f"merged into {first}" in kledger("show", other)
    assert other in kledger("list", "--status", "merged")
    assert dry["id"] in kledger("slims")
    assert "2 before, 2 after" in kledger("slim", "--revert", dry["id"])
    assert "merged" not in kledger("show", other)


def test_memories_are_merged_with_those_that_are_remembered_alike_and_with_nothing_else(plain: LedgerClient) -> None:
    mei = plain.acting_as(user="mei-who-remembers")
    text = "The gateway restarts with `gw restart` and waits ten seconds."
    mei.save("The gateway restarts", text, ["note"], id="plain-fact")
    stated: list[tuple[MemoryLayer, dict[str, Any]]] = [
        ("short", {"lifetime": 60}),
        ("short", {"lifetime": 60}),
        ("short", {"lifetime": 90}),
        ("semantic", {}),
        ("semantic", {"kind": "preference"}),
        ("episodic", {}),
        ("episodic", {}),
        ("episodic", {"happened_at": "2026-01-05T08:00:00Z"}),
        ("episodic", {"happened_at": "2026-01-05T08:00:00Z"}),
        ("procedural", {}),
    ]
    for number, (layer, about) in enumerate(stated):
        mei.remember(text, layer, id=f"{layer}-{number}", types=["note"], **about)
    report = mei.slim(dry_run=True)
    groups = {each["survivor"]: [one["id"] for one in each["merged"]] for each in report["groups"]}
    assert groups == {"short-0": ["short-1"], "semantic-3": ["semantic-4"], "episodic-7": ["episodic-8"]}
    mei.slim_apply(report["id"])
    assert len(mei.memories(limit=20)["results"]) == 7


def test_what_two_documents_say_stays_with_each_of_them(plain: LedgerClient) -> None:
    dan = plain.acting_as(user="dan-who-reads")
    shared = "## Backups\n\nA backup of the harbor is taken each night at two."
    for name in ("alpha", "beta"):
        dan.documents.ingest(f"{name}.md", text=f"# Ops\n\n{shared}\n\n## {name}\n\nThe {name} service is new.")
    dan.save("Backups", "A backup of the harbor is taken each night at two.", ["document"], id="own-words")
    assert dan.slim()["groups"] == []
    dan.documents.delete("alpha.md")
    assert [each["status"] for each in dan.documents.get("beta.md")["chunks"]] == ["active", "active"]
    assert dan.get("own-words")["status"] == "active"


def test_a_group_whose_items_together_have_more_than_an_item_may_holds_no_other_group_up(plain: LedgerClient) -> None:
    quill = plain.acting_as(user="quill")
    tools = saved(quill, COPY, REWORDED, tags={"tool": "git"})
    many = [
        quill.save("Sail", said, ["tool"], id=said[:1], resource_ids=[f"{said[0]}-{n}" for n in range(600)])["id"]
        for said in ("A reef is taken in before the wind is there", "a reef is taken in before the wind is there.")
    ]
    long = [
        quill.save("Oar", said, ["tool"], tags={f"{said[0]}{n}": "x" * 1_000 for n in range(400)})["id"]
        for said in ("Oars are shipped before the jetty is met", "oars are shipped before the jetty is met.")
    ]
    done = quill.slim()
    assert (done["status"], done["done"]) == ("applied", True), done
    assert {each["survivor"]: each["skipped"] for each in done["groups"] if each["skipped"]} == {
        many[0]: "its items refer to more than 1,000 resources together"
    }
    assert [quill.get(name)["status"] for name in many] == ["active", "active"]
    kept = quill.get(long[0])["tags"]
    assert len(kept) == 400, "the survivor keeps its own where all of them fit into no event"
    assert [quill.get(name)["status"] for name in (tools[1], long[1])] == ["merged", "merged"]

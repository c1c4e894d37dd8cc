"""An item is rewritten by a model: asked for, proposed, applied, and undone, through the doors of a real node."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import IllegalState, NotOwner, UnknownProcess, VersionConflict
from tests.journeys.running_node import RunningNode, caught_up, until
from tests.openai_chat import ChatEndpoint


def rewritten(content: str, task: str | None = None) -> dict[str, Any]:
    return {"content": content, "task": task, "reason": "as the feedback asks"}


def saved(ledger: LedgerClient, content: str, **about: Any) -> str:
    about.setdefault("scopes", ["public"])
    return str(ledger.save(about.pop("task", "Reset the alarm"), content, ["tool"], **about)["id"])


def settled(ledger: LedgerClient, evolution: str, status: str) -> dict[str, Any]:
    until(lambda: ledger.evolution(evolution)["status"] == status, f"{evolution} is {status}")
    return dict(ledger.evolution(evolution))


def test_feedback_has_an_item_rewritten_and_says_what_that_cost(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    ana = ledger.acting_as(user="ana")
    item = saved(ana, "Press the red button.")
    ledger.acting_as(user="bob").rate(item, "harmful", outcome="the siren went on", reason="red is the test button")
    chat.says(rewritten("按绿色按钮。", "警报复位"), to="改成中文 unicorn")
    done = ana.within(trace_id="trace-evolve").evolve(item, "改成中文 unicorn")
    evolution = done["evolution"]
    assert (done["done"], evolution["status"], evolution["base_version"]) == (True, "applied", 1)
    assert evolution["usage"] is not None
    assert evolution["usage"]["prompt_version"].startswith("evolve-")
    assert (evolution["usage"]["cost_usd"] or 0) > 0

    now = ana.get(item)
    assert (now["content"], now["task"], now["version"]) == ("按绿色按钮。", "警报复位", 2)
    assert [(v["change"], v["content"]) for v in ana.history(item)["versions"]] == [
        ("saved", "Press the red button."),
        ("evolved", "按绿色按钮。"),
    ]
    (asked,) = [call for call in chat.asked if "unicorn" in call.text]
    assert asked.model == "big"
    for said in ("Press the red button.", "the siren went on", "red is the test button"):
        assert said in asked.text
    of_trace = {edge["event_type"] for edge in ledger.lineage("trace:trace-evolve")["edges"]}
    assert of_trace >= {"evolution.requested", "evolution.proposed", "knowledge.evolved"}
    assert ana.search("绿色按钮 警报", record=False)["results"][0]["id"] == item

    events = ana.lineage(item)["events"]
    roles = [(event["role"], event["event_type"]) for event in events]
    assert roles == [
        ("origin", "knowledge.saved"),
        ("verdict", "knowledge.rated"),
        ("cause", "evolution.requested"),
        ("effect", "evolution.started"),
        ("effect", "evolution.proposed"),
        ("change", "knowledge.evolved"),
    ]


def test_a_dry_run_stays_a_proposal_until_it_is_applied_or_rejected(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    ana = ledger.acting_as(user="ana")
    item = saved(ana, "Turn it left.")
    chat.says(rewritten("Turn it right."), to="griffin")
    proposed = ana.evolve(item, "griffin", dry_run=True)["evolution"]
    assert (proposed["status"], proposed["content"]) == ("proposed", "Turn it right.")
    assert ana.get(item)["content"] == "Turn it left."
    assert ana.reject_evolution(proposed["id"], reason="no")["status"] == "rejected"
    with pytest.raises(IllegalState):
        ana.apply_evolution(proposed["id"])

    again = ana.evolve(item, "griffin", dry_run=True)["evolution"]
    with pytest.raises(UnknownProcess):
        ledger.acting_as(user="bob").apply_evolution(again["id"])
    assert ana.apply_evolution(again["id"])["status"] == "applied"
    assert (ana.get(item)["content"], ana.get(item)["version"]) == ("Turn it right.", 2)
    assert settled(ana, again["id"], "applied")["usage"] == again["usage"]
    with pytest.raises(IllegalState):
        ana.apply_evolution(again["id"])
    listed = ana.evolutions(item_id=item)["results"]
    assert [(each["id"], each["status"]) for each in listed] == [(again["id"], "applied"), (proposed["id"], "rejected")]
    assert ledger.acting_as(user="bob").evolutions(item_id=item)["results"] == []


def test_a_revert_restores_the_earlier_version_exactly_in_views_and_vectors(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    ana = ledger.acting_as(user="ana")
    source = {"name": "the manual", "category": "book", "urls": ["https://example.com/m"], "timestamp": "2026-01-02"}
    item = saved(
        ana,
        "Tune the harpsichord with a basilisk fork.",
        task="Tune the harpsichord",
        tags={"domain": "music", "n": 3},
        source=source,
        resource_ids=["fork/basilisk"],
        score=4,
    )

    def as_stated() -> tuple[Any, ...]:
        version = ledger.history(item)["versions"][-1]
        fields = (
            "types",
            "task",
            "content",
            "tags",
            "scopes",
            "owner",
            "visibility",
            "resource_ids",
            "source",
            "score",
        )
        return tuple(dict(version)[name] for name in fields)

    def as_searched() -> list[tuple[str, float]]:
        caught_up(ledger)
        return [
            (hit["id"], hit["relevance"])
            for path in ("vector", "keyword")
            for words in ("tune the harpsichord with a basilisk fork", "harpsichord", "wolf interval")
            for hit in ledger.search(words, path=path, record=False, top_k=50)["results"]
            if hit["id"] == item
        ]

    def assert_found_as_before() -> None:
        # Its freshness goes by the clock: on a slow machine the last digit is another one by now.
        for (one, relevance), (was, relevance_then) in zip(as_searched(), found, strict=True):
            assert one == was
            assert relevance == pytest.approx(relevance_then, abs=1e-5)

    before, found = as_stated(), as_searched()
    assert found
    chat.says(rewritten("Have the wolf interval tuned by somebody who can.", "Call the tuner"), to="basilisk")
    evolution = ana.evolve(item, "never do it yourself")["evolution"]["id"]
    assert as_stated() != before
    assert as_searched() != found

    assert ana.revert_evolution(evolution)["status"] == "reverted"
    assert as_stated() == before
    assert_found_as_before()
    assert settled(ana, evolution, "reverted")["item_id"] == item
    with pytest.raises(IllegalState):
        ana.revert_evolution(evolution)

    ana.score(item, 2)
    assert ana.revert(item, 2)["version"] == 5
    assert ana.get(item)["content"].startswith("Have the wolf interval")
    assert ana.revert(item, 1, expected_version=5)["version"] == 6
    assert as_stated() == before
    assert_found_as_before()
    with pytest.raises(VersionConflict):
        ana.revert(item, 2, expected_version=5)
    with pytest.raises(NotOwner):
        ledger.acting_as(user="bob").revert(item, 1)


def test_an_item_that_changed_while_the_model_worked_keeps_its_own_content(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    ana = ledger.acting_as(user="ana")
    item = saved(ana, "At noon.")
    chat.says(rewritten("At midnight."), to="phoenix")
    chat.held.clear()
    try:
        waiting = ana.evolve(item, "phoenix", wait=0)
        assert (waiting["done"], waiting["evolution"]["status"]) in [(False, "requested"), (False, "started")]
        settled(ana, waiting["evolution"]["id"], "started")
        ledger.acting_as(user="bob").rate(item, "helpful")  # which changes nothing that the model was given
        ana.revise(item, content="At dusk.")
    finally:
        chat.held.set()
    proposed = settled(ana, waiting["evolution"]["id"], "proposed")
    assert proposed["content"] == "At midnight."
    assert ana.get(item)["content"] == "At dusk."
    with pytest.raises(VersionConflict):
        ana.apply_evolution(proposed["id"])


def test_a_model_that_fails_is_told_as_such_and_the_item_stays(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    ana = ledger.acting_as(user="ana")
    item = saved(ana, "Gently.")
    chat.says("refuse: no", to="chimera")
    refused = ana.evolve(item, "chimera")["evolution"]
    assert (refused["status"], refused["code"]) == ("failed", "model_refused")
    assert refused["usage"] is not None
    nothing = ana.evolve(item, "nothing is scripted for this")["evolution"]
    assert (nothing["status"], nothing["code"], nothing["usage"]) == ("failed", "model_failed", None)
    assert ana.get(item)["version"] == 1
    with pytest.raises(NotOwner):
        ledger.acting_as(user="bob").evolve(item, "chimera")


def test_a_request_that_is_sent_again_is_one_evolution_paid_for_once(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    ana = ledger.acting_as(user="ana")
    item = saved(ana, "Once.")
    chat.says(rewritten("Only once."), to="kraken")
    key, billed = str(uuid.uuid4()), chat.billed
    first = ana.evolve(item, "kraken", idempotency_key=key)
    again = ana.evolve(item, "kraken", idempotency_key=key)
    assert again["evolution"] == first["evolution"]
    assert chat.billed == billed + 1
    assert ana.get(item)["version"] == 2

"""A history with every type of event is folded anew from zero: the same to the last row, and nobody is paid."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kledger import LedgerClient
from ledger.event import NewEvent, new_event_id, utc_now
from ledger.events import FACTS
from ledger.events.examples import OTHER
from ledger.events.process import ProcessFact
from ledger.events.subject import SubjectForgotten
from ledger.store.jetstream import JetStreamLedger
from ledger.vocabulary.examples import EXAMPLES
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.processes.sooner import sooner
from tests.reactors.conftest import models

# An item is rewritten while it is what the model was given.
EARLY = ("knowledge.saved", "knowledge.revised", "knowledge.evolved")


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running_server:
        chat = running_server.chat
        chat.says({"content": "Rewritten.", "task": None, "reason": "r"}, to="<feedback>")
        found = {"type": "tool", "task": "t", "category": "c", "domain": "d", "message_ids": []}
        chat.says({"items": [{**found, "content": "Found."}]}, to="<message id=")
        chat.says({"verdicts": []}, to="<new item=")
        yield running_server


def every_event() -> list[NewEvent]:
    """The example of each type, processes led up to each of their stages, in an order in which they can happen."""
    plain = [name for name, fact in FACTS.items() if not issubclass(fact, ProcessFact | SubjectForgotten)]
    names = [*EARLY, *(name for name in plain if name not in EARLY)]
    events = [EXAMPLES[name] for name in names]
    events.insert(1, replace(EXAMPLES["knowledge.saved"], entity_id=OTHER))
    for name, fact in FACTS.items():
        if issubclass(fact, ProcessFact):
            entity_id = f"{fact.entity()}-for-{fact.verb()}"
            events += [replace(EXAMPLES[step], entity_id=entity_id) for step in _leading_to(name)]
    return [replace(event, id=new_event_id(), time=utc_now()) for event in events]


def _leading_to(name: str) -> list[str]:
    """The stages of a process up to this one."""
    fact = FACTS[name]
    assert issubclass(fact, ProcessFact)
    if not fact.follows:
        return [name]
    return [*_leading_to(f"{fact.entity()}.{fact.follows[0]}"), name]


def shared_by_a_project(op: LedgerClient) -> None:
    """A memory that is approved, a later version of it, and one that is rejected."""
    op.appoint_coordinator("kitchen", "agent:lead")
    dev, lead = (op.acting_as(agent=name, project="kitchen") for name in ("dev", "lead"))
    first = dev.remember("eggs are boiled", kind="convention")["id"]
    lead.approve(first)
    assert (
        lead.approve(dev.remember("eggs are fried", kind="convention", supersedes=first)["id"])["superseded"] == first
    )
    lead.reject(dev.remember("eggs are raw", kind="convention")["id"])


def append(node: RunningNode, events: list[NewEvent]) -> None:
    """What a foreign client appends."""

    async def append() -> None:
        ledger = await JetStreamLedger.connect(node.access, role="writer")
        try:
            await ledger.append_many(events)
        finally:
            await ledger.close()

    asyncio.run(append())


def test_rebuilding_a_history_with_every_event_asks_no_model_and_pays_for_no_embedding(
    tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    data = tmp_path / "data"
    env = models(endpoint) | sooner(
        {"consumers.reactors.subscription:PAUSE": 0.5, "consumers.reactors.lives:TICK": 0.1}
    )
    with running(data, env=env) as node, node.client() as op:
        ana = op.acting_as(user="ana")
        item = ana.save("Boil an egg", "Five minutes.", ["plan"])["id"]
        assert ana.evolve(item, "soft ones")["evolution"]["status"] == "applied"
        assert ana.extract("eggs")["status"] == "completed"
        op.acting_as(user="eve").save("To be forgotten", "soon", ["tool"])
        caught_up(op)
        result_of(op, "forget", subject="user:eve")
        ana.remember("in a hurry", "short", kind="mood", lifetime=1)
        ana.confirm(ana.remember("likes eggs", "short", kind="preference")["id"])
        shared_by_a_project(op)
        append(node, every_event())
        caught_up(op)  # else nothing is under way because nothing of it is in the view yet
        under_way = "SELECT 1 FROM processes WHERE kind <> 'slim' AND stage IN ('requested', 'started')"
        until(lambda: not op.sql(under_way)["rows"], "the reactors have nothing left to do")
        over = "SELECT 1 FROM events WHERE type = 'knowledge.expired'"
        until(lambda: op.sql(over)["rows"] != [], "the node states that a memory is over")
        caught_up(op)
        told = {row[0] for row in op.sql("SELECT DISTINCT type FROM events")["rows"]}
        assert set(FACTS) <= told, f"not in the view: {set(FACTS) - told}"
        asked, embedded = endpoint.chat.calls, endpoint.calls
        assert asked > 2
        assert embedded > 2
        rebuilt = result_of(op, "rebuild")
        assert rebuilt["equal"], rebuilt["differences"]
        assert (endpoint.chat.calls, endpoint.calls) == (asked, embedded)
    shutil.rmtree(data / "views")
    shutil.rmtree(data / "vectors")
    with running(data, env=models(endpoint)) as node, node.client() as op:
        caught_up(op)
        again = result_of(op, "verify")
        assert again["equal"]
        assert again["rebuilt"]["digest"] == rebuilt["rebuilt"]["digest"]
        assert op.acting_as(user="ana").search("boil an egg", record=False)["results"][0]["id"] == item
    paid_for_the_question = 1
    assert (endpoint.chat.calls, endpoint.calls) == (asked, embedded + paid_for_the_question)

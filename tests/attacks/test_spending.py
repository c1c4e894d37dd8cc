"""Attacks on what models may cost, by a publisher: its statements spend nothing, and hide nothing that was spent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nats.aio.client import Client

from ledger.event import Fact, NewEvent
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.model import ModelUsed
from ledger.events.usage import MOST_COST, Usage
from ledger.wire.envelope import encode
from ledger.wire.subjects import event_subject
from tests.attacks.yard import SCRIBE, Yard, opened
from tests.journeys.running_node import caught_up, until
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint

RUINOUS = Usage(model="big", prompt_version="1", cost_usd=MOST_COST)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running_server:
        yield running_server


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, endpoint: EmbeddingEndpoint) -> Iterator[Yard]:
    models = {
        "KLEDGER_MODEL_URL": endpoint.url,
        "KLEDGER_MODEL": "big",
        "KLEDGER_MODEL_KEY": "sk-nobody-may-read-this",
        "KLEDGER_MODEL_PRICES": '{"big": [1.0, 2.0]}',
        "KLEDGER_MODEL_BUDGET_USD": "1",
    }
    with opened(tmp_path_factory.mktemp("spending"), models) as yard:
        yield yard


@pytest.fixture
def chat(endpoint: EmbeddingEndpoint) -> Iterator[ChatEndpoint]:
    with endpoint.chat.scripted() as chat:
        yield chat


async def state(client: Client, fact: Fact, entity_id: str) -> int:
    """The position of an event that the scribe states by hand."""
    event = NewEvent(fact, entity_id, SCRIBE)
    subject = event_subject("default", fact.entity(), entity_id, fact.verb(), SCRIBE)
    return int((await client.jetstream().publish(subject, encode(event))).seq)


async def test_a_publisher_that_claims_a_billion_dollars_leaves_everybody_their_budget(
    yard: Yard, chat: ChatEndpoint
) -> None:
    with yard.node.client() as operator:
        scribe = await yard.connect(SCRIBE)
        mine = operator.acting_as(agent="scribe").save("mine", "mine", ["tool"])["id"]
        await state(scribe, EvolutionRequested(item_id=mine, base_version=7, feedback="f"), "evolution-claim")
        await state(scribe, EvolutionProposed(item_id=mine, content="c", usage=RUINOUS), "evolution-claim")
        used = ModelUsed(kind="evolution", process="evolution-claim", asked_by=SCRIBE, usage=RUINOUS)
        last = await state(scribe, used, "evolution-claim:evolve")
        await scribe.close()
        caught_up(operator.seeing(last))
        assert operator.sql(f"SELECT code FROM refused_events WHERE position = {last}")["rows"] == [["not_owner"]]
        chat.says({"content": "Left.", "task": None, "reason": "r"}, to="wyvern")
        bob = operator.acting_as(user="bob")
        item = bob.save("which way", "Right.", ["tool"], scopes=["public"])["id"]
        assert bob.evolve(item, "wyvern")["evolution"]["status"] == "applied"
        usage = operator.sql("SELECT actor, cost_usd < 0.01 FROM model_usage WHERE stated_by = 'node'")["rows"]
        assert usage == [["user:bob", True]]


async def test_what_a_node_paid_for_counts_though_the_asker_states_another_result_first(
    yard: Yard, chat: ChatEndpoint
) -> None:
    with yard.node.client() as operator:
        scribe = await yard.connect(SCRIBE)
        item = operator.acting_as(agent="scribe").save("mine", "Up.", ["tool"], scopes=["public"])["id"]
        chat.says({"content": "Down.", "task": None, "reason": "r"}, to="basilisk")
        chat.held.clear()
        try:
            await state(scribe, EvolutionRequested(item_id=item, base_version=1, feedback="basilisk"), "evolution-race")
            until(lambda: [call for call in chat.asked if "basilisk" in call.text], "the model is asked")
            free = Usage(model="big", prompt_version="1", cost_usd=0.0)
            await state(scribe, EvolutionProposed(item_id=item, content="mine", usage=free), "evolution-race")
        finally:
            chat.held.set()
        await scribe.close()
        paid = "SELECT cost_usd > 0 FROM model_usage WHERE id = 'evolution-race' AND stated_by = 'node'"
        until(lambda: operator.sql(paid)["rows"] == [[True]], "what was paid for is in the log")

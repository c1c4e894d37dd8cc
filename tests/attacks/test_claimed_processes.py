"""Attacks by a publisher that knows the id of somebody else's next process or item, and begins one of that id first.

The ids follow from an Idempotency-Key, which may be guessed. Whatever was claimed, the honest request is answered as
if nothing had been, and so is its retry.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from nats.aio.client import Client

from ledger.event import Fact, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.slim import SlimRequested
from ledger.wire.envelope import encode
from ledger.wire.subjects import event_subject
from producers.operations.knowledge.saving import fresh_id
from producers.operations.models.evolutions import evolution_id
from producers.operations.publish import NAMESPACE, event_id
from tests.attacks.yard import SCRIBE, Yard, opened
from tests.journeys.running_node import caught_up
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.reactors.conftest import models
from tests.reactors.test_extract import finding, finds, judges

EVOLUTION = EvolutionRequested(item_id="theirs", base_version=1, feedback="f", apply=False)
EXTRACTION = ExtractionRequested(kind="statement", messages=[{"id": "m"}], owner=SCRIBE, scopes=[SCRIBE])
SLIM = SlimRequested(owner=SCRIBE, threshold=0.9)
ITEM = KnowledgeSaved(types=["tool"], task="t", content="claimed", scopes=[SCRIBE], owner=SCRIBE)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running_server:
        yield running_server


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, endpoint: EmbeddingEndpoint) -> Iterator[Yard]:
    with opened(tmp_path_factory.mktemp("processes"), models(endpoint)) as yard:
        yield yard


def guessed(method: str, path: str, user: str, key: str) -> uuid.UUID:
    """What every id of a request follows from, as anybody can read it in producers/http/identity.py:retry_of."""
    return uuid.uuid5(NAMESPACE, "\n".join([method, path, f"user:{user}", key]))


def named(kind: str, retry: uuid.UUID) -> str:
    return f"{kind}-{uuid.uuid5(NAMESPACE, event_id(retry)).hex[:16]}"


async def claim(scribe: Client, fact: Fact, entity_id: str) -> None:
    subject = event_subject("default", fact.entity(), entity_id, fact.verb(), SCRIBE)
    await scribe.jetstream().publish(subject, encode(NewEvent(fact, entity_id, SCRIBE)))


def sent(yard: Yard, method: str, path: str, user: str, key: str, body: Any) -> httpx.Response:
    headers = {"X-Ledger-User": user, "Idempotency-Key": key}
    return httpx.request(method, yard.node.url + path, json=body, headers=headers, timeout=60)


def ask(yard: Yard, *request: Any) -> dict[str, Any]:
    answer = sent(yard, *request)
    assert answer.is_success, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def asked_twice(yard: Yard, *request: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    first = await asyncio.to_thread(ask, yard, *request)
    with yard.node.client() as ledger:
        caught_up(ledger)
    return first, await asyncio.to_thread(ask, yard, *request)


def actors(yard: Yard, entity_id: str) -> list[str]:
    """Who is behind the events that count of what was answered."""
    with yard.node.client() as ledger:
        caught_up(ledger)
        rows = ledger.sql(f"SELECT DISTINCT actor FROM events WHERE entity_id = '{entity_id}'")["rows"]
    return [actor for (actor,) in rows]


async def test_a_slim_whose_id_was_claimed_is_done_and_answered(yard: Yard) -> None:
    scribe = await yard.connect(SCRIBE)
    claimed = named("slim", guessed("POST", "/api/knowledge/slim", "ada", "slim-1"))
    await claim(scribe, SLIM, claimed)
    first, again = await asked_twice(yard, "POST", "/api/knowledge/slim", "ada", "slim-1", {})
    assert (first["status"], first["owner"]) == ("applied", "user:ada")
    assert again["id"] == first["id"] != claimed
    assert actors(yard, first["id"]) == ["user:ada"]
    await scribe.close()


async def test_an_extraction_whose_id_was_claimed_is_done_and_answered(yard: Yard, endpoint: EmbeddingEndpoint) -> None:
    scribe = await yard.connect(SCRIBE)
    claimed = named("extraction", guessed("POST", "/api/knowledge/extract", "ada", "extract-1"))
    await claim(scribe, EXTRACTION, claimed)
    with endpoint.chat.scripted() as chat:
        finds(chat, "cockatrice", finding("The cockatrice sleeps at noon."))
        judges(chat, "cockatrice")
        body = {"text": "The cockatrice sleeps at noon."}
        first, again = await asked_twice(yard, "POST", "/api/knowledge/extract", "ada", "extract-1", body)
    assert (first["status"], first["owner"]) == ("completed", "user:ada")
    assert [each["action"] for each in first["items"]] == ["saved"]
    assert again["id"] == first["id"] != claimed
    other = await asyncio.to_thread(sent, yard, "POST", "/api/knowledge/extract", "ada", "extract-1", {"text": "else"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_mismatch")
    await scribe.close()


async def test_an_evolution_whose_id_was_claimed_is_done_and_answered(yard: Yard, endpoint: EmbeddingEndpoint) -> None:
    scribe = await yard.connect(SCRIBE)
    with yard.node.client() as ledger:
        ledger.acting_as(user="ada").save("which way", "Left.", ["tool"], id="adas-way")
    retry = guessed("PUT", "/api/knowledge/adas-way", "ada", "evolve-1")
    claimed = evolution_id(event_id(retry, "evolution"))
    await claim(scribe, EVOLUTION, claimed)
    with endpoint.chat.scripted() as chat:
        chat.says({"content": "Right.", "task": None, "reason": "r"}, to="salamander")
        body = {"evolve_feedback": "salamander"}
        first, again = await asked_twice(yard, "PUT", "/api/knowledge/adas-way", "ada", "evolve-1", body)
    assert (first["evolution"]["status"], first["evolution"]["owner"]) == ("applied", "user:ada")
    assert again["evolution"]["id"] == first["evolution"]["id"] != claimed
    await scribe.close()


async def test_an_item_all_of_whose_ids_were_claimed_is_kept_under_another(yard: Yard) -> None:
    scribe = await yard.connect(SCRIBE)
    retry = guessed("POST", "/api/knowledge", "ada", "save-1")
    for attempt in range(20):
        await claim(scribe, ITEM, fresh_id(uuid.uuid5(retry, str(attempt))))
    body = {"task": "mine", "content": "adas own words", "types": ["tool"]}
    first, again = await asked_twice(yard, "POST", "/api/knowledge", "ada", "save-1", body)
    assert (again["id"], again["duplicate"]) == (first["id"], True)
    assert actors(yard, first["id"]) == ["user:ada"]
    await scribe.close()

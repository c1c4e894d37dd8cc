"""Attacks by a publisher upon a forgetting: what it forged does not begin to count, and its events forget nobody."""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from nats.aio.client import Client

from kledger import LedgerClient
from tests.attacks.yard import BOB, SCRIBE, Yard, opened
from tests.journeys.running_node import caught_up, result_of
from tests.journeys.test_publishing_by_hand import data, envelope, text

ACTORS = {SCRIBE: "agent.scribe", BOB: "user.bob"}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with opened(tmp_path_factory.mktemp("forgetting")) as yard:
        yield yard


async def publish(client: Client, actor: str, entity: str, verb: str, entity_id: str, said: dict[str, Any]) -> int:
    """Publish what `said` says as the actor; its position."""
    kind = f"{entity}.{verb}"
    document = envelope(entity_id, actor=actor, type=kind, subject=f"{entity}/{entity_id}", data=said)
    document["dataschema"] = f"urn:kledger:{kind}:{2 if kind == 'knowledge.saved' else 1}"
    token = entity_id.replace(":", "=3A")
    kept = await client.jetstream().publish(f"ledger.default.{entity}.{token}.{verb}.{ACTORS[actor]}", text(document))
    return int(kept.seq)


async def publish_forged(client: Client, item: str, person: str) -> int:
    """A save of the scribe's that passes for one with words of the person; its position."""
    seal = f"sealed:v1:{person}:{base64.b64encode(os.urandom(60)).decode()}"
    said = data("forged", content=seal, owner=SCRIBE, scopes=["public"])
    return await publish(client, SCRIBE, "knowledge", "saved", item, said)


def told_of(ledger: LedgerClient) -> tuple[Any, Any]:
    """What is refused, and everything that is not the words of anybody."""
    caught_up(ledger)
    items = "SELECT id, version, owner, content FROM knowledge WHERE NOT starts_with(owner, 'user:ada') ORDER BY id"
    refused = ledger.sql("SELECT position, code, reason FROM refused_events ORDER BY position")["rows"]
    return refused, ledger.sql(items)["rows"]


async def test_what_was_refused_for_a_forged_seal_takes_no_item_from_its_owner_by_a_forgetting(yard: Yard) -> None:
    scribe = await yard.connect(SCRIBE)
    ada, item = f"user:ada-{uuid.uuid4().hex}", f"hers-{uuid.uuid4().hex}"
    with yard.node.client() as op:
        early = await publish_forged(scribe, f"early-{item}", ada)
        hers = op.acting_as(user=ada.removeprefix("user:")).save("where", "under the stone", ["tool"])["id"]
        position = await publish_forged(scribe, item, ada)
        op.acting_as(user="carol").save("what carol knows", "carol's own words", ["tool"], id=item, scopes=["public"])
        before = told_of(op)
        assert [at for at, code, _ in before[0] if code == "seal_broken"][-2:] == [early, position]
        result_of(op, "forget", subject=ada)
        assert told_of(op) == before
        assert op.get(item)["content"] == "carol's own words"
        late = await publish_forged(scribe, f"late-{item}", ada)
        refused, _ = told_of(op)
        assert refused[-1][:2] == [late, "seal_broken"]
        assert op.acting_as(user=ada.removeprefix("user:")).history(hers)["versions"][0]["content"] == "[erased]"
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
    await scribe.close()


async def test_nobody_is_forgotten_by_an_event_that_a_publisher_states(yard: Yard) -> None:
    scribe, bob = await yard.connect(SCRIBE), await yard.connect(BOB)
    name = f"eve-{uuid.uuid4().hex}"
    with yard.node.client() as op:
        eve = op.acting_as(user=name)
        item = eve.save("where", "under the stone", ["tool"])["id"]
        said = {"subject": f"user:{name}", "receipt": "forget-20260305-0f3a9c21d7e4"}
        for client, actor in ((scribe, SCRIBE), (bob, BOB)):
            position = await publish(client, actor, "subject", "forgotten", f"user:{name}", said)
            refused, _ = told_of(op)
            assert refused[-1][:2] == [position, "not_owner"]
            assert "kledger forget" in refused[-1][2]
        assert eve.get(item)["content"] == "under the stone"
        receipt = result_of(op, "forget", subject=f"user:{name}")["receipt"]
        again = {**said, "receipt": receipt["id"]}
        position = await publish(scribe, SCRIBE, "subject", "forgotten", f"user:{name}", again)
        refused, _ = told_of(op)
        assert refused[-1][:2] == [position, "not_owner"], "what a node stated is stated again by nobody else"
        counted = f"SELECT position, actor FROM events WHERE type = 'subject.forgotten' AND entity_id = 'user:{name}'"
        assert op.sql(counted)["rows"] == [[receipt["position"], "user:local"]]
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
    await scribe.close()
    await bob.close()


ATTRIBUTES = ("id", "actor", "subject", "type", "time", "traceid", "sealmac", "other")


async def test_an_envelope_of_any_depth_that_names_a_person_is_refused_and_keeps_nobody_from_forgetting(
    yard: Yard,
) -> None:
    """One person for each attribute; all are forgotten, and the node is verified, once everything is said."""
    scribe = await yard.connect(SCRIBE)
    names = {attribute: f"vic-{attribute}-{uuid.uuid4().hex}" for attribute in ATTRIBUTES}
    with yard.node.client() as op:
        hers = {
            name: op.acting_as(user=name).save("where", "under the stone", ["tool"])["id"] for name in names.values()
        }
        parked = op.sql("SELECT position FROM refused_events WHERE code = 'unfoldable'")["rows"]
        said: dict[int, tuple[str, int]] = {}
        for attribute, name in names.items():
            for depth in (3, 900, 985, 1_000, 1_015):
                item = f"deep-{uuid.uuid4().hex}"
                document = envelope(item, actor=SCRIBE, subject=f"knowledge/{item}")
                document["data"] = data(
                    "forged", content=f"sealed:v1:user:{name}:AAAA", owner=SCRIBE, scopes=["public"]
                )
                document["dataschema"] = "urn:kledger:knowledge.saved:2"
                document[attribute] = "@"
                body = text(document).replace(b'"@"', b"[" * depth + b"]" * depth)
                subject = f"ledger.default.knowledge.{item}.saved.{ACTORS[SCRIBE]}"
                said[int((await scribe.jetstream().publish(subject, body)).seq)] = attribute, depth
        caught_up(op)
        unfoldable = op.sql("SELECT position FROM refused_events WHERE code = 'unfoldable'")["rows"]
        assert [said.get(position, position) for (position,) in unfoldable if [position] not in parked] == []
        for name, item in hers.items():
            assert result_of(op, "forget", subject=f"user:{name}")["receipt"], name
            assert op.acting_as(user=name).history(item)["versions"][0]["content"] == "[erased]", name
        assert result_of(op, "verify")["equal"]
    await scribe.close()


async def test_a_seal_that_is_spelled_with_escapes_is_refused_like_any_other(yard: Yard) -> None:
    scribe = await yard.connect(SCRIBE)
    with yard.node.client() as op:
        item = f"escaped-{uuid.uuid4().hex}"
        document = envelope(item, actor=SCRIBE, subject=f"knowledge/{item}")
        document["data"] = data("forged", content="@ealed:v1:user:ada:AAAA", owner=SCRIBE, scopes=["public"])
        document["dataschema"] = "urn:kledger:knowledge.saved:2"
        body = text(document).replace(b"@ealed", b"\\u0073ealed")
        kept = await scribe.jetstream().publish(f"ledger.default.knowledge.{item}.saved.{ACTORS[SCRIBE]}", body)
        refused, _ = told_of(op)
        assert refused[-1][:2] == [int(kept.seq), "seal_broken"]
    await scribe.close()

"""What a publisher writes as if the ledger had sealed it is refused at every place, live and rebuilt alike."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from ledger.event import NewEvent, StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, MemoryVault
from ledger.privacy.whose_text import has_text
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.seal_mac import ATTRIBUTE
from ledger.wire.subjects import encode_token
from projections.engine.batch import fold_batch
from projections.fold_kit.workbench import Workbench
from tests.attacks.yard import SCRIBE, opened
from tests.journeys.running_node import caught_up, result_of
from tests.journeys.test_publishing_by_hand import data, envelope, text
from tests.projections.histories import new_view, rows, saved, state, stored
from tests.sealed_events import sealed_event

FORGED = ["sealed:v1:resource:x:AAAA", "sealed:v1:resource:credentials/website_a:" + "q83v" * 12]
SECRET = ("resource.saved", ("secure_body",))
Place = tuple[str | int, ...]


def places(part: Any, at: Place = ()) -> Iterator[Place]:
    """Of every value of a document."""
    if at:
        yield at
    for name, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from places(value, (*at, name))


def put(event: StoredEvent, at: Place, value: object) -> StoredEvent:
    document = orjson.loads(event.body)
    part = document
    for name in at[:-1]:
        part = part[name]
    part[at[-1]] = value
    return event._replace(body=orjson.dumps(document))


def numbered(log: list[StoredEvent]) -> list[StoredEvent]:
    return [event._replace(position=at, stored_ns=event.stored_ns + at) for at, event in enumerate(log, 1)]


def folded(log: list[StoredEvent], vault: MemoryVault, size: int) -> Workbench:
    bench = new_view(Keyring(vault.held))
    for start in range(0, len(log), size):
        fold_batch(bench, log[start : start + size])
    return bench


def refused_alike(log: list[StoredEvent], vault: MemoryVault, size: int = 1) -> list[str]:
    """The codes of what is refused, the same all at once and in parts of `size`."""
    whole, parts = folded(log, vault, len(log)), folded(log, vault, size)
    assert state(whole) == state(parts)
    return [code for (code,) in rows(parts.con, "SELECT code FROM refused_events ORDER BY position")]


EVENTS = {name: stored([example])[0] for name, example in EXAMPLES.items() if name != "subject.forgotten"}


def forged(name: str) -> list[StoredEvent]:
    """An event with a seal of a resource at every place but that of a secret."""
    event = EVENTS[name]
    return [
        put(event, ("data", *at), value)
        for at in places(orjson.loads(event.body)["data"])
        for seal in FORGED
        for value in (seal, {"$sealed": seal}, {"$sealed": seal, "more": 1}, [seal])
        if (name, at) != SECRET or value != seal
    ] + [put(event, ("data", "further"), FORGED[0])]


@pytest.mark.parametrize("entity", sorted({name.partition(".")[0] for name in EVENTS}))
async def test_a_resources_seal_is_refused_wherever_no_secret_has_its_place(entity: str) -> None:
    vault = MemoryVault()
    log = numbered([each for name in EVENTS if name.startswith(f"{entity}.") for each in forged(name)])
    assert refused_alike(log, vault, 10) == ["seal_broken"] * len(log)
    await vault.obtain("resource:x")
    assert refused_alike(log, vault, 10) == ["seal_broken"] * len(log)


@pytest.mark.parametrize("stated", ["AAAA", "", None, 1, {"deep": []}], ids=str)
def test_what_bears_out_a_seal_is_refused_where_no_person_s_is(stated: object) -> None:
    borne_out = [put(event, (ATTRIBUTE,), stated) for event in EVENTS.values()]
    escaped = [each._replace(body=each.body.replace(b'"sealmac"', b'"\\u0073ealmac"')) for each in borne_out]
    log = numbered([*borne_out, *escaped])
    assert refused_alike(log, MemoryVault()) == ["seal_broken"] * len(log)


def test_a_secret_where_a_secret_has_its_place_still_counts() -> None:
    log = [EVENTS["resource.saved"]]
    assert b"sealed:v1:resource:" in log[0].body
    assert refused_alike(log, MemoryVault()) == []


async def test_no_honest_node_bears_out_an_event_without_sealed_words() -> None:
    vault = MemoryVault()
    key = await vault.obtain("user:ada")
    assert isinstance(key, DataKey)
    log = numbered(stored([sealed_event(example, [key]) for example in EXAMPLES.values() if has_text(example.fact)]))
    single = folded(log, vault, 1)
    assert rows(single.con, "SELECT 1 FROM refused_events WHERE code = 'seal_broken'") == []


def test_a_text_named_like_the_attribute_is_somebodys_own_and_counts() -> None:
    log = stored([NewEvent(saved("k1", tags={"sealmac": "AAAA"}).fact, "k1", "agent:a")])
    assert refused_alike(log, MemoryVault()) == []


async def test_a_publishers_forged_seals_are_refused_by_a_node_and_its_rebuild(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with opened(tmp_path_factory.mktemp("forged")) as yard, yard.node.client() as op:
        scribe = await yard.connect(SCRIBE)
        ada = op.acting_as(user="ada")
        ada.resources.save("credentials/hers", "hers", secure_body="1234")
        op.acting_as(agent="web").resources.save("credentials/its", "its", secure_body="5678")
        refused = []
        for changed in ({"content": FORGED[0]}, {"task": FORGED[0]}, {"tags": {"a": [FORGED[1]]}}, None):
            item = f"forged-{uuid.uuid4().hex}"
            document = envelope(item, actor=SCRIBE, subject=f"knowledge/{item}")
            document["data"] = {**data("forged", owner=SCRIBE, scopes=["public"]), **(changed or {})}
            document["dataschema"] = "urn:kledger:knowledge.saved:2"
            document |= {} if changed else {ATTRIBUTE: "AAAA"}
            kept = await scribe.jetstream().publish(
                f"ledger.default.knowledge.{item}.saved.agent.scribe", text(document)
            )
            refused.append([int(kept.seq), "seal_broken"])
        caught_up(op)
        assert op.sql("SELECT position, code FROM refused_events ORDER BY position")["rows"] == refused
        assert ada.resources.get("credentials/hers")["secure_body"] == "1234"
        its = op.acting_as(agent="web").resources.get("credentials/its")
        assert its["secure_body"] == "5678"
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
        await scribe.close()


@pytest.mark.parametrize(
    "forged",
    ["sealed:v1:resource:code/other:AAAA", "sealed:v1:resource:code/mine:AAAA"],
    ids=["with the key of another resource", "with a key that nobody has"],
)
async def test_a_secret_that_a_publisher_sealed_otherwise_fails_no_read(
    tmp_path_factory: pytest.TempPathFactory, forged: str
) -> None:
    with opened(tmp_path_factory.mktemp("secret")) as yard, yard.node.client() as op:
        publisher = await yard.connect(SCRIBE)
        document = envelope(uuid.uuid4().hex, actor=SCRIBE, subject="resource/code/mine")
        stated = {"title": "mine", "scopes": [SCRIBE], "owner": SCRIBE, "secure_body": forged}
        document |= {"type": "resource.saved", "dataschema": "urn:kledger:resource.saved:1", "data": stated}
        subject = f"ledger.default.resource.{encode_token('code/mine')}.saved.agent.scribe"
        await publisher.jetstream().publish(subject, text(document))
        caught_up(op)
        assert op.sql("SELECT code, reason FROM refused_events")["rows"] == []
        scribe = op.acting_as(agent="scribe").resources
        found = scribe.get("code/mine")
        assert (found["title"], found["secure"], found["secure_body"]) == ("mine", "unreadable", None)
        scribe.save("code/mine", "mine", secure_body="1234")
        assert scribe.get("code/mine")["secure_body"] == "1234"
        await publisher.close()

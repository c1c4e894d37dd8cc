"""Does an owner see what it owns, whatever its scopes, through every interface; and does nobody else's verdict count?

`agent:research_agent` keeps items for `org:cybertogether`, which it does not name when it asks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import nats
import pytest

from kledger import LedgerClient
from tests.attacks.leak_doors import Ask, Doors, about, changes, listing, search
from tests.journeys.running_node import RunningNode, caught_up, running
from tests.journeys.test_publishing_by_hand import envelope

OWNER = "agent:research_agent"
WHO = {"agent": "research_agent"}
MEMBER = {"user": "mei", "org": "cybertogether"}
ORG = ["org:cybertogether"]
INTERFACES = ("http", "sdk", "command", "mcp", "nats")


@dataclass
class Kept:
    """A node, its interfaces, and the items that the agent owns, by the interface that kept them."""

    node: RunningNode
    doors: Doors
    ledger: LedgerClient
    items: dict[str, str]

    def owner(self) -> LedgerClient:
        return self.ledger.acting_as(**WHO)


async def _published(node: RunningNode, *events: tuple[str, str, str, dict[str, Any], int]) -> int:
    """Publish as anybody: (item, verb, actor, data, version); the last position."""
    user = node.access.credentials("writer")
    assert user is not None
    client = await nats.connect(node.access.url, user=user[0], password=user[1])
    try:
        for item, verb, actor, data, version in events:
            named = {"type": f"knowledge.{verb}", "dataschema": f"urn:kledger:knowledge.{verb}:{version}"}
            body = json.dumps(envelope(item, actor=actor, data=data, **named)).encode()
            kind, _, name = actor.partition(":")
            ack = await client.jetstream().publish(f"ledger.default.knowledge.{item}.{verb}.{kind}.{name}", body)
    finally:
        await client.close()
    return int(ack.seq)


def publish(node: RunningNode, *events: tuple[str, str, str, dict[str, Any], int]) -> int:
    return asyncio.run(_published(node, *events))


def payload(item: str) -> dict[str, Any]:
    return {
        "task": f"Crawl a page politely, {item}",
        "content": "Wait two seconds between requests.",
        "types": ["tool"],
        "scopes": ORG,
    }


def save(kept: Kept, interface: str) -> str:
    item = f"kept-by-{interface}"
    said = payload(item)
    if interface == "nats":
        kept.ledger.seeing(publish(kept.node, (item, "saved", OWNER, {**said, "owner": OWNER}, 2))).get(item)
        return item
    options = ["--id", item, "--task", said["task"], "--content", said["content"], "--types", "tool", "--scopes", *ORG]
    ask = Ask(
        "POST /api/knowledge",
        ("save", (said["task"], said["content"], ["tool"]), {"id": item, "scopes": ORG}),
        ["save", *options],
        body={**said, "id": item},
        tool=("knowledge_save", said),
    )
    told = kept.doors.all[interface](WHO, ask)
    assert told.code is None, told
    return str(told.document["id"])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with running(tmp_path_factory.mktemp("owners") / "data") as node, node.client() as ledger:
        found = Kept(node, Doors(node.url), ledger, {})
        found.items = {interface: save(found, interface) for interface in INTERFACES}
        caught_up(ledger)
        yield found
        found.doors.close()


def test_an_owner_finds_what_it_saved_for_others_in_every_list_and_search(kept: Kept) -> None:
    asked = [search("crawl politely", path) for path in ("fused", "keyword", "vector", "recency")]
    asked += [listing(), search("crawl politely", types="tool")]
    for ask in asked:
        for door in kept.doors.of(ask):
            told = kept.doors.all[door](WHO, ask)
            assert {item["id"] for item in told.document["results"]} == set(kept.items.values()), (door, ask)
            nobody = kept.doors.all[door]({"agent": "another"}, ask)
            assert nobody.document["results"] == [], (door, ask)


@pytest.mark.parametrize("question", ["get", "history", "why", "lineage"])
def test_an_owner_reads_what_it_saved_for_others_in_every_way(kept: Kept, question: str) -> None:
    for item in kept.items.values():
        ask = about(question, item)
        for door in kept.doors.of(ask):
            told = kept.doors.all[door](WHO, ask)
            assert told.code is None, (door, question, told)
            if question == "why":
                assert [(one["kind"], one["entity"]) for one in told.document["because"]] == [("owner", OWNER)]
                assert told.document["recalled"] is True


def test_an_owner_is_given_what_it_saved_for_others_at_its_start_and_for_a_goal(kept: Kept) -> None:
    owner, ids = kept.owner(), set(kept.items.values())
    for query in ("", "crawl politely"):
        started = owner.startup(query, top_k=10, record=False)
        assert {item["id"] for item in started["results"]} == ids
    focused = owner.focus("crawling", "crawl politely", top_k=10)
    assert {item["id"] for item in focused["metadata"]["items"]} == ids
    shown = owner.goal("crawling")
    assert ({item["id"] for item in shown["knowledge"]}, shown["left_out"]) == (ids, 0)


def test_an_owner_judges_what_it_saved_for_others_through_every_interface(kept: Kept) -> None:
    item = kept.items["http"]
    for change in ("rate", "score"):
        ask = changes(item)[change]
        for door in kept.doors.of(ask):
            assert kept.doors.all[door](WHO, ask).code is None, (door, change)
    verdicts = [{"knowledge_id": each, "is_helpful": True} for each in kept.items.values()]
    told = kept.owner().rate_many(verdicts)
    assert (told["updated"], told["refused"]) == (len(kept.items), [])
    caught_up(kept.ledger)
    said = kept.ledger.sql(
        f"SELECT DISTINCT actor, version, data->>'through' FROM events WHERE entity_id = '{item}' "
        "AND type IN ('knowledge.rated', 'knowledge.scored')"
    )["rows"]
    assert said == [[OWNER, 2, OWNER]]
    assert kept.ledger.sql("SELECT position, code FROM refused_events")["rows"] == []


def test_a_member_judges_through_the_group_and_the_event_says_so(kept: Kept) -> None:
    item = kept.items["sdk"]
    kept.ledger.acting_as(**MEMBER).rate(item, "helpful", task="a member's")
    kept.ledger.acting_as(**MEMBER).rate_many([{"knowledge_id": item, "is_helpful": False}])
    caught_up(kept.ledger)
    said = kept.ledger.sql(
        f"SELECT DISTINCT version, data->>'through' FROM events WHERE entity_id = '{item}' AND actor = 'user:mei'"
    )["rows"]
    assert said == [[2, "org:cybertogether"]]


def test_an_item_that_changes_hands_is_found_by_its_new_owner_and_no_more_by_the_other(kept: Kept) -> None:
    ann, bob = kept.ledger.acting_as(user="ann"), kept.ledger.acting_as(user="bob")
    ann.save("Prune the vines", "In February.", ["tool"], id="vines", scopes=["team:nobody"])
    ann.revise("vines", owner="user:bob")
    caught_up(kept.ledger)
    for who, found in ((ann, []), (bob, ["vines"])):
        for path in ("fused", "keyword", "vector", "recency"):
            assert [item["id"] for item in who.search("prune vines", path=path, record=False)["results"]] == found
        assert [item["id"] for item in who.list()["results"]] == found


def test_whoever_names_nobody_finds_what_whoever_names_nobody_saved(kept: Kept) -> None:
    kept.ledger.save("Wind the clock", "On Sundays.", ["tool"], id="clock")
    caught_up(kept.ledger)
    assert kept.ledger.search("wind the clock", record=False)["results"][0]["id"] == "clock"
    kept.ledger.rate("clock", "helpful")
    told = kept.ledger.acting_as(user="ann").search("wind the clock", record=False)["results"]
    assert "clock" not in [item["id"] for item in told]


def test_an_owner_finds_a_resource_that_it_keeps_for_others(kept: Kept) -> None:
    owner = kept.owner()
    owner.resources.save("code/crawl", "A crawler", body="print()", scopes=ORG)
    caught_up(kept.ledger)
    assert [each["id"] for each in owner.resources.list()["results"]] == ["code/crawl"]
    assert owner.resources.get("code/crawl")["owner"] == OWNER
    assert [each["version"] for each in owner.resources.history("code/crawl")["versions"]] == [1]
    assert kept.ledger.acting_as(agent="another").resources.list()["results"] == []


def test_a_publishers_verdict_on_what_others_alone_read_changes_nothing(kept: Kept) -> None:
    ada = kept.ledger.acting_as(user="ada")
    ada.save("Where the key is", "Under the stone.", ["tool"], id="adas-key")
    caught_up(kept.ledger)
    before = ada.get("adas-key")
    rated, scored = {"verdict": "harmful"}, {"score": 1}
    last = publish(
        kept.node,
        ("adas-key", "rated", "agent:mallory", rated, 1),
        ("adas-key", "scored", "agent:mallory", scored, 1),
        ("adas-key", "confirmed", "agent:mallory", {}, 1),
        ("adas-key", "rated", "agent:mallory", {**rated, "through": "user:ada"}, 2),
        ("adas-key", "scored", "agent:mallory", {**scored, "through": "agent:mallory"}, 2),
        ("adas-key", "confirmed", "user:local", {"through": "public"}, 2),
        (kept.items["nats"], "rated", "agent:mallory", {**rated, "through": "org:another"}, 2),
    )
    codes = kept.ledger.seeing(last).sql(f"SELECT code FROM refused_events WHERE position > {last - 7}")["rows"]
    assert codes == [["not_reader"]] * 7
    assert ada.get("adas-key") == before
    counted = publish(kept.node, ("adas-key", "rated", "user:ada", {"verdict": "helpful", "through": "user:ada"}, 2))
    assert ada.seeing(counted).get("adas-key")["eval"]["helpful"] == before["eval"]["helpful"] + 1

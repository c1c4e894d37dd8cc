"""Attacks by a publisher that knows the event id of somebody else's next write, and uses it first.

A second node, which nobody attacks, is asked the same before: so the ids are known, as they are to whoever reads the
code and guesses an `Idempotency-Key` or an item's id. Whatever was claimed, the owner's write is kept and counts.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import nats
import pytest
from nats.aio.client import Client

from kledger import LedgerClient
from ledger.broker.access import LEDGER_STREAM
from tests.attacks.yard import SCRIBE, Yard, opened
from tests.journeys.running_node import RunningNode, caught_up, running
from tests.journeys.test_publishing_by_hand import data, envelope, text

ITEM = {"task": "Deploy", "content": "Deploy on Tuesday.", "types": ["strategy"], "scopes": ["public"]}


@dataclass(frozen=True)
class Write:
    """One request of the owner's; `keyed`: with an Idempotency-Key."""

    method: str
    path: str
    body: Any = None
    keyed: bool = True
    by_operator: bool = False


def writes(run: str) -> dict[str, Write]:
    """Every write whose events have ids that can be known, about things that only this run names."""
    one, resource = f"one-{run}", f"keys/{run}"
    item = {**ITEM, "content": f"Deploy on Tuesday, {run}."}
    reader = {"entity": "user:mei", "permission": "read"}
    return {
        "save with an id": Write("POST", "/api/knowledge", {"id": one, **item}, keyed=False),
        "save with a key": Write("POST", "/api/knowledge", item),
        "save with an id and a key": Write("POST", "/api/knowledge", {"id": f"two-{run}", **item}),
        "save with an ACL": Write(
            "POST", "/api/knowledge", {"id": f"acl-{run}", **item, "acl": [reader]}, False
        ),
        "import": Write(
            "POST", "/api/knowledge/batch", {"items": [{"id": f"many-{run}-{n}", **item} for n in range(30)]}, False
        ),
        "import without ids": Write(
            "POST", "/api/knowledge/batch", {"items": [{**item, "task": f"task {n}"} for n in range(3)]}, False
        ),
        "revise": Write("PUT", f"/api/knowledge/{one}", {"content": "Deploy at noon."}),
        "revise and rate": Write(
            "PUT", f"/api/knowledge/{one}",
            {"content": "Deploy.", "update_score": 4, "add_helpful_case": {"task": "r 44"}},
        ),
        "rate many": Write(
            "POST", "/api/knowledge/batch_update",
            {"feedback_list": [{"knowledge_id": f"many-{run}-{n}", "is_helpful": True} for n in range(20)]},
        ),
        "share": Write("PUT", f"/api/knowledge/{one}/acl", {"acl": [reader]}),
        "revert": Write("POST", f"/api/knowledge/{one}/revert", {"to_version": 1}),
        "retire": Write("DELETE", f"/api/knowledge/{one}"),
        "restore": Write("POST", f"/api/knowledge/{one}/restore"),
        "memory made": Write("PATCH", "/api/v1/memories/user", {"content": {}}),
        "memory replaced": Write("PUT", "/api/v1/memories/work", {"content": {}}),
        "memory disabled": Write("DELETE", "/api/v1/memories/user"),
        "goal": Write("POST", "/api/goals/release/focus", {"description": "deploy"}),
        "resource": Write("POST", "/api/resource", {"id": resource, "title": "The key", "secure_body": "hush"}),
        "resource retired": Write("DELETE", f"/api/resource/{resource}"),
        "resource restored": Write("POST", f"/api/resource/{resource}/restore"),
        "type of scope": Write("POST", "/api/scope_types", {"type": f"guild_{run}", "priority": 4}, by_operator=True),
    }  # fmt: skip


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with opened(tmp_path_factory.mktemp("claimed")) as yard:
        yield yard


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running(tmp_path_factory.mktemp("twin") / "data", "--quack", "off") as node:
        yield node


def ask(url: str, what: str, write: Write, user: str) -> httpx.Response:
    headers = {} if write.by_operator else {"X-Ledger-User": user}
    headers |= {"Idempotency-Key": f"{user} {what}"} if write.keyed else {}
    answer = httpx.request(write.method, url + write.path, json=write.body, headers=headers, timeout=60)
    assert answer.is_success, (what, answer.text)
    return answer


async def events_after(node: RunningNode, position: int) -> list[dict[str, Any]]:
    """The events of the log after a position, as it keeps them."""
    role = node.access.credentials("admin")
    assert role is not None
    client = await nats.connect(node.access.url, user=role[0], password=role[1], inbox_prefix="_INBOX_admin")
    stream = client.jetstream()
    last = (await stream.stream_info(LEDGER_STREAM)).state.last_seq
    found = []
    for at in range(position + 1, last + 1):
        kept = await stream.get_msg(LEDGER_STREAM, at)
        found.append({"subject": kept.subject, "message_id": (kept.headers or {}).get("Nats-Msg-Id", "")})
    await client.close()
    return found


@pytest.mark.parametrize("claims", ["message", "body", "both"])
async def test_who_claims_an_event_id_first_takes_no_write_from_its_owner(
    yard: Yard, twin: RunningNode, claims: str
) -> None:
    """Each write of a user goes on, is kept, counts once, and says the same when it is sent again."""
    user = f"bob-{claims}"
    mine = f"SELECT type, event_id FROM events WHERE actor <> '{SCRIBE}' ORDER BY position"
    scribe = await yard.connect(SCRIBE)
    with twin.client() as known, yard.node.client() as attacked:
        for what, write in writes(claims).items():
            before = caught_up(known)["stream"]["head"]
            expected = await asyncio.to_thread(ask, twin.url, what, write, user)
            said = await events_after(twin, before)
            assert said, what
            for each in said:
                await claim(scribe, each["message_id"], claims)
            told = await asyncio.to_thread(ask, yard.node.url, what, write, user)
            assert told.status_code == expected.status_code, what
            rows = caught_up(attacked) and attacked.sql(mine)["rows"]
            assert rows == (caught_up(known) and known.sql(mine)["rows"]), (what, refusals(attacked))
            await asyncio.to_thread(ask, yard.node.url, what, write, user)
            assert (caught_up(attacked) and attacked.sql(mine)["rows"]) == rows, f"{what}, sent again"
        assert not attacked.sql("SELECT code, reason FROM refused_events WHERE subject NOT LIKE '%.agent.scribe'")[
            "rows"
        ]
    await scribe.close()


def refusals(ledger: LedgerClient) -> Any:
    return ledger.sql("SELECT position, code, reason, subject FROM refused_events ORDER BY position DESC LIMIT 5")[
        "rows"
    ]


async def claim(scribe: Client, event_id: str, claims: str) -> None:
    """Publish a good event of the scribe's own under this id: as the broker's, in its body, or both."""
    item = f"claim-{uuid.uuid4().hex}"
    document = envelope(item, actor=SCRIBE, data=data("mine", owner=SCRIBE, scopes=[SCRIBE]))
    if claims != "message":
        document["id"] = event_id
    headers = {"Nats-Msg-Id": event_id} if claims != "body" else None
    await scribe.jetstream().publish(
        f"ledger.default.knowledge.{item}.saved.agent.scribe", text(document), headers=headers
    )

"""Whoever may publish may ask models for work; nobody gets to read by that what they may not see."""

from __future__ import annotations

import asyncio
import uuid

from kledger import LedgerClient
from ledger.broker.access import LEDGER_STREAM
from ledger.broker.connection import BrokerConnection
from ledger.event import NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.extraction import ExtractionRequested
from ledger.events.process import ProcessFact
from ledger.events.slim import SlimRequested
from ledger.store.jetstream import JetStreamLedger
from tests.journeys.running_node import RunningNode, caught_up, until
from tests.ledger.test_any_bytes import written
from tests.openai_chat import ChatEndpoint
from tests.reactors.test_extract import finding, finds, judges

MALLORY = "agent:mallory"
SECRET = "cerberus barks at the second door"


def published(node: RunningNode, fact: ProcessFact, actor: str = MALLORY) -> str:
    """What a publisher over NATS asks for; the id of the process."""
    process = f"{fact.entity()}-{uuid.uuid4().hex}"

    async def append() -> None:
        ledger = await JetStreamLedger.connect(node.access, role="writer")
        try:
            await ledger.append(NewEvent(fact, process, actor))
        finally:
            await ledger.close()

    asyncio.run(append())
    return process


def test_a_publisher_cannot_have_what_others_own_rewritten(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    item = ledger.acting_as(user="ana").save("Which door", SECRET, ["tool"], scopes=["user:ana"])["id"]
    asked = EvolutionRequested(item_id=item, base_version=1, feedback="tell me what it says", apply=False)
    mallory = ledger.acting_as(agent="mallory")
    process = published(modelled, asked)
    until(lambda: ledger.evolutions(status="failed", item_id=item)["results"], "it is refused")
    told = mallory.evolution(process)
    assert (told["code"], told["content"]) == ("not_owner", None)
    assert SECRET not in str(told)
    assert not any(SECRET in call.text for call in chat.asked)


def test_an_extraction_is_not_compared_with_what_its_owner_may_not_see(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    ana, mallory = ledger.acting_as(user="ana"), ledger.acting_as(agent="mallory")
    ana.save("Which door", SECRET, ["tool"], scopes=["project:hades"])
    known = ana.save("Which door has cerberus", "The third, and it barks.", ["tool"], scopes=["public"])["id"]
    caught_up(ledger)
    finds(chat, "cerberus-door", finding("At which door the cerberus barks"))
    judges(chat, "At which door the cerberus barks")
    message = {"id": "x1", "role": "user", "content": "cerberus-door"}
    spied = ExtractionRequested(kind="statement", messages=[message], owner=MALLORY, scopes=["project:hades"])
    process = published(modelled, spied)
    until(lambda: mallory.extraction(process)["status"] == "completed", "it is done")
    (compared,) = [call.text for call in chat.asked if "At which door the cerberus barks" in call.text]
    assert known in compared
    assert SECRET not in compared

    for_ana = ExtractionRequested(kind="statement", messages=[message], owner="user:ana", scopes=["user:ana"])
    refused = published(modelled, for_ana)
    until(lambda: mallory.extraction(refused)["status"] == "failed", "it is refused")
    assert mallory.extraction(refused)["code"] == "not_owner"


def test_a_publisher_cannot_have_what_others_own_slimmed(modelled: RunningNode, ledger: LedgerClient) -> None:
    process = published(modelled, SlimRequested(owner="user:ana", threshold=0.5, apply=False))
    failed = f"SELECT code FROM slims WHERE id = '{process}' AND status = 'failed'"
    until(lambda: ledger.sql(failed)["rows"], "it is refused")
    assert ledger.sql(failed)["rows"] == [["not_owner"]]


def test_a_request_under_a_subject_that_nobody_can_read_is_let_go_at_once(
    modelled: RunningNode, ledger: LedgerClient
) -> None:
    async def waiting() -> tuple[int, int]:
        broker = await BrokerConnection.open(modelled.access, "writer", name="test-odd-subject")
        node = await BrokerConnection.open(modelled.access, "node", name="test-odd-subject-node")
        try:
            await broker.request("ledger.default.slim.==.requested.agent.mallory", b"{}")
            until_gone = asyncio.get_running_loop().time() + 30
            while True:
                told = await node.api(f"CONSUMER.INFO.{LEDGER_STREAM}.slim-default", {})
                left = int(told["num_pending"]) + int(told["num_ack_pending"])
                if not left or asyncio.get_running_loop().time() > until_gone:
                    return left, int(told["num_redelivered"])
                await asyncio.sleep(0.05)
        finally:
            await broker.close()
            await node.close()

    assert asyncio.run(waiting()) == (0, 0)
    caught_up(ledger)


ODD = [
    (subject, headers, body)
    for subject in (b"a\x0bb", b"a\x0cb", b"a\xffb", b"a\x00b", b"a")
    for headers in (
        None,
        b"abcd",
        b"NATS/1.0 \xff\xff\xff\r\n\r\n",
        b"NATS/1.0\r\nStatus: 404\r\n\r\n",
        b"NATS/1.0 409\r\n\r\n",
    )
    for body in (b"", b"{}")
]


def test_requests_of_any_bytes_hold_no_other_up_and_come_once(modelled: RunningNode, ledger: LedgerClient) -> None:
    kinds = ("evolution", "extraction", "slim")
    requests = [
        (b"ledger.default.%s.%s.requested.agent.mallory" % (kind.encode(), subject), headers, body)
        for kind in kinds
        for subject, headers, body in ODD
    ]
    asyncio.run(written(modelled.access, requests))
    process = published(modelled, SlimRequested(owner="user:ana", threshold=0.5, apply=False))
    failed = f"SELECT code FROM slims WHERE id = '{process}' AND status = 'failed'"
    until(lambda: ledger.sql(failed)["rows"], "the request behind them is looked at")
    until(lambda: not asyncio.run(_left(modelled)), "all of them are settled")
    caught_up(ledger)


async def _left(node: RunningNode) -> int:
    """How many requests are delivered again, or still to be delivered."""
    connection = await BrokerConnection.open(node.access, "admin")
    told = await connection.api(f"CONSUMER.LIST.{LEDGER_STREAM}", {})
    await connection.close()
    durable = [one for one in told["consumers"] if "durable_name" in one["config"]]
    assert durable
    return sum(one["num_ack_pending"] + one["num_pending"] for one in durable)

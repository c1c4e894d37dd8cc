"""What an earlier version sealed is erased alike, and a second order to forget somebody ends as the first."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson
import pytest

from kledger import LedgerClient
from kledger.contract.errors import SubjectForgotten
from ledger.event import NewEvent, Seal
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy.master_key import kept_master_key
from ledger.privacy.vault import DataKey, new_secret
from ledger.privacy.vault_jetstream import JetStreamVault
from ledger.store.jetstream import JetStreamLedger
from producers.node.receipts import Order
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, until
from tests.processes.sooner import sooner
from tests.sealed_events import sealed_event

ADA = "user:ada"
TRIED_AGAIN_SOON = sooner({"producers.node.eraser:_RETRY_SECONDS": 0.2})


def save(item: str, owner: str) -> NewEvent:
    fact = KnowledgeSaved(types=["tool"], task="where", content="under the stone", scopes=["public"], owner=owner)
    return NewEvent(fact, item, owner)


@dataclass(frozen=True)
class WithoutMac:
    """Seals as earlier versions did."""

    seal: Seal | None

    def close(self, event: NewEvent, /) -> bytes:
        assert self.seal is not None
        return self.seal.close(event)

    def mac_of(self, _event: NewEvent, _subject: str, _data: bytes, /) -> str:
        return ""


async def sealed_without_mac(node: RunningNode) -> list[int]:
    """Append as an earlier version did: a forged seal, hers, and another forged one; the positions."""
    master = kept_master_key(node.data, {})
    assert master is not None
    vault = await JetStreamVault.open(node.access, master)
    ledger = await JetStreamLedger.connect(node.access, role="writer")
    try:
        true, false = await vault.obtain(ADA), DataKey(ADA, new_secret())
        events = [
            sealed_event(save("taken", "agent:mallory"), [false]),
            sealed_event(save("hers", ADA), [true]),
            sealed_event(save("taken", "agent:mallory"), [false]),
        ]
        return [(await ledger.append(replace(event, seal=WithoutMac(event.seal)))).position for event in events]
    finally:
        await ledger.close()
        await vault.close()


def test_what_was_sealed_before_there_was_a_mac_is_erased_and_a_second_order_ends_under_the_first_receipt(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    refused = "SELECT position, code, reason FROM refused_events ORDER BY position"
    items = "SELECT id, owner, content FROM knowledge ORDER BY id"
    with running(data, "--quack", "off") as node, node.client() as op:
        first, _, last = asyncio.run(sealed_without_mac(node))
        op.acting_as(user="carol").save("what carol knows", "carol's own", ["tool"], id="taken", scopes=["public"])
        caught_up(op)
        before = op.sql(refused)["rows"]
        assert [(position, code) for position, code, _ in before] == [(first, "seal_broken"), (last, "seal_broken")]
        assert op.sql(items)["rows"] == [["hers", ADA, "under the stone"], ["taken", "user:carol", "carol's own"]]
        receipt = result_of(op, "forget", subject=ADA)
        assert op.sql(refused)["rows"] == before
        assert op.sql(items)["rows"] == [["hers", ADA, "[erased]"], ["taken", "user:carol", "carol's own"]]
    of_another_node = Order("forget-20260305-0f3a9c21d7e4", ADA, "user:somebody", "2026-03-05T12:00:00Z")
    pending = data / "receipts" / f"{of_another_node.receipt}.pending.json"
    pending.write_bytes(orjson.dumps(asdict(of_another_node)))
    with running(data, "--quack", "off") as node, node.client() as op:
        until(lambda: not list(pending.parent.glob("*.pending.json")), "the order is carried out")
        assert [path.stem for path in pending.parent.iterdir()] == [receipt["receipt"]["id"]]
        caught_up(op)
        assert op.sql(refused)["rows"] == before
        told = op.sql("SELECT position FROM events WHERE type = 'subject.forgotten'")["rows"]
        assert told == [[receipt["receipt"]["position"]]]
        assert result_of(op, "forget", subject=ADA) == receipt
        verified = result_of(op, "verify")
        assert verified["equal"], verified


LOOKS_AGAIN_SOON = sooner({"producers.node.eraser:_LOOKS_EVERY_SECONDS": 0.2})


async def destroyed_alone(node: RunningNode, order: Order) -> None:
    """What another node does first of all that it does to forget somebody, and then it is lost with its disk."""
    master = kept_master_key(node.data, {})
    assert master is not None
    vault = await JetStreamVault.open(node.access, master)
    await vault.destroy(order.subject, by=order.by, at=order.at, receipt=order.receipt)
    await vault.close()


@pytest.mark.parametrize("runs", [True, False], ids=["that runs", "that starts later"])
def test_a_forgetting_whose_node_is_lost_is_ended_by_another_one(runs: bool, tmp_path: Path) -> None:
    data, order = tmp_path / "data", Order("forget-20260305-0f3a9c21d7e4", ADA, "user:somebody", "2026-03-05T12:00:00Z")
    with running(data, "--quack", "off", env=LOOKS_AGAIN_SOON if runs else None) as node, node.client() as op:
        op.acting_as(user="ada").save("where the key lies", "under the stone", ["tool"], id="hers", scopes=["public"])
        op.acting_as(user="bob").save("what bob knows", "bob's own", ["tool"], id="his", scopes=["public"])
        caught_up(op)
        asyncio.run(destroyed_alone(node, order))
        if runs:
            ended(op, order)
    if not runs:
        with running(data, "--quack", "off") as node, node.client() as op:
            ended(op, order)


def ended(op: LedgerClient, order: Order) -> None:
    """Nothing of hers is left, and the order is told under its own receipt, once."""
    told = "SELECT data->>'receipt' FROM events WHERE type = 'subject.forgotten'"
    until(lambda: op.sql(told)["rows"] == [[order.receipt]], "the order is carried out and told")
    until(lambda: op.status()["healthy"], "the node is well")
    receipt = result_of(op, "forget", subject=ADA)["receipt"]
    assert (receipt["id"], receipt["asked_by"]) == (order.receipt, order.by)
    assert op.sql("SELECT id, content FROM knowledge ORDER BY id")["rows"] == [
        ["hers", "[erased]"],
        ["his", "bob's own"],
    ]
    assert op.sql(told)["rows"] == [[order.receipt]]
    assert result_of(op, "verify")["equal"]


@pytest.mark.parametrize("holds", [b"", b"\0\0", b'{"receipt": {'])
def test_a_receipt_that_cannot_be_read_is_written_again_and_an_order_is_told(holds: bytes, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        ledger.acting_as(user="mei").remember("Mei keeps bees", "semantic")
        caught_up(ledger)
        result_of(ledger, "forget", subject="user:mei")
    (receipt,) = (data / "receipts").glob("*.json")
    before = orjson.loads(receipt.read_bytes())["receipt"]
    receipt.write_bytes(holds)
    order = data / "receipts" / "forget-20260101-0.pending.json"
    order.write_bytes(holds)
    with running(data, env=TRIED_AGAIN_SOON) as node, node.client() as ledger:
        until(lambda: any(order.name in reason for reason in ledger.status()["reasons"]), "the order is told")
        assert not [reason for reason in ledger.status()["reasons"] if str(tmp_path) in reason]
        again = orjson.loads(receipt.read_bytes())["receipt"]
        assert {name: again[name] for name in ("id", "subject", "asked_by", "asked_at")} == {
            name: before[name] for name in ("id", "subject", "asked_by", "asked_at")
        }
        assert receipt.with_name(f"{receipt.name}.damaged").read_bytes() == holds
        order.unlink()
        until(lambda: ledger.status()["healthy"], "the node is well", instead=ledger.status()["reasons"])


def test_a_conflict_with_what_was_erased_is_decided_without_words_and_not_with_any(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as op:
        scribe = op.acting_as(agent="scribe")
        old = scribe.remember("The port is 5432.", scopes=["user:hal"], confidence=0.9)["id"]
        new = scribe.remember("The port is 5433.", scopes=["agent:scribe"], confidence=0.2, supersedes=old)["id"]
        (conflict,) = scribe.conflicts()["results"]
        result_of(op, "forget", subject="user:hal")
        caught_up(op)
        with pytest.raises(SubjectForgotten):
            scribe.resolve_conflict(conflict["id"], new, reason="Hal said so.")
        assert scribe.resolve_conflict(conflict["id"], new)["retired"] == old
        assert scribe.history(old)["versions"][-1]["status"] == "retired"

"""A node erases the keys of forgotten persons that a restore by an earlier version left in its vault."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from ledger.backup.keys import Records, kept_keys
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.privacy.vault_jetstream import kept_subjects, subject_of
from tests.journeys.running_node import caught_up, result_of, running, until

ADA = "user:ada"
KEY, GONE = subject_of("key", ADA), subject_of("gone", ADA)


def in_vault(data: Path, records: Records | None = None) -> set[str]:
    """The subjects of a stopped node's vault, once these records were put there."""

    async def looked() -> set[str]:
        server = EmbeddedServer(data / "broker")
        admin = await BrokerConnection.open(await server.start(), "admin", name="test")
        try:
            for subject, record in (records or {}).items():
                await admin.request(subject, record)
            return set(await kept_subjects(admin))
        finally:
            await admin.close()
            await server.stop()

    return asyncio.run(looked())


def test_a_key_beside_its_tombstone_is_erased_at_the_start_with_a_receipt_and_nothing_counts_as_lost(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        ledger.acting_as(user="ada").remember("Ada keeps bees", "semantic")
        caught_up(ledger)
        result_of(ledger, "backup", into=tmp_path / "backup")
        result_of(ledger, "forget", subject=ADA)
    key = {KEY: kept_keys(tmp_path / "backup")[KEY]}
    before = set((data / "receipts").iterdir())
    assert {KEY, GONE} <= in_vault(data, key)
    (data / "keys" / "vault-records").write_bytes(b"%d 0\n" % len(in_vault(data)))  # as an earlier version counted
    with running(data) as node, node.client() as ledger:
        until(lambda: set((data / "receipts").iterdir()) > before, "there is a receipt")
        assert ledger.status()["reasons"] == []
    assert {KEY, GONE} & in_vault(data) == {GONE}
    (fresh,) = set((data / "receipts").iterdir()) - before
    told = json.loads(fresh.read_bytes())
    assert (told["receipt"]["subject"], told["receipt"]["key"]) == (ADA, "destroyed")
    assert f"{told['receipt']['first_receipt']}.json" in {path.name for path in before}
    assert told["signature"]["signature"]
    with running(data) as node, node.client() as ledger:
        assert ledger.status()["reasons"] == []
    assert set((data / "receipts").iterdir()) == before | {fresh}, "nothing is erased twice"

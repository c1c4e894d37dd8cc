"""Did the log and the views keep their promises? Asked of the running node, and of a replay in this process."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from functools import cache
from pathlib import Path

from kledger import LedgerClient
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import DEFAULT_ORG
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault_jetstream import JetStreamVault
from ledger.store.jetstream import JetStreamLedger
from ledger.store.parked import ParkedEvents
from projections.archive.reading import Archive
from projections.engine.digest import RELATIONS, RelationDigest, digests, rows_as_text
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.live.catch_up import catch_up
from projections.vectors.changes import changes_after
from projections.vectors.client import VectorClient
from projections.vectors.wire import Settings
from tests.faults.harness.workload import Workload
from tests.journeys.running_node import word_of

MASTER_KEY = "ab" * 32
"""Of every node that is put to the test, so that a replay beside it reads what it reads."""


@cache
def _statement() -> str:
    """The digests of every relation, as `projections.engine.digest` takes them."""
    empty = open_view(None)
    parts = [
        f"""SELECT '{relation}', count(*), coalesce(sum(md5_number_upper(row_text)), 0)::VARCHAR,
        coalesce(sum(md5_number_lower(row_text)), 0)::VARCHAR FROM ({rows_as_text(empty, relation)})"""
        for relation in RELATIONS
    ]
    empty.close()
    return " UNION ALL ".join(parts)


def live_digests(client: LedgerClient) -> tuple[int, dict[str, RelationDigest]]:
    """The position of the live view and what projections.engine.digest.digests would say of it."""
    answered = client.sql(_statement())
    return answered["position"], {
        relation: RelationDigest(rows, hashlib.sha256(f"{rows}:{upper}:{lower}".encode()).hexdigest())
        for relation, rows, upper, lower in answered["rows"]
    }


async def _replayed(access: BrokerAccess, to: int, archive: Archive | None = None) -> View:
    ledger = await JetStreamLedger.connect(access, role="reader", name="replay")
    parked = ParkedEvents(await BrokerConnection.open(access, "node", name="replay-parked"))
    try:
        await parked.refresh()
        vault = await JetStreamVault.open(access, bytes.fromhex(MASTER_KEY), name="replay-vault")
        view = View(Instance(open_view(None), keyring=Keyring.over(vault, asyncio.get_running_loop())))
        try:
            await catch_up(ledger, view, to, parked=parked.parked, archive=archive)
        finally:
            await vault.close()
        return view
    finally:
        await parked.close()
        await ledger.close()


def broken_promises(
    client: LedgerClient, access: BrokerAccess, work: Workload, poisoned: int, data: Path | None = None
) -> list[str]:
    """What is wrong with a node that is caught up and at rest; nothing, if all is well. `data` has its archive."""
    found: list[str] = list(work.moved)
    position, live = live_digests(client)
    archives = [None] if data is None else [None, Archive.of_node(data)]
    for archive in archives:
        replay = asyncio.run(_replayed(access, position, archive))
        try:
            differ = [relation for relation, digest in digests(replay.instance.con).items() if live[relation] != digest]
            by = "a replay" if archive is None else f"a replay with {archive.events} events of the archive"
            found += [f"{relation} is not what {by} of {position} events gives" for relation in differ]
        finally:
            replay.close()
        found += [f"the archive is damaged: {each}" for each in (archive.damaged if archive else ())]
    kept: dict[str, list[int]] = {}
    for entity_id, at in client.sql("SELECT entity_id, position FROM events WHERE type = 'knowledge.saved'")["rows"]:
        kept.setdefault(entity_id, []).append(at)
    at_all = {at for (at,) in client.sql("SELECT position FROM events")["rows"]}
    refused = client.sql("SELECT position, code FROM refused_events")["rows"]
    parked = {at for at, code in refused if code == "unfoldable"}
    for name, at in work.acknowledged.items():
        if at not in at_all | parked:
            found.append(f"lost: {name} was acknowledged at position {at}")
        elif name in kept and kept[name] != [at]:
            found.append(f"applied twice: {name} was acknowledged at {at} and stands at {kept[name]}")
    ((events, ids),) = client.sql("SELECT count(*), count(DISTINCT event_id) FROM events")["rows"]
    if events != ids:
        found.append(f"applied twice: {events} events have {ids} ids")
    if len(parked) != poisoned or len(parked) != len(refused):
        found.append(f"{poisoned} events should be refused, these are: {refused}")
    rated = dict(client.sql("SELECT id, helpful - 1 FROM knowledge WHERE helpful > 1")["rows"])  # 1 by being saved
    if rated != work.ratings:
        found.append(f"ratings count {rated}, given were {work.ratings}")
    numbers = [int(name.removeprefix("base-")) for name in work.acknowledged if name.startswith("base-")]
    for number in numbers[:2]:
        hits = client.search(word_of(number, "base"), top_k=3, record=False)["results"]
        if f"base-{number:05d}" not in [item["id"] for item in hits]:
            found.append(f"base-{number:05d} is not found any more")
    return found


async def vectors_are_as_fed_anew(access: BrokerAccess, directory: Path, position: int) -> bool:
    """Whether the vectors of a stopped node are those that feeding its whole view to an empty store gives."""
    view = await _replayed(access, position)
    with tempfile.TemporaryDirectory() as empty:
        kept, fresh = await VectorClient.start(Settings(str(directory))), await VectorClient.start(Settings(empty))
        try:
            applied = 0
            while applied < position:
                changes, upto = changes_after(view.instance.con.cursor(), DEFAULT_ORG, applied, 500)
                applied = await fresh.index(changes, after=applied, checkpoint=upto)
            applied = int((await kept.status())["applied"])
            while applied < position:  # what the end of the node had not made durable is fed again
                changes, upto = changes_after(view.instance.con.cursor(), DEFAULT_ORG, applied, 500)
                applied = await kept.index(changes, after=applied, checkpoint=upto)
            return await kept.digest() == await fresh.digest()
        finally:
            await kept.close()
            await fresh.close()
            view.close()

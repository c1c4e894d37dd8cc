"""A restored stream is the stream that was backed up: the same events, the same chain, the same views."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kledger.contract.errors import (
    BackupDamaged,
    BackupMismatch,
    BrokerMisconfigured,
    PayloadTooLarge,
    RestoreRefused,
    RestoreUnfinished,
)
from ledger.backup import restoring
from ledger.backup.checking import check_backup, intact
from ledger.backup.refill import comparing
from ledger.backup.restoring import restore
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import back_up
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.restored import RESTORED_TO, RESTORING
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import MAX_PAYLOAD_BYTES, RESTORE_PAYLOAD_BYTES
from ledger.broker.stream_setup import ensure_stream, stream_config
from ledger.event import StoredEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.store.jetstream import JetStreamLedger
from ledger.wire.publication import error_code
from tests.backup.kept import WAITS_TO_BE_KILLED, all_of, backed_up, history, kept_in, killed_after, odd_events
from tests.conftest import LoopThread, remove_streams, saved
from tests.integrity.logs import ListedLedger, signed_log
from tests.ledger.test_any_bytes import HEADERS, PLAIN, SUBJECTS, Message, read_again, written
from tests.patience import PATIENCE
from tests.projections.histories import histories, state, view_of

SLOWLY = (
    WAITS_TO_BE_KILLED
    + """
import asyncio, json, sys
from pathlib import Path
from ledger.broker.access import BrokerAccess
from ledger.backup.restoring import restore

given = json.loads(sys.stdin.readline())
access = BrokerAccess(given["url"], {"admin": given["password"]})
asyncio.run(restore(access, Path(given["directory"]), told))
"""
)


@pytest.fixture
async def target(embedded_server: EmbeddedServer) -> BrokerAccess:
    """A broker without a stream."""
    await remove_streams(embedded_server.access)
    return embedded_server.access


async def told_by(access: BrokerAccess) -> list[StoredEvent]:
    ledger = await JetStreamLedger.connect(access)
    events = await all_of(ledger)
    await ledger.close()
    return events


@pytest.fixture
async def admin_of(target: BrokerAccess) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open(target, "admin", name="test")
    yield connection
    await connection.close()


async def test_a_restored_stream_has_the_same_events_and_the_same_chain(target: BrokerAccess, tmp_path: Path) -> None:
    log = [*history(2_100), *odd_events(2_101)]
    backup = await backed_up(log, tmp_path / "b", segment_events=1_000)
    seen: list[tuple[int, int]] = []
    restored = await restore(target, tmp_path / "b", lambda done, total, _rate: seen.append((done, total)))
    assert (restored.position, restored.head, restored.root) == (2_106, backup.head, backup.root)
    assert seen[-1] == (2 * 2_106, 2 * 2_106)
    assert seen == sorted(seen)
    assert await told_by(target) == log
    ledger = await JetStreamLedger.connect(target)
    assert await ledger.head() == (2_106, log[-1].stored_ns)
    again = await back_up(ledger, tmp_path / "b")
    assert (again.added, again.head) == (0, backup.head)
    await ledger.append(saved("new"))
    assert (await back_up(ledger, tmp_path / "b")).added == 1
    assert check_backup(tmp_path / "b").problems == []
    await ledger.close()


async def test_what_a_publisher_says_in_any_bytes_can_be_restored(access: BrokerAccess, tmp_path: Path) -> None:
    messages: list[Message] = [(subject, None, b"{}") for subject in SUBJECTS]
    messages += [(PLAIN % b"a", headers, b"") for headers in HEADERS * 2]
    kept = await written(access, messages)
    log = await read_again(access, kept)
    log += [each._replace(position=each.position + kept) for each in log]  # each message id twice
    backup = await backed_up(log, tmp_path / "b")
    assert check_backup(tmp_path / "b").problems == []
    await remove_streams(access)
    restored = await restore(access, tmp_path / "b")
    assert (restored.position, restored.head) == (2 * kept, backup.head)
    assert await told_by(access) == log


async def test_a_batch_that_the_broker_refuses_is_sent_again_before_those_that_were_sent_ahead(
    target: BrokerAccess, tmp_path: Path
) -> None:
    """A broker refuses a batch with a message id that it knows: its events are sent one by one then."""
    log = history(4_200)
    for at in (1_500, 1_501, 3_999):
        log[at] = log[at]._replace(message_id=log[10].message_id)
    backup = await backed_up(log, tmp_path / "b", segment_events=2_500)
    restored = await restore(target, tmp_path / "b")
    assert (restored.position, restored.head) == (4_200, backup.head)
    assert await told_by(target) == log


def test_the_views_of_a_restored_stream_are_those_of_the_original(
    embedded_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    loop = LoopThread()

    async def there_and_back(log: Sequence[StoredEvent]) -> list[StoredEvent]:
        await remove_streams(embedded_server.access)
        directory = tmp_path_factory.mktemp("law") / "b"
        await backed_up(log, directory)
        await restore(embedded_server.access, directory)
        return await told_by(embedded_server.access)

    @settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(histories())
    def law(log: list[StoredEvent]) -> None:
        log = [event._replace(subject=event.subject.replace(" ", "_")) for event in log]  # no broker carries a space
        back = loop.run(there_and_back(log))
        assert back == log
        assert state(view_of(back)) == state(view_of(log))

    law()
    loop.close()


async def test_a_stream_that_holds_anything_is_refused_and_left_alone(access: BrokerAccess, tmp_path: Path) -> None:
    await backed_up(history(5), tmp_path / "b")
    ledger = await JetStreamLedger.connect(access)
    await ledger.append(saved("here first"))
    with pytest.raises(RestoreRefused, match="not empty"):
        await restore(access, tmp_path / "b")
    with pytest.raises(RestoreRefused, match="nothing is removed"):
        await restore(access, tmp_path / "b", start_over=True)
    assert (await ledger.head()).position == 1
    await ledger.close()


async def test_an_empty_stream_that_somebody_reads_is_refused(access: BrokerAccess, tmp_path: Path) -> None:
    await backed_up(history(5), tmp_path / "b")
    connection = await BrokerConnection.open(access, "reader", name="follower")
    config = {"name": "follower", "ack_policy": "none", "inactive_threshold": 60_000_000_000}
    await connection.api("CONSUMER.CREATE.LEDGER.follower", {"stream_name": "LEDGER", "config": config})
    with pytest.raises(RestoreRefused, match="something reads"):
        await restore(access, tmp_path / "b")
    await connection.api("CONSUMER.DELETE.LEDGER.follower")
    of_reactors = {"durable_name": "evolve-default", "ack_policy": "explicit"}  # which stays when its node is stopped
    made = await connection.api(
        "CONSUMER.CREATE.LEDGER.evolve-default", {"stream_name": "LEDGER", "config": of_reactors}
    )
    assert "error" not in made
    await connection.close()
    assert (await restore(access, tmp_path / "b")).position == 5


async def test_a_damaged_backup_brings_nothing_back(
    target: BrokerAccess, admin_of: BrokerConnection, tmp_path: Path
) -> None:
    await backed_up(history(25), tmp_path / "b")
    last = sorted((tmp_path / "b" / "events").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:-9])
    with pytest.raises(BackupDamaged, match=last.name):
        await restore(target, tmp_path / "b")
    assert not (await admin_of.api("STREAM.NAMES")).get("streams")


async def test_a_file_that_is_replaced_after_the_check_is_not_brought_back(
    target: BrokerAccess, tmp_path: Path
) -> None:
    await backed_up(history(25), tmp_path / "one")
    await backed_up([event._replace(body=b"{}") for event in history(25)], tmp_path / "other")
    manifest = intact(tmp_path / "one")
    file = manifest.segments[-1].file
    shutil.copyfile(tmp_path / "other" / file, tmp_path / "one" / file)
    with pytest.raises(BackupDamaged, match="another one"):
        await restore(target, tmp_path / "one", manifest=manifest)
    with pytest.raises(RestoreUnfinished):
        await told_by(target)


async def test_what_is_read_waits_for_its_comparison(
    target: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "_LISTS_TO_COMPARE", 1)
    monkeypatch.setattr(comparing, "_READ_EVENTS", 3)
    events = history(60)
    await backed_up(events, tmp_path, segment_events=7)
    assert (await restore(target, tmp_path)).position == 60
    assert await told_by(target) == events


async def test_a_restore_says_who_signed_and_may_insist_on_it(target: BrokerAccess, tmp_path: Path) -> None:
    events, files = signed_log(tmp_path / "data", 12, 5)
    await back_up(ListedLedger(events), tmp_path / "b", signed=SignedLog.of_node(tmp_path / "data"))
    with pytest.raises(BackupMismatch, match=r"signed with the key .*after kledger key rotate"):
        await restore(target, tmp_path / "b", key=SigningKeys.open(tmp_path / "other").current())
    key = SigningKeys.open(files.keys).current()
    signed = (await restore(target, tmp_path / "b", key=key)).signed
    assert signed
    assert (signed["position"], signed["key"]) == (12, key.id)


async def test_a_killed_restore_is_used_by_nobody_and_goes_on_when_it_is_run_again(
    target: BrokerAccess, tmp_path: Path
) -> None:
    log = history(400)
    await backed_up(log, tmp_path / "b", segment_events=20)
    given = {"url": target.url, "password": target.passwords["admin"], "directory": str(tmp_path / "b")}
    await killed_after(7, SLOWLY, given)
    with pytest.raises(RestoreUnfinished, match="half restored"):
        await JetStreamLedger.connect(target)
    with pytest.raises(RestoreUnfinished):
        await ensure_stream(target)
    await backed_up(history(10), tmp_path / "other")
    with pytest.raises(RestoreRefused, match="another backup"):
        await restore(target, tmp_path / "other")
    restored = await restore(target, tmp_path / "b")
    assert 20 <= restored.continued_from < 400
    assert await told_by(target) == log


async def test_a_restore_that_is_run_again_though_it_came_to_its_end_compares_again_and_writes_no_event(
    target: BrokerAccess, tmp_path: Path
) -> None:
    """As where it was killed behind its last event, so that nobody was told that all of it is there."""
    log = history(40)
    await backed_up(log, tmp_path / "b", segment_events=20)
    first = await restore(target, tmp_path / "b")
    again = await restore(target, tmp_path / "b", data=tmp_path / "data")
    assert (again.continued_from, again.head) == (40, first.head)
    assert NotaryFiles.of(tmp_path / "data").checkpoints.exists(), "what was still to be done is done"
    assert await told_by(target) == log
    with pytest.raises(RestoreRefused, match="has come to its end before, at position 40: start the node"):
        await restore(target, tmp_path / "b", goes_on=False)


async def test_a_restore_that_came_to_its_end_does_not_go_on_with_another_backup_nor_once_something_was_said(
    target: BrokerAccess, tmp_path: Path
) -> None:
    await backed_up(history(40), tmp_path / "b", segment_events=20)
    other = history(40)
    await backed_up([*other[:-1], other[-1]._replace(body=b"{}")], tmp_path / "other", segment_events=20)
    await restore(target, tmp_path / "b")
    with pytest.raises(RestoreRefused, match="has come to its end before"):
        await restore(target, tmp_path / "other")
    ledger = await JetStreamLedger.connect(target)
    await ledger.append(saved("later"))
    await ledger.close()
    with pytest.raises(RestoreRefused, match="has come to its end before"):
        await restore(target, tmp_path / "b")


async def test_a_restore_that_goes_on_behind_its_end_brings_no_key_and_no_words_back(
    target: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have removed them since."""
    await backed_up(history(40), tmp_path / "b", segment_events=20)
    await restore(target, tmp_path / "b")

    async def fails(*_: object) -> int:
        raise AssertionError("it was done")

    for name in ("restore_keys", "restore_sessions"):
        monkeypatch.setattr(restoring, name, fails)
    assert (await restore(target, tmp_path / "b")).continued_from == 40


async def test_a_restore_killed_as_it_compares_is_compared_again(target: BrokerAccess, tmp_path: Path) -> None:
    log = history(40)
    await backed_up(log, tmp_path / "b", segment_events=20)
    given = {"url": target.url, "password": target.passwords["admin"], "directory": str(tmp_path / "b")}
    await killed_after(2, SLOWLY, given)
    with pytest.raises(RestoreUnfinished):
        await JetStreamLedger.connect(target)
    assert (await restore(target, tmp_path / "b", start_over=True)).continued_from == 0
    assert await told_by(target) == log


async def test_who_writes_between_is_noticed(target: BrokerAccess, admin_of: BrokerConnection, tmp_path: Path) -> None:
    await backed_up(history(30), tmp_path / "b", segment_events=10)
    writer = await BrokerConnection.open(target, "writer", name="writer")

    def write(done: int, _total: int, _rate: float) -> None:
        if done == 10:
            asked.append(loop.create_task(writer.request("ledger.default.knowledge.x.saved.user.eve", b"{}")))

    loop = asyncio.get_running_loop()
    asked: list[asyncio.Task[object]] = []
    with pytest.raises(RestoreRefused, match="--start-over"):
        await restore(target, tmp_path / "b", write)
    await asyncio.gather(*asked)
    await writer.close()
    with pytest.raises(RestoreUnfinished):
        await JetStreamLedger.connect(target)
    assert (await restore(target, tmp_path / "b", start_over=True)).position == 30


@pytest.fixture
async def brings_back(tmp_path: Path) -> AsyncIterator[tuple[BrokerAccess, Path]]:
    """A broker that cannot move a removed stream away, as while an earlier one is still being deleted."""
    server = EmbeddedServer(tmp_path / "broker")
    access = await server.start()
    await ensure_stream(access)
    (streams,) = (tmp_path / "broker").rglob("streams")
    in_the_way = streams / ".LEDGER"
    in_the_way.mkdir()
    (in_the_way / "file").touch()
    yield access, in_the_way
    await server.stop()


async def test_events_of_a_removed_stream_that_the_broker_brings_back_are_no_part_of_a_restore(
    brings_back: tuple[BrokerAccess, Path], tmp_path: Path
) -> None:
    target, in_the_way = brings_back
    await backed_up(history(3), tmp_path / "b")
    ledger = await JetStreamLedger.connect(target)
    await ledger.append(saved("of the removed stream"))
    await ledger.close()
    admin = await BrokerConnection.open(target, "admin", name="test")
    assert not error_code(await admin.api("STREAM.DELETE.LEDGER"))
    with pytest.raises(RestoreRefused, match=r"takes up 1 events of an earlier stream.*--start-over"):
        await restore(target, tmp_path / "b")
    starting_over = asyncio.create_task(restore(target, tmp_path / "b", start_over=True))
    while not starting_over.done() and not error_code(await admin.api("STREAM.INFO.LEDGER")):
        pass  # the stream is not removed yet
    shutil.rmtree(in_the_way)
    assert (await starting_over).position == 3
    assert [event.message_id for event in await told_by(target)] == ["id-0", "id-1", "id-2"]
    await admin.close()


FORGED = {"Ledger-Stored-Ns": "5", "Ledger-Message-Id": "Zm9yZ2Vk", "Nats-Msg-Id": "mine"}


async def test_a_writer_who_sends_the_headers_of_a_restore_changes_neither_time_nor_id(
    target: BrokerAccess, tmp_path: Path
) -> None:
    subject = "ledger.default.knowledge.x.saved.user.eve"
    await ensure_stream(target)
    writer = await BrokerConnection.open(target, "writer", name="eve")
    assert not error_code(json.loads((await writer.request(subject, b"{}", FORGED)).data))
    (fresh,) = await told_by(target)
    assert fresh.stored_ns > 1_700_000_000_000_000_000
    assert fresh.message_id == "mine"

    await remove_streams(target)
    await backed_up(history(3), tmp_path / "b")
    await restore(target, tmp_path / "b")
    await writer.request(subject, b"{}", FORGED)
    *_, last = await told_by(target)
    assert (last.position, last.message_id) == (4, "mine")
    assert last.stored_ns > fresh.stored_ns
    ledger = await JetStreamLedger.connect(target)
    assert (await ledger.head()).stored_ns == last.stored_ns
    await ledger.close()
    await writer.close()


@pytest.mark.parametrize("role", ["writer", "reader", "node"])
async def test_no_daily_user_may_say_what_was_restored(target: BrokerAccess, role: str) -> None:
    await ensure_stream(target)
    connection = await BrokerConnection.open(target, role, name="eve")  # type: ignore[arg-type]  # each is a role
    for mark in (RESTORED_TO, RESTORING):
        with pytest.raises(BrokerMisconfigured, match="may not do this"):
            await connection.api("STREAM.UPDATE.LEDGER", {**stream_config(), "metadata": {mark: "9"}}, timeout=PATIENCE)
    await connection.close()


async def test_events_that_expected_a_position_are_restored_without_expecting_anything(
    access: BrokerAccess, tmp_path: Path
) -> None:
    ledger = await JetStreamLedger.connect(access)
    first = await ledger.append(saved("k", expects=0))
    await ledger.append_many([saved("other"), saved("k", content="二", expects=first.position)])
    log = await all_of(ledger)
    await back_up(ledger, tmp_path / "b")
    await ledger.close()
    await remove_streams(access)
    await restore(access, tmp_path / "b")
    assert await told_by(access) == log
    ledger = await JetStreamLedger.connect(access)
    assert await ledger.last_position_of("default", "knowledge", "k") == 3
    assert (await ledger.append(saved("k", content="三", expects=3))).position == 4
    await ledger.close()


@pytest.mark.parametrize("published", [b"id-1", b"\xff" * 14_900, "é ".encode() * 14_900])
async def test_an_event_that_fills_the_limit_needs_a_broker_that_takes_the_headers_too(
    target: BrokerAccess, tmp_path: Path, published: bytes
) -> None:
    full = history(3)
    body = b"x" * (MAX_PAYLOAD_BYTES - len(b"NATS/1.0\r\nNats-Msg-Id: %s\r\n\r\n" % published))
    full[1] = full[1]._replace(body=body, message_id=published.decode("utf-8", "replace").strip())
    await backed_up(full, tmp_path / "b")
    with pytest.raises(PayloadTooLarge, match="max_payload"):
        await restore(target, tmp_path / "b")
    server = EmbeddedServer(tmp_path / "broker", max_payload=RESTORE_PAYLOAD_BYTES)
    access = await server.start()
    await restore(access, tmp_path / "b")
    await server.stop()
    server = EmbeddedServer(tmp_path / "broker")  # as a node starts it
    assert await told_by(await server.start()) == full
    await server.stop()


async def test_settings_of_the_restored_stream_are_those_of_every_ledger(target: BrokerAccess, tmp_path: Path) -> None:
    await backed_up(history(3), tmp_path / "b")
    proof = await restore(target, tmp_path / "b")
    assert json.dumps(asdict(proof))
    await ensure_stream(target)
    assert kept_in(tmp_path / "b") == await told_by(target)

"""The streams on a server of somebody's own: one that would lose, change or refuse what it is given is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kledger.contract.errors import BrokerMisconfigured
from ledger.broker import lease
from ledger.broker.access import KEYS_STREAM, SESSIONS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_settings import wrong_settings
from ledger.broker.stream_setup import ensure_stream, stream_config
from ledger.event import JsonObject
from ledger.privacy import vault_jetstream
from ledger.sessions import jetstream as sessions
from ledger.store import parked
from ledger.wire.publication import error_code
from producers.node.start.beside import beside
from projections.vectors.embedding import kept_jetstream

STREAMS: dict[str, tuple[Callable[[BrokerAccess], Awaitable[None]], JsonObject]] = {
    "the log": (ensure_stream, stream_config()),
    "keys of persons": (vault_jetstream.ensure_keys_bucket, vault_jetstream.bucket_settings()),
    "words of sessions": (sessions.ensure_sessions_stream, sessions.stream_settings()),
    "decisions": (parked.ensure_parked_stream, parked.stream_settings()),
    "embeddings": (kept_jetstream.ensure_embeddings_stream, kept_jetstream.stream_settings()),
    "leases": (lease.ensure_leases, lease.bucket_settings()),
}
each_stream = pytest.mark.parametrize("stream", STREAMS)


@each_stream
async def test_no_stream_is_taken_that_lets_go_of_what_it_has(
    access: BrokerAccess, admin: BrokerConnection, stream: str
) -> None:
    ensure, settings = STREAMS[stream]
    await ensure(access)
    await ensure(access)  # as the node makes it, it is taken
    info = await admin.api(f"STREAM.INFO.{settings['name']}")
    aging = {**info["config"], "max_age": 86_400_000_000_000}
    assert not error_code(await admin.api(f"STREAM.UPDATE.{settings['name']}", aging))
    with pytest.raises(BrokerMisconfigured, match=f"{settings['name']} is not one that .* max_age is 86400000000000"):
        await ensure(access)


@each_stream
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_age", 86_400_000_000_000),
        ("max_bytes", 1024 * 1024),
        ("max_msgs", 1_000_000),
        ("max_msgs_per_subject", 5),
        ("max_consumers", 5),
        ("max_msg_size", 1_000),
        ("first_seq", 100),
        ("allow_msg_ttl", True),
        ("allow_msg_counter", True),
        ("allow_msg_schedules", True),
        ("no_ack", True),
        ("sealed", True),
        ("mirror", {"name": "OTHER"}),
        ("sources", [{"name": "OTHER"}]),
        ("subject_transform", {"src": "ledger.>", "dest": "other.>"}),
        ("consumer_limits", {"inactive_threshold": 1_000_000_000}),
        ("persist_mode", "async"),
        ("storage", "memory"),
        ("retention", "interest"),
        ("subjects", ["elsewhere.>"]),
    ],
)
def test_what_loses_changes_or_refuses_what_a_stream_is_given_is_named(stream: str, setting: str, value: Any) -> None:
    _, settings = STREAMS[stream]
    (wrong,) = wrong_settings({**settings, setting: value}, settings)
    assert wrong.startswith(f"{setting} is ")


@each_stream
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("description", "ours"),
        ("compression", "s2"),
        ("placement", {"tags": ["near"]}),
        ("republish", {"src": ">", "dest": "copies.>"}),
        ("max_msg_size", 2 * 1024 * 1024),
        ("duplicate_window", 300_000_000_000),
        ("consumer_limits", {}),
        ("first_seq", 1),
        ("num_replicas", 3),
        ("metadata", {"of": "us"}),
    ],
)
def test_what_loses_nothing_is_left_to_whoever_has_the_server(stream: str, setting: str, value: Any) -> None:
    _, settings = STREAMS[stream]
    assert wrong_settings({**settings, setting: value}, settings) == []


async def test_what_becomes_of_the_streams_beside_the_log_while_a_node_runs_is_told(
    access: BrokerAccess, admin: BrokerConnection
) -> None:
    await vault_jetstream.ensure_keys_bucket(access)
    await sessions.ensure_sessions_stream(access)
    node = await BrokerConnection.open(access, "node")
    now = [0.0]
    told = beside(node, lambda: now[0])
    assert await told.reasons() == []
    for name in (KEYS_STREAM, SESSIONS_STREAM):
        info = await admin.api(f"STREAM.INFO.{name}")
        aging = {**info["config"], "max_age": 86_400_000_000_000}
        assert not error_code(await admin.api(f"STREAM.UPDATE.{name}", aging))
        assert await told.reasons() == []  # a broker is not asked each time that health is
        now[0] += 5
        (why,) = await told.reasons()
        assert f"the stream {name} is not one that keeps" in why
        assert "max_age is 86400000000000 and must be 0" in why
        await admin.api(f"STREAM.DELETE.{name}")
        now[0] += 5
        (why,) = await told.reasons()
        assert f"the stream {name}, which keeps" in why
        assert "is gone" in why
        assert not error_code(await admin.api(f"STREAM.CREATE.{name}", info["config"]))
        now[0] += 5
        assert await told.reasons() == []
    await node.close()

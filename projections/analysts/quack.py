"""Read-only access to the live view over Quack, DuckDB's own protocol, from any DuckDB.

A Quack server offers the whole SQL surface of its instance, writing included. Two things on the server restrict it to
reading. The authorization function of `prepare` asks `statement_guard` for every statement. And the instance itself is
locked down (no host files, no network through SQL, no settings). After `prepare` the node can still `register` Arrow
data, run transactions, change the schema, make temporary tables, spill and checkpoint; it can no longer SET anything,
ATTACH, COPY, EXPORT, read a file, name a Python variable in SQL without registering it, or ask `duckdb_extensions()` on
that instance, and it cannot undo this. So: create the schema with its macros, apply every setting, `prepare`, then
`serve`.

A session sees the whole view, every scope. It authenticates with the server's own token or, where `admits` is given,
with a token that this accepts. `admits` is called again at every statement, so that revoking a token ends its sessions.
"""

from __future__ import annotations

import secrets
import shutil
import socket
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import duckdb
from duckdb.func import FunctionNullHandling
from duckdb.sqltypes import BOOLEAN, VARCHAR

from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import IllegalQuery, NodeMisconfigured, ServiceFailed
from projections.analysts.memory_watch import analyst_limits
from projections.analysts.quack_sessions import Admits, Sessions
from projections.analysts.sql import REFUSAL
from projections.analysts.statement_guard import guard_later
from projections.engine.threads.own_threads import within

_EXTENSIONS = ("httpfs", "quack")
_KNOWN = "kledger_known"
_ADMIT = "kledger_admit"
STOPS_WITHIN_SECONDS = 8.0
_called: list[object] = []
"""What DuckDB calls by its address. A session that outlives the connection of its instance, which has the only other
reference, goes on to call it: so it stays as long as the process."""
_checked: dict[Path, tuple[int, ...]] = {}
"""The extension files whose signatures DuckDB has checked in this process, each as it was then."""


@dataclass(frozen=True)
class QuackAddress:
    """Address and token of a Quack server. `token` is a secret: it gives access to the whole view."""

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def uri(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"quack:{host}:{self.port}"

    def attach_statement(self) -> str:
        """The statement an analyst runs in their own DuckDB, after `INSTALL quack; LOAD quack`."""
        return f"ATTACH {_literal(self.uri)} AS kl (TOKEN {_literal(self.token)})"


def load_extensions(connection: duckdb.DuckDBPyConnection) -> None:
    """Load Quack, and httpfs on which it depends, from the installed wheels; nothing is downloaded.

    DuckDB checks the signature of both files, except in an instance that was opened for unsigned extensions, which is
    done once they are checked (`are_checked`). Raises ServiceFailed when a wheel is missing or of another version.
    """
    files = [_extension_file(name) for name in _EXTENSIONS]
    seen = {file: _version_of(file) for file in files}
    signed = connection.execute("SELECT current_setting('allow_unsigned_extensions')").fetchone() == (False,)
    for file in files:
        connection.execute(f"LOAD {_literal(str(file))}")
    if signed:
        _checked.update(seen)


def are_checked() -> bool:
    """Whether DuckDB has checked the signatures of both files in this process, and they are the same files still.

    Then another instance need not: the check takes a quarter of a second of the processor. Raises ServiceFailed.
    """
    return all(_checked.get(file) == _version_of(file) for file in map(_extension_file, _EXTENSIONS))


def _version_of(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def prepare(connection: duckdb.DuckDBPyConnection, admits: Admits | None = None) -> None:
    """Lock the instance of `connection` down to reading through HTTP and Quack; once for each instance.

    `admits` is called for each token, from a thread of the server; None accepts only the server's own token.

    The ledger's macros have to exist already (analysts cannot use later ones), and every setting has to be made: none
    can be changed afterwards.
    """
    guard = guard_later(connection)
    sessions = Sessions(admits or _none_but_the_servers)
    load_extensions(connection)
    # httpfs copies AWS keys out of the node's environment into settings when it loads.
    for (name,) in connection.execute(
        """
        SELECT name FROM duckdb_settings()
        WHERE starts_with(name, 's3_') AND input_type = 'VARCHAR' AND value <> ''
          AND (contains(name, 'key') OR contains(name, 'token'))
        """
    ).fetchall():
        connection.execute(f"SET GLOBAL {name} = ''")

    _bound_spills(connection)

    def refusal(statement: str) -> str | None:
        return guard().refusal(statement)

    def admit(session: str, statement: str) -> str | None:
        """The SQL to run in place of `statement`; None refuses without a reason, an exception does too."""
        if not sessions.may_go_on(session):
            return None
        # The rows of a client's INSERT are a message of their own, authorised by a made-up INSERT statement. For it any
        # returned text means yes, so an INSERT gets None, a refusal without a reason: "Authorization failed".
        if statement.lstrip()[:6].upper() == "INSERT":
            return None
        reason = guard().refusal(statement)
        return statement if reason is None else f"SELECT error({_literal(reason)})"

    known = sessions.open
    _called.extend((admit, refusal, known))
    for name, function, takes in ((_ADMIT, admit, 2), (REFUSAL, refusal, 1)):
        connection.create_function(
            name,
            function,
            [VARCHAR] * takes,
            VARCHAR,
            null_handling=FunctionNullHandling.SPECIAL,
            side_effects=True,
        )
    connection.create_function(
        _KNOWN,
        known,
        [VARCHAR] * 3,
        BOOLEAN,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,
    )
    for setting in (
        "allow_unsigned_extensions = false",
        f"quack_authentication_function = '{_KNOWN}'",
        f"quack_authorization_function = '{_ADMIT}'",
        "allow_persistent_secrets = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "enable_external_access = false",
        "lock_configuration = true",  # the last one, as no setting can be changed after it
    ):
        connection.execute(f"SET GLOBAL {setting}")


def _bound_spills(connection: duckdb.DuckDBPyConnection) -> None:
    """Bound what queries put on the disk beside the view: by itself DuckDB takes nine tenths of what is free there."""
    row = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    if row is None or not row[0]:
        return  # a view in memory spills nothing
    free = shutil.disk_usage(Path(row[0]).parent).free
    connection.execute(f"SET GLOBAL max_temp_directory_size = '{min(analyst_limits().disk, free // 2)} bytes'")


def serve(
    connection: duckdb.DuckDBPyConnection,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
) -> QuackAddress:
    """Start serving the prepared instance of `connection` until `stop`.

    Port 0 takes a free one; without a token a random one is made. Only loopback: the protocol is plain
    HTTP, so other machines need a TLS proxy. Raises IllegalQuery for another host, ServiceFailed when the instance is
    not prepared, NodeMisconfigured when the port is taken.
    """
    if host not in LOOPBACK:
        raise IllegalQuery(
            f"Quack is served on loopback only, not on {host}: put a TLS proxy in front for other machines",
            host=host,
        )
    locked = connection.execute(
        # Settings alone: to list the functions takes many times as long, and `prepare` sets this one after making it.
        """
        SELECT count(*) FROM duckdb_settings() WHERE (name, value) IN (
            ('lock_configuration', 'true'), ('enable_external_access', 'false'),
            ('quack_authorization_function', ?))
        """,
        [_ADMIT],
    ).fetchone()
    if locked is None or locked[0] != 3:
        raise ServiceFailed("this view is not closed to writing: call prepare(connection) before serve()")
    address = QuackAddress(host, _free_port(host, port), token or secrets.token_urlsafe(24))
    try:
        connection.execute("CALL quack_serve(?, token := ?)", [address.uri, address.token]).fetchall()
    except duckdb.Error as error:
        raise ServiceFailed(f"cannot serve Quack on {host}:{address.port}: {error}", port=address.port) from error
    return address


def stop(connection: duckdb.DuckDBPyConnection, address: QuackAddress, seconds: float = STOPS_WITHIN_SECONDS) -> bool:
    """Stop serving; the port is free for another instance when this returns True. Idempotent.

    Call it before closing the instance or ending the process. Attached clients get an error at their next
    query and attach again. A running query runs to its end, as nothing can interrupt it; False means that one still
    runs after so many seconds and is not waited for.
    """

    def end() -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("CALL quack_stop(?)", [address.uri]).fetchall()

    return within(seconds, end, "quack-stop")


def _extension_file(name: str) -> Path:
    version = duckdb.__version__
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is not None and spec.origin is not None:
        file = Path(spec.origin).parent / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
        if file.is_file():
            return file
    raise ServiceFailed(
        f"DuckDB {version} has no {name} extension here: pip install duckdb-extension-{name}=={version}",
        extension=name,
    )


def _free_port(host: str, wanted: int) -> int:
    """`wanted` if nobody listens there, any free port for 0.

    Quack itself does not notice a taken port: it shares it (SO_REUSEPORT), and clients would reach either.
    """
    try:
        return _bound(host, wanted, socket.SO_REUSEADDR)  # closed connections may still be in TIME_WAIT
    except OSError as error:
        # A running query keeps its connection, but not the port: Quack's own sockets share it.
        with suppress(OSError):
            if wanted and not _listens(host, wanted):
                return _bound(host, wanted, socket.SO_REUSEPORT)
        raise NodeMisconfigured(
            f"the node cannot serve Quack on {host}:{wanted} ({error.strerror}): choose another port with "
            "--quack PORT, or leave it out for a free one",
            port=wanted,
        ) from error


def _bound(host: str, wanted: int, shared: int) -> int:
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, shared, 1)
        probe.bind((host, wanted))
        port: int = probe.getsockname()[1]
        return port


def _listens(host: str, port: int) -> bool:
    with socket.socket(_family(host)) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _none_but_the_servers(_token: str, is_the_servers: bool) -> bool:
    return is_the_servers


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

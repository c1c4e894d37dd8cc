"""How does an analyst read the live view? Over Quack, DuckDB's own protocol, from any DuckDB, read-only.

A Quack server offers the whole SQL surface of its instance, writing included; what keeps it to reading
stands on the server: the authorization function of `prepare` asks `statement_guard` for every statement.
Behind it the instance itself is closed (no host files, no network through SQL, no settings). After
`prepare` the node can still `register` Arrow data, run transactions, change the schema, make temporary
tables, spill and checkpoint; it can no longer SET anything, ATTACH, COPY, EXPORT, read a file, name a Python
variable in SQL without registering it, or ask `duckdb_extensions()` on that instance, and it cannot undo
this. So: create the schema with its macros, apply every setting, `prepare`, then `serve`.

Whoever attaches sees the whole view, every scope. With a token of the server's own, or, where `admits` is given,
with whatever that says of a token: it is asked again at every statement, so that a token which is taken back ends
the sessions that it opened.
"""

from __future__ import annotations

import secrets
import socket
import threading
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling
from duckdb.sqltypes import BOOLEAN, VARCHAR

from ledger.errors import IllegalQuery, ServiceFailed
from projections.quack_sessions import Admits, Sessions
from projections.statement_guard import build_guard

_KNOWN = "kledger_known"
_ADMIT = "kledger_admit"
_REFUSAL = "kledger_refusal"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class QuackAddress:
    """Where the view is served. `token` is a secret: it opens all of it."""

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def uri(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"quack:{host}:{self.port}"

    def attach_statement(self, alias: str = "kl") -> str:
        """The statement an analyst runs in their own DuckDB, after `INSTALL quack; LOAD quack`."""
        name = '"' + alias.replace('"', '""') + '"' if not alias.isidentifier() else alias
        return f"ATTACH {_literal(self.uri)} AS {name} (TOKEN {_literal(self.token)})"


def load_extensions(connection: duckdb.DuckDBPyConnection) -> None:
    """Load Quack, and httpfs on which it leans, from the installed wheels; nothing is downloaded.

    DuckDB checks the signature of both files. Raises ServiceFailed when a wheel is missing or of another
    version.
    """
    for name in ("httpfs", "quack"):
        connection.execute(f"LOAD {_literal(str(_extension_file(name)))}")


def prepare(connection: duckdb.DuckDBPyConnection, admits: Admits | None = None) -> None:
    """Close the instance of `connection` to everything but reading through the doors; once an instance.

    `admits` is asked for each token, from a thread of the server; None leaves it at the server's own token.

    Needs the ledger's macros to exist already (later ones are refused to analysts) and every setting to be
    made: none can change afterwards.
    """
    guard = build_guard(connection)
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

    def refusal(statement: str) -> str | None:
        return guard.refusal(statement)

    def admit(session: str, statement: str) -> str | None:
        """The SQL to run in place of `statement`; None refuses without a reason, an exception does too."""
        if not sessions.may_go_on(session):
            return None
        # Rows of a client's INSERT come as a message of their own and ask with a made-up INSERT. For them any
        # text means yes, so an INSERT gets the bare refusal: "Authorization failed".
        if statement.lstrip()[:6].upper() == "INSERT":
            return None
        reason = guard.refusal(statement)
        return statement if reason is None else f"SELECT error({_literal(reason)})"

    for name, function, takes in ((_ADMIT, admit, 2), (_REFUSAL, refusal, 1)):
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
        sessions.open,
        [VARCHAR] * 3,
        BOOLEAN,
        null_handling=FunctionNullHandling.SPECIAL,
        side_effects=True,
    )
    for setting in (
        f"quack_authentication_function = '{_KNOWN}'",
        f"quack_authorization_function = '{_ADMIT}'",
        "allow_persistent_secrets = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "allow_community_extensions = false",
        "enable_external_access = false",
        "lock_configuration = true",  # the last one, for nothing can be set after it
    ):
        connection.execute(f"SET GLOBAL {setting}")


def serve(
    connection: duckdb.DuckDBPyConnection,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
) -> QuackAddress:
    """Start serving the prepared instance of `connection` until `stop`.

    Port 0 takes a free one; without a token a random one is made. Only loopback: the protocol is plain
    HTTP, so other machines come through a TLS proxy of yours. Raises IllegalQuery for another host,
    ServiceFailed when the instance is not prepared or the port is taken.
    """
    if host not in _LOOPBACK:
        raise IllegalQuery(
            f"Quack is served on loopback only, not on {host}: put a TLS proxy in front for other machines",
            host=host,
        )
    locked = connection.execute(
        "SELECT current_setting('lock_configuration') AND NOT current_setting('enable_external_access')"
        f" AND EXISTS (FROM duckdb_functions() WHERE function_name = '{_ADMIT}')"
    ).fetchone()
    if locked is None or not locked[0]:
        raise ServiceFailed("this view is not closed to writing: call prepare(connection) before serve()")
    address = QuackAddress(host, _free_port(host, port), token or secrets.token_urlsafe(24))
    try:
        connection.execute("CALL quack_serve(?, token := ?)", [address.uri, address.token]).fetchall()
    except duckdb.Error as error:
        raise ServiceFailed(f"cannot serve Quack on {host}:{address.port}: {error}", port=address.port) from error
    return address


def stop(connection: duckdb.DuckDBPyConnection, address: QuackAddress) -> None:
    """Stop serving; the port is free for another instance when this returns. Stopping twice is no error.

    Call it before closing the instance or ending the process. Attached clients get an error at their next
    query and attach again. A query that is running then runs to its end: nothing can interrupt it.
    """
    connection.execute("CALL quack_stop(?)", [address.uri]).fetchall()


def sql_read_only(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: list[object] | dict[str, object] | None = None,
    *,
    timeout_seconds: float = 30.0,
    row_limit: int = 100_000,
) -> pa.Table:
    """The answer to one SELECT on the prepared instance of `connection`, under the same guard as Quack.

    Runs on a cursor of its own in a read-only transaction; safe to call from any thread. Raises
    IllegalQuery when the guard refuses, DuckDB reports an error, the time is over, or more than `row_limit`
    rows come back.
    """
    cursor = connection.cursor()
    out_of_time = threading.Event()

    def interrupt() -> None:
        out_of_time.set()
        cursor.interrupt()

    watch = threading.Timer(timeout_seconds, interrupt)
    watch.daemon = True
    try:
        answer = cursor.execute(f"SELECT {_REFUSAL}(?::VARCHAR)", [statement]).fetchone()
        reason = answer[0] if answer else None
        if reason is not None:
            raise IllegalQuery(reason)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        watch.start()
        cursor.execute(statement, parameters)
        return _rows(cursor.to_arrow_reader(10_000), row_limit)
    except RuntimeError as error:  # the binding's only complaint of this type: a lone surrogate
        raise IllegalQuery("the statement or a parameter is not Unicode text") from error
    except (duckdb.Error, OSError) as error:
        # OSError is how Arrow passes on what DuckDB reports in the middle of an answer.
        if out_of_time.is_set():
            raise IllegalQuery(
                f"the query took longer than {timeout_seconds:g} seconds and was stopped: narrow it, attach "
                "over Quack, or run it on a snapshot file"
            ) from error
        raise IllegalQuery(f"DuckDB refuses the query: {error}") from error
    finally:
        watch.cancel()
        cursor.close()  # rolls the transaction back


def _rows(reader: pa.RecordBatchReader, row_limit: int) -> pa.Table:
    batches = []
    count = 0
    for batch in reader:
        count += batch.num_rows
        if count > row_limit:
            raise IllegalQuery(
                f"more than {row_limit} rows came back: add a LIMIT, or attach over Quack, which streams"
            )
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)


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
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed connections may linger there
        try:
            probe.bind((host, wanted))
        except OSError as error:
            raise ServiceFailed(
                f"cannot serve Quack on {host}:{wanted}, the port is not free: choose another ({error})",
                port=wanted,
            ) from error
        port: int = probe.getsockname()[1]
        return port


def _none_but_the_servers(_token: str, is_the_servers: bool) -> bool:
    return is_the_servers


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

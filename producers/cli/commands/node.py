"""The command that runs a node: `kledger up`. It loads nothing that draws in a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from kledger.contract.errors import LedgerError
from kledger.contract.words import NodeRole
from ledger.runtime.gc_tuning import loading
from ledger.runtime.numpy_threads import compute_on_one_thread
from ledger.runtime.plain_structlog import load_structlog
from producers.cli.answer import FAILED
from producers.cli.as_command import NODE
from producers.cli.encoding import plain
from producers.cli.variables import idle


def up(
    data: Annotated[
        Path | None, typer.Option(envvar="KLEDGER_DATA", help="Where the node keeps all it has.  [./.kledger]")
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(envvar="KLEDGER_HTTP", metavar="HOST:PORT", help="Where to serve HTTP.  [127.0.0.1:8420]"),
    ] = None,
    nats: Annotated[
        str | None,
        typer.Option(
            envvar="KLEDGER_NATS",
            metavar="URL",
            help="A NATS server with JetStream, or a cluster's with commas; else one is started.",
        ),
    ] = None,
    qdrant: Annotated[
        str | None,
        typer.Option(envvar="KLEDGER_QDRANT", metavar="URL", help="A Qdrant server; else the engine runs inside."),
    ] = None,
    quack: Annotated[
        str | None,
        typer.Option(
            envvar="KLEDGER_QUACK", metavar="PORT", help="Where analysts attach; off for nowhere.  [a free port]"
        ),
    ] = None,
    checkpoint_hook: Annotated[
        str | None,
        typer.Option(
            envvar="KLEDGER_CHECKPOINT_HOOK",
            metavar="COMMAND",
            help="A command that gets each signed checkpoint on its standard input.",
        ),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            envvar="KLEDGER_REPLICAS", min=1, max=5, help="Copies of the log in the cluster that --nats names.  [1]"
        ),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(
            envvar="KLEDGER_ROLES",
            help="What this node does: api, and with it vectors, reactors.  [api,vectors,reactors]",
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(help="From which level on the node writes its log, on stderr.  [KLEDGER_LOG_LEVEL, else info]"),
    ] = None,
) -> None:
    """Run a node until stopped (Ctrl-C); prints one line on stdout, with its addresses, when it is ready.

    Example: kledger up --data ./ledger-data --http 127.0.0.1:8420
    """
    from ledger.runtime.default_data import DATA
    from producers.node.address import HTTP, check_addresses, check_free

    for line in idle(os.environ):
        sys.stderr.write(f"warning: {plain(line)}\n")
    try:
        check_addresses(data or DATA, qdrant=qdrant)
        check_free(data or DATA, http or HTTP)
    except LedgerError as error:
        sys.stderr.write(f"kledger: {plain(error.message)} ({error.code})\n")
        raise typer.Exit(FAILED) from error
    with loading():
        load_structlog()
        compute_on_one_thread()
        from producers.node.compose import run
        from producers.node.start.foundation import NodeSettings

    options: dict[str, Any] = {"data": data, "http": http, "nats": nats, "qdrant": qdrant, "replicas": replicas}
    options |= {"checkpoint_hook": checkpoint_hook, "log_level": log_level}
    settings = {name: value for name, value in options.items() if value is not None}
    if quack is not None:
        settings["quack"] = _quack(quack)
    if roles is not None:
        settings["roles"] = _roles(roles)
    raise typer.Exit(run(NodeSettings(**settings)))


def _roles(option: str) -> frozenset[str]:
    roles = frozenset(part.strip() for part in option.split(","))
    if "api" in roles and roles <= {*get_args(NodeRole)}:
        return roles
    raise typer.BadParameter(f"{option!r} is not api, alone or with vectors and reactors", param_hint="--roles")


def _quack(option: str) -> int | None:
    if option == "off":
        return None
    if option.isdecimal() and int(option) < 2**16:
        return int(option)
    raise typer.BadParameter(f"{option!r} is neither a port nor off", param_hint="--quack")


app = typer.Typer()
app.command("up", rich_help_panel=NODE)(up)

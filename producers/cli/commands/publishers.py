"""`kledger nats-config`: a nats-server configuration with one user a publisher, each limited to its own subjects."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from producers.cli.answer import Answer, print_answer
from producers.cli.as_command import NODE, AsJson
from producers.cli.on_files import answering
from producers.cli.screen import exact, facts, words
from producers.cli.usage.made_directory import made_directory


def nats_config(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where to write it, readable by you alone.")],
    publisher: Annotated[
        list[str] | None, typer.Option(metavar="KIND:ID", help="Who may publish as itself; as often as needed.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="KIND:ID", help="Who may no longer publish.")] = None,
    org: Annotated[str, typer.Option(help="The tenant that these publish to.")] = "default",
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where the server listens.", show_default="as before, at first 127.0.0.1:4222"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a nats-server configuration in which every publisher can speak as itself alone.

    Again with the same DIR it adds publishers, and keeps the passwords and all other settings that are there.

    Example: kledger nats-config ./broker --publisher agent:scribe --publisher user:ada
    """
    from ledger.broker.publisher_config import write_nats_config

    into = Path(made_directory(directory))
    with answering(as_json):
        written = write_nats_config(into, publisher or (), remove or (), org=org, listen=listen)
        rows: list[tuple[str, object]] = []
        for one in written.publishers:
            rows += [("publisher", words(one.actor, "bold")), ("user", one.user)]
            rows += [("may publish to", one.subjects), ("inbox prefix", one.inbox), ("", "")]
        document: dict[str, Any] = {
            "config": str(written.config),
            "credentials": str(written.credentials),
            "publishers": [
                {"actor": one.actor, "user": one.user, "subjects": one.subjects, "inbox": one.inbox}
                for one in written.publishers
            ],
        }
        files = facts(("configuration", document["config"]), ("passwords", document["credentials"]))
        node = (
            f"KLEDGER_NATS_CREDENTIALS={shlex.quote(document['credentials'])} kledger up --nats nats://{written.listen}"
        )
        steps = (
            ("Start it:", f"nats-server -c {shlex.quote(document['config'])}"),
            ("After a change:", "nats-server --signal reload=PID"),
            ("A node of it:", node),
        )
        start = [part for heading, step in steps for part in (heading, exact(f"  {step}"))]
        print_answer(Answer(document, Group(facts(*rows), files, "", *start)), as_json=as_json)


app = typer.Typer()
app.command("nats-config", rich_help_panel=NODE)(nats_config)

"""`kledger token create`, `list`, `revoke`. They change a file that a running node watches."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kledger.contract.words import TokenRole
from ledger.runtime.data_directory import check_data_place
from ledger.runtime.default_data import DATA
from producers.cli.answer import Answer, print_answer
from producers.cli.as_command import NODE, AsJson
from producers.cli.on_files import Data, answering, require_node
from producers.cli.screen import exact, facts, plain, short_time, table, words

if TYPE_CHECKING:
    from producers.access.tokens import TokenRecord

# A copy of the roles: to import the module that has them would slow down --help.


def _bound(kind: str) -> Any:
    return typer.Option(f"--{kind}", help=f"Bind it to this {kind}; may be given more than once.")


def create(
    user: Annotated[list[str] | None, _bound("user")] = None,
    agent: Annotated[list[str] | None, _bound("agent")] = None,
    project: Annotated[list[str] | None, _bound("project")] = None,
    team: Annotated[list[str] | None, _bound("team")] = None,
    org: Annotated[list[str] | None, _bound("org")] = None,
    entity: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:ID", help="Bind it to this entity, of a registered type too.")
    ] = None,
    role: Annotated[
        TokenRole, typer.Option(help="What it is for, where analyst adds SQL and operator everything.")
    ] = "agent",
    expires: Annotated[str, typer.Option(help="After 30d, 12h or 8w, at a moment, or never.", metavar="WHEN")] = "90d",
    name: Annotated[str, typer.Option(help="What it is for, to find it in the list.")] = "",
    new: Annotated[
        bool, typer.Option("--new", help="Begin the data directory, for a node that has yet to start.")
    ] = False,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once: the node keeps a hash of it.

    With the first one the node asks for a token at every request, from that moment on.

    Example: kledger token create --agent scribe --team platform --expires 30d
    """
    from kledger.contract.scopes import check_entity
    from producers.access.tokens import create_token, expiry, read_records, tokens_file

    with answering(as_json):
        check_data_place(data)
        if not new:
            require_node(data, "; or give --new, for a node that has yet to start")
        named = {"user": user, "agent": agent, "project": project, "team": team, "org": org}
        bound = {kind: list(names or ()) for kind, names in named.items()}
        for each in map(check_entity, entity or ()):
            kind, _, its_id = each.partition(":")
            bound.setdefault(kind, []).append(its_id)
        first = not read_records(tokens_file(data))
        record, token = create_token(
            data,
            bound,
            role,
            expiry(expires, datetime.now(UTC)),
            name,
        )
        lead = exact(token, "bold")
        hint = "Keep it now: it is shown this once. Programs of ours take it from KLEDGER_TOKEN or a --token-file."
        from rich.console import Group

        lines = [lead, "", _facts(record), hint, *([_first(role, data)] if first else [])]
        print_answer(Answer({"token": token, **_document(record), "first": first}, Group(*lines)), as_json=as_json)


def list_tokens(data: Data = DATA, as_json: AsJson = False) -> None:
    """The tokens of a node: what each is bound to, and until when it is good. Never the tokens themselves.

    Example: kledger token list
    """
    from producers.access.tokens import read_records, tokens_file

    with answering(as_json):
        require_node(data)
        records = read_records(tokens_file(data))
        rows = table("id", "role", "bound to", "state", "expires", "name", whole=("id",))
        for record in records:
            document = _document(record)
            state = words(document["state"], "green" if document["state"] == "active" else "red")
            rows.add_row(
                plain(record.id),
                record.role,
                plain(_entities(record)),
                state,
                short_time(document["expires"] or "never"),
                plain(record.name),
            )
        shown = rows if records else f"no tokens in {plain(str(data))}: the node serves its own machine, and trusts it"
        print_answer(Answer({"tokens": [_document(record) for record in records]}, shown), as_json=as_json)


def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id that create and list tell.")],
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Take a token back: the next request with it is refused, and sessions over Quack end.

    Example: kledger token revoke t-5d1b2c3a4f
    """
    from producers.access.tokens import revoke_token

    with answering(as_json):
        require_node(data)
        record = revoke_token(data, token_id)
        print_answer(Answer(_document(record), f"revoked {record.id} ({_entities(record)})"), as_json=as_json)


def _first(role: TokenRole, data: Path) -> Any:
    """The note on what the first token of a node changes."""
    note = "It is the first one: from now on the node asks for a token at every request, your own commands' too."
    if role != "operator":
        note += f" Make one for yourself: kledger token create --role operator --data {shlex.quote(str(data))}"
    return words(note, "yellow")


def _document(record: TokenRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "role": record.role,
        "bound": {kind: list(names) for kind, names in record.bound.items()},
        "name": record.name,
        "state": record.state(datetime.now(UTC)),
        "created": record.created.isoformat(),
        "expires": None if record.expires is None else record.expires.isoformat(),
        "revoked": None if record.revoked is None else record.revoked.isoformat(),
    }


def _facts(record: TokenRecord) -> Any:
    document = _document(record)
    return facts(
        ("id", record.id),
        ("role", record.role),
        ("bound to", _entities(record)),
        ("expires", document["expires"] or "never"),
    )


def _entities(record: TokenRecord) -> str:
    return ", ".join(f"{kind}:{name}" for kind, names in record.bound.items() for name in names) or "nobody"


app = typer.Typer()

token = typer.Typer(no_args_is_help=True, help="Who may use a node over HTTP and Quack: tokens made, listed, revoked.")
token.command("create")(create)
token.command("list")(list_tokens)
token.command("revoke")(revoke)
app.add_typer(token, name="token", rich_help_panel=NODE)

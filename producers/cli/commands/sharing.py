"""Access to items: `kledger share`, `why-visible`, `scope-type …`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group

from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, NODE, as_caller, as_operator
from producers.cli.screen import facts, plain, short_time, table, waits
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

Readers = Annotated[reading.Many, typer.Option("--reader", metavar="TYPE:ID", help="Who may read it; may be repeated.")]
Writers = Annotated[
    reading.Many, typer.Option("--writer", metavar="TYPE:ID", help="Who may read and revise it; may be repeated.")
]

_NAMED = 10
_MAY = {"read_write": " (may revise)"}


def acl(readers: reading.Many, writers: reading.Many) -> list[dict[str, str]]:
    """The ACL of --reader and --writer; an entity named in both may write."""
    writing = list(dict.fromkeys(writers or []))
    reading_only = [entity for entity in dict.fromkeys(readers or []) if entity not in writing]
    return [
        *({"entity": entity, "permission": "read_write"} for entity in writing),
        *({"entity": entity, "permission": "read"} for entity in reading_only),
    ]


@one_of("--reader, --writer or --nobody", "reader", "writer", "nobody")
def share(
    session: Session,
    item_id: reading.ItemId,
    reader: Readers = None,
    writer: Writers = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Take all of it back.")] = False,
    expected_version: reading.ExpectedVersion = None,
) -> Answer:
    """State who may read an item beside those in its scopes, and who may revise it. Only its owner may.

    Example: kledger share knowledge-20260305-a1b2 --reader team:web --writer user:bob --user ann
    """
    entries = acl(reader, writer)
    if bool(entries) == nobody:
        raise typer.BadParameter("name who with --reader and --writer, or say --nobody")
    shared = session.ledger.share(item_id, entries, expected_version=expected_version)
    done = f"shared {plain(shared['id'])} with {_named(entries)}, at position {shared['position']}"
    return Answer(shared, f"{done}{waits(shared)}")


def _named(entries: list[dict[str, str]]) -> str:
    """Whom an ACL names: it is stated whole, so that whoever it does not name was taken out."""
    if not entries:
        return "nobody"
    names = [f"{plain(each['entity'])}{_MAY.get(each['permission'], '')}" for each in entries[:_NAMED]]
    rest = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    return f"{', '.join(names)}{rest}, nobody else by name"


def why_visible(session: Session, item_id: reading.ItemId) -> Answer:
    """Why the caller may read an item, since when, and who may change it.

    Example: kledger why-visible knowledge-20260305-a1b2 --user ann
    """
    answer = session.ledger.why_visible(item_id)
    rows = table("because of", "entity", "since", "at", right=("at",))
    for reason in answer["because"]:
        since = reason["since"]
        kind = f"{reason['kind']} ({reason['permission']})" if "permission" in reason else reason["kind"]
        when = f"{since['change']} by {since['by']}, {short_time(since['time'])}"
        rows.add_row(plain(kind), plain(reason["entity"] or ""), plain(when), f"{since['position']:,}")
    may = answer["may_change"]
    rest = facts(
        ("visibility", answer["visibility"]),
        ("found by", "lists and searches" if answer["recalled"] else "its id alone"),
        ("also read by", ", ".join(answer["also"]) or "nobody else by name"),
        ("owner", may["owner"]),
        ("may revise", ", ".join([*may["writers"], *may["coordinators"]]) or "nobody else"),
        ("you are its", may["you"] or "reader"),
    )
    return Answer(answer, Group(rows, rest))


def add_type(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A word, such as department.", show_default=False)],
    priority: Annotated[
        float,
        typer.Option(
            help="Its place among user 6, project 5, agent 4, team 3, org 2, public 1; fractions are allowed.",
            show_default=False,
        ),
    ],
) -> Answer:
    """Register a type of scope, or give it another priority.

    Example: kledger scope-type add department --priority 2.5
    """
    registered = session.ledger.register_scope_type(name, priority)
    return Answer(
        registered,
        f"{plain(registered['type'])} has priority {registered['priority']:g}, at position {registered['position']}",
    )


def list_types(session: Session) -> Answer:
    """The types of scopes that may be used, the most specific first.

    Example: kledger scope-type list
    """
    answer: Any = session.ledger.scope_types()
    rows = table("type", "priority", "registered at", right=("priority", "registered at"))
    for one in answer["scope_types"]:
        at = "built in" if one["built_in"] else f"{one['position']:,}"
        rows.add_row(plain(one["type"]), f"{one['priority']:g}", at)
    return Answer(answer, rows)


app = typer.Typer()
app.command("share", rich_help_panel=KNOWLEDGE)(as_caller(share))
app.command("why-visible", rich_help_panel=KNOWLEDGE)(as_caller(why_visible))

scope_type = typer.Typer(no_args_is_help=True, help="Types of scopes beside user, project, agent, team and org.")
scope_type.command("add")(as_operator(add_type))
scope_type.command("list")(as_operator(list_types))
app.add_typer(scope_type, name="scope-type", rich_help_panel=NODE)

"""`kledger share`, `why-visible`, `scope-type …`: who may see what, and why?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group

from producers.cli import reading
from producers.cli.screen import facts, plain, short_time, table
from producers.cli.session import Answer, Session

Readers = Annotated[reading.Many, typer.Option("--reader", metavar="TYPE:ID", help="Who may read it; may be repeated.")]
Writers = Annotated[
    reading.Many, typer.Option("--writer", metavar="TYPE:ID", help="Who may read and revise it; may be repeated.")
]


def acl(readers: reading.Many, writers: reading.Many) -> list[dict[str, str]]:
    """What --reader and --writer say, as an ACL; whoever is named as both may write."""
    writing = list(dict.fromkeys(writers or []))
    reading_only = [entity for entity in dict.fromkeys(readers or []) if entity not in writing]
    return [
        *({"entity": entity, "permission": "read_write"} for entity in writing),
        *({"entity": entity, "permission": "read"} for entity in reading_only),
    ]


def share(
    session: Session,
    item_id: reading.ItemId,
    reader: Readers = None,
    writer: Writers = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Take all of it back.")] = False,
) -> Answer:
    """State who may read an item beside those in its scopes, and who may revise it. Only its owner may.

    Example: kledger share knowledge-20260305-a1b2 --reader team:web --writer user:bob --user ann
    """
    entries = acl(reader, writer)
    if bool(entries) == nobody:
        raise typer.BadParameter("name who with --reader and --writer, or say --nobody")
    told = session.ledger.share(item_id, entries)
    return Answer(told, f"shared {plain(told['id'])} with {len(entries)}, at position {told['position']}")


def why_visible(session: Session, item_id: reading.ItemId) -> Answer:
    """Why the caller may read an item, since when, and who may change it.

    Example: kledger why-visible knowledge-20260305-a1b2 --user ann
    """
    told = session.ledger.why_visible(item_id)
    rows = table("because of", "entity", "since", "at", right=("at",))
    for reason in told["because"]:
        since = reason["since"]
        kind = f"{reason['kind']} ({reason['permission']})" if "permission" in reason else reason["kind"]
        when = f"{since['change']} by {since['by']}, {short_time(since['time'])}"
        rows.add_row(plain(kind), plain(reason["entity"] or ""), plain(when), f"{since['position']:,}")
    may = told["may_change"]
    rest = facts(
        ("visibility", told["visibility"]),
        ("found by", "lists and searches" if told["recalled"] else "its id alone"),
        ("also read by", ", ".join(told["also"]) or "nobody else by name"),
        ("owner", may["owner"]),
        ("may revise", ", ".join(may["writers"]) or "nobody else"),
        ("you are its", may["you"] or "reader"),
    )
    return Answer(told, Group(rows, rest))


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
    told = session.ledger.register_scope_type(name, priority)
    return Answer(told, f"{plain(told['type'])} has priority {told['priority']:g}, at position {told['position']}")


def list_types(session: Session) -> Answer:
    """The types of scopes that may be used, the most specific first.

    Example: kledger scope-type list
    """
    told: Any = session.ledger.scope_types()
    rows = table("type", "priority", "registered at", right=("priority", "registered at"))
    for one in told["scope_types"]:
        at = "built in" if one["built_in"] else f"{one['position']:,}"
        rows.add_row(plain(one["type"]), f"{one['priority']:g}", at)
    return Answer(told, rows)

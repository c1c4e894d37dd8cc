"""`kledger bulk …`: the same change of many items, shown and reverted later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from kledger.contract.words import BulkAction
from producers.cli import reading
from producers.cli.advice import advised
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.commands import sharing
from producers.cli.screen import counted, facts, plain, short_time, table
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

if TYPE_CHECKING:
    from kledger.answers.bulk import BulkResult

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the items.", show_default=False)]
BulkId = Annotated[str, typer.Argument(metavar="BULK", help="The id of the bulk.", show_default=False)]
Apply = Annotated[
    bool, typer.Option("--yes/--dry-run", help="Do it, or only say what would become of each.", show_default=False)
]


def retire(session: Session, item_ids: Ids, yes: Apply = False, reason: reading.Reason = None) -> Answer:
    """Retire many items; without --yes only say what would become of each.

    Example: kledger bulk retire old-1 old-2 --yes --reason "the tool is gone" --user ann
    """
    return _done(session, "retire", item_ids, yes, reason)


def restore(session: Session, item_ids: Ids, yes: Apply = False, reason: reading.Reason = None) -> Answer:
    """Restore many items; without --yes only say what would become of each.

    Example: kledger bulk restore old-1 old-2 --yes --user ann
    """
    return _done(session, "restore", item_ids, yes, reason)


@one_of("--reader or --writer", "reader", "writer")
def share(
    session: Session,
    item_ids: Ids,
    reader: sharing.Readers = None,
    writer: sharing.Writers = None,
    yes: Apply = False,
) -> Answer:
    """Share many items with further readers or writers; without --yes only say what would become of each.

    Example: kledger bulk share how-1 how-2 --reader team:web --yes --user ann
    """
    if not (reader or writer):
        raise typer.BadParameter("name who with --reader or --writer")
    return _done(session, "share", item_ids, yes, None, reader, writer)


def _done(
    session: Session,
    action: BulkAction,
    item_ids: Sequence[str],
    yes: bool,
    reason: str | None,
    readers: reading.Many = None,
    writers: reading.Many = None,
) -> Answer:
    answer = session.ledger.bulk(
        action, list(item_ids), dry_run=not yes, reason=reason, readers=readers, writers=writers
    )
    summary = f"{answer['done']} {'done' if yes else 'would be'}, {_rest(answer['unchanged'], answer['refused'])}"
    if answer["bulk_id"] is not None:
        summary += f"; take it back with kledger bulk revert {plain(answer['bulk_id'])}"
    elif not yes and answer["done"]:
        summary += "; do it with --yes"
    return Answer(answer, Group(*_not_done(answer["results"]), summary), ok=not answer["refused"])


def revert(session: Session, bulk_id: BulkId, reason: reading.Reason = None) -> Answer:
    """Undo what a bulk did, where its items still are as it left them.

    Example: kledger bulk revert bulk-5f2c9e0d7a1b4c36 --user ann
    """
    answer = session.ledger.revert_bulk(bulk_id, reason=reason)
    summary = f"{answer['done']} reverted, {_rest(answer['unchanged'], answer['refused'])}"
    return Answer(answer, Group(*_not_done(answer["results"]), summary), ok=not answer["refused"])


def show(session: Session, bulk_id: BulkId) -> Answer:
    """What a bulk did, and which items still are as it left them.

    Example: kledger bulk show bulk-5f2c9e0d7a1b4c36 --user ann
    """
    answer = session.ledger.bulk_get(bulk_id)
    rows = table("id", "position", "as it left it", right=("position",), whole=("id",))
    for item in answer["items"]:
        rows.add_row(plain(item["id"]), str(item["position"]), "yes" if item["stands"] else "no")
    about = facts(
        ("bulk", answer["bulk_id"]),
        ("did", f"{answer['action']} {counted(answer['done'], 'item')}"),
        ("asked by", f"{answer['by']}, {short_time(answer['time'])}"),
        ("reason", answer["reason"] or "none"),
    )
    return Answer(answer, Group(about, rows))


def _rest(unchanged: int, refused: int) -> str:
    return f"{unchanged} unchanged, {refused} refused"


def _not_done(results: Sequence[BulkResult]) -> list[str]:
    """A line for each item that has something to be said of it."""
    return [
        f"{plain(each['id'])}: {plain(advised(each['error']['message']))}"
        for each in results
        if each["error"] is not None
    ]


app = typer.Typer()

bulk = typer.Typer(no_args_is_help=True, help="The same change of many items, and taking it back.")
bulk.command("retire")(as_caller(retire))
bulk.command("restore")(as_caller(restore))
bulk.command("share")(as_caller(share))
bulk.command("show")(as_caller(show))
bulk.command("revert")(as_caller(revert))
app.add_typer(bulk, name="bulk", rich_help_panel=KNOWLEDGE)

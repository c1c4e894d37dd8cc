"""`kledger slim`, `slims`: merge near-duplicates, and decide on proposed merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from kledger.contract.words import SlimStatus
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.progress import bar
from producers.cli.screen import facts, plain, short_time, table
from producers.cli.session import Session

if TYPE_CHECKING:
    from kledger.answers.slims import Slim

_SHOWN = 50
"""Groups shown as text; --json has all."""
_POLL_SECONDS = 0.5


def slim(
    session: Session,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which items would be merged.")] = False,
    model: Annotated[str | None, typer.Option(help="The model that writes the merged texts.")] = None,
    scopes: reading.Scopes = None,
    owner: Annotated[str | None, typer.Option(help="Whose items; your own when not given.")] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0.5, max=1, help="How similar items have to be.  [0.8]")
    ] = None,
    apply: Annotated[str | None, typer.Option(metavar="ID", help="Merge what this dry run proposed.")] = None,
    revert: Annotated[str | None, typer.Option(metavar="ID", help="Undo this slim: every item as it was.")] = None,
    reject: Annotated[str | None, typer.Option(metavar="ID", help="Leave what this dry run proposed.")] = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Merge items of one owner that say the same; without a model the best of each group is kept.

    Items that different people read, by their scopes or by shares, are never merged: nobody sees more or less after it.

    Example: kledger slim --dry-run --user ann
    """
    named = [name for name in (apply, revert, reject) if name is not None]
    if len(named) > 1 or (named and (dry_run or model or scopes or owner or threshold)):
        raise typer.BadParameter("--apply, --revert and --reject stand alone, each with the id of a slim")
    ledger = session.ledger.within(trace_id=trace, message_id=message)
    if apply is not None:
        state = ledger.slim_apply(apply, wait=0)
    elif revert is not None:
        state = ledger.slim_revert(revert, wait=0)
    elif reject is not None:
        state = ledger.slim_reject(reject)
    else:
        state = ledger.slim(
            model, scopes=reading.several(scopes), owner=owner, threshold=threshold, dry_run=dry_run, wait=0
        )
    with bar("slimming", None) as moving:
        while not state["done"]:
            moving.at(len(state["groups"]))
            state = ledger.slim_get(state["id"], wait=_POLL_SECONDS)
    return _answer(state)


def slims(
    session: Session,
    status: Annotated[SlimStatus | None, typer.Option(help="Only those with this status.")] = None,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """List slims, newest first.

    Example: kledger slims --user ann
    """
    page = session.ledger.slims(status=status, limit=limit, offset=offset)
    rows = table("id", "status", "owner", "items", "model", "asked", whole=("id",))
    for each in page["results"]:
        rows.add_row(
            plain(each["id"]),
            plain(each["status"]),
            plain(each["owner"]),
            "" if each["items_before"] is None else f"{each['items_before']:,}",
            plain(each["model"] or "none"),
            short_time(each["requested_at"]),
        )
    return listed(page, rows, "no slims")


def _answer(state: Slim) -> Answer:
    rows = table("group", "survivor", "merged", "similarity", "left as it was", whole=("survivor",))
    for group in state["groups"][:_SHOWN]:
        first, *more = group["merged"]
        rows.add_row(
            str(group["group"]),
            plain(group["survivor"]),
            plain(first["id"]) + (f" and {len(more)} more" if more else ""),
            f"{min(each['similarity'] for each in group['merged']):.2f}",
            plain(group["skipped"] or ""),
        )
    usage = state["usage"]
    cost = "" if usage is None or usage["cost_usd"] is None else f", {usage['cost_usd']:.4f} US dollars"
    left = "" if state["items_after"] is None else f"{state['items_before']:,} before, {state['items_after']:,} after"
    shown = [
        ("slim", state["id"]),
        ("status", state["status"]),
        ("items", left),
        (
            "groups",
            f"{len(state['groups']):,}" + (f", the first {_SHOWN} shown" if len(state["groups"]) > _SHOWN else ""),
        ),
        ("model", "none" if usage is None else f"{usage['model']}, {usage['calls']} calls{cost}"),
        *([("note", state["note"])] if state["note"] else []),
        *(
            [("reason", f"{state['reason']} ({state['code']})" if state["code"] else state["reason"])]
            if state["reason"]
            else []
        ),
    ]
    return Answer(state, Group(facts(*shown), rows) if state["groups"] else facts(*shown), state["status"] != "failed")


app = typer.Typer()
app.command("slim", rich_help_panel=KNOWLEDGE)(as_caller(slim))
app.command("slims", rich_help_panel=KNOWLEDGE)(as_caller(slims))

"""`kledger forget`: erase a person's text by destroying their key."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.commands.admin import run_job
from producers.cli.screen import facts, plain
from producers.cli.session import Session


def forget(
    session: Session,
    subject: Annotated[str, typer.Argument(metavar="user:ID", help="Whom to forget.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether this is meant.")] = False,
) -> Answer:
    """Forget a person for good: their key is destroyed, and views, vectors and snapshots are made anew.

    Asked again, it shows the receipt. Nothing brings the person's words back.

    Example: kledger forget user:vera
    """
    from ledger.privacy.personal import require_person

    require_person(subject)  # before the confirmation
    if not yes:
        if session.as_json:
            raise typer.BadParameter("with --json nobody is asked: say --yes when it is meant", param_hint="--yes")
        _ask(subject)
    outcome = run_job(session, "forget", subject=subject)
    receipt = outcome["receipt"]
    left = receipt["left_in_clear"]
    never = f"{len(left):,} events stay readable, the first at position {left[0]:,}" if left else ""
    shown = facts(
        ("forgotten", receipt["subject"]),
        ("receipt", receipt["id"]),
        ("asked", f"{receipt['asked_at']} by {receipt['asked_by']}"),
        ("done", f"{receipt['done_at']}, position {receipt['position']:,}"),
        ("embeddings removed", f"{receipt['embeddings_removed']:,}"),
        ("snapshots removed", f"{len(receipt['snapshots_removed']):,}"),
        ("secrets destroyed", f"{receipt['secrets_destroyed']:,}"),
        ("signed", "yes" if outcome["signature"] else "no"),
        *([("never sealed", never)] if never else []),
    )
    return Answer(outcome, shown)


def _ask(subject: str) -> None:
    """Have a person say that this is meant. Raises typer.Abort where they do not, BadParameter where nobody answers."""
    try:
        meant = typer.confirm(f"Forget {plain(subject)}? Nothing brings their words back.", err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        if sys.stdin.isatty():
            raise
        sys.stderr.write("\n")
        raise typer.BadParameter("nobody answers here: say --yes when it is meant", param_hint="--yes") from None
    if not meant:
        raise typer.Abort


app = typer.Typer()
app.command("forget", rich_help_panel=AUDIT)(as_operator(forget))

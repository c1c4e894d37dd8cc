"""`kledger refused list|retry|dismiss`: refused events, and the decision on a parked one."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group

from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.commands.admin import until_done
from producers.cli.screen import counted, facts, plain, short_time, snippet, table
from producers.cli.session import Session

Position = Annotated[int, typer.Argument(min=1, help="The event's position in the log.", show_default=False)]


def list_refused(
    session: Session,
    after: Annotated[int, typer.Option(min=0, help="Only those after this position.")] = 0,
    limit: reading.Limit = 100,
    code: Annotated[str | None, typer.Option(help="Only those refused with this code, such as unfoldable.")] = None,
) -> Answer:
    """The events that are in the log and do not count, with their reasons.

    Example: kledger refused list --code unfoldable
    """
    page = session.ledger.refused(after=after, limit=limit, code=code)
    rows = table("position", "time", "event", "code", "state", "reason", right=("position",))
    for one in page["refused"]:
        rows.add_row(
            f"{one['position']:,}",
            short_time(one["time"]),
            plain(one["type"] or one["subject"]),
            plain(one["code"]),
            plain(one["state"] or ""),
            snippet(one["reason"]),
        )
    return Answer(page, Group(rows, f"{counted(len(page['refused']), 'event')}, as of position {page['position']}"))


def retry(session: Session, position: Position) -> Answer:
    """Fold a parked event after all: everything is folded anew with it in its place, and swapped.

    Exits with 1 when it still cannot be folded; then nothing has changed.

    Example: kledger refused retry 1234
    """
    outcome = until_done(session, session.ledger.retry_parked(position))
    return Answer(outcome, facts(("folded", f"position {position:,}"), ("views as of", f"{outcome['position']:,}")))


def dismiss(session: Session, position: Position) -> Answer:
    """Let a parked event rest: it stays refused, and no longer asks for attention.

    Example: kledger refused dismiss 1234
    """
    decision = session.ledger.dismiss_parked(position)
    return Answer(decision, facts(("dismissed", f"position {position:,}"), ("reason", decision["reason"])))


app = typer.Typer()

refused_events = typer.Typer(no_args_is_help=True, help="The events that do not count, and what is done about them.")
refused_events.command("list")(as_operator(list_refused))
refused_events.command("retry")(as_operator(retry))
refused_events.command("dismiss")(as_operator(dismiss))
app.add_typer(refused_events, name="refused", rich_help_panel=AUDIT)

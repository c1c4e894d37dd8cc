"""`kledger jobs`: the jobs of a node that run, and what became of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.screen import counted, facts, plain, table, words
from producers.cli.session import Session

if TYPE_CHECKING:
    from kledger.answers.admin import Job

_COLOUR = {"running": "yellow", "done": "green", "failed": "bold red"}


def jobs(
    session: Session,
    job: Annotated[str | None, typer.Argument(help="The id of one job.", show_default=False)] = None,
) -> Answer:
    """The jobs of the node since its start, newest first: rebuilds, backups and others, with what each failed of.

    With an id that job alone; exits with 1 when it failed.

    Example: kledger jobs
    """
    if job is not None:
        one = session.ledger.job(job)
        return Answer({**one}, _shown(one), ok=one["state"] != "failed")
    found = session.ledger.jobs()
    rows = table("job", "state", "position", "of", right=("position", "of"), whole=("job",))
    told: list[RenderableType] = [rows]
    for each in found["jobs"]:
        rows.add_row(plain(each["id"]), _state(each), f"{each['done']:,}", _total(each))
        if each["error"] is not None:
            told.append(facts((each["id"], f"{each['error']['message']} ({each['error']['code']})")))
    return Answer({**found}, Group(*told, counted(len(found["jobs"]), "job")))


def _shown(job: Job) -> RenderableType:
    error = job["error"]
    return facts(
        ("job", job["id"]),
        ("state", _state(job)),
        ("position", f"{job['done']:,} of {_total(job)}, {job['rate']:,.0f} a second"),
        *([("error", f"{error['message']} ({error['code']})")] if error is not None else []),
    )


def _state(job: Job) -> RenderableType:
    return words(job["state"], _COLOUR[job["state"]])


def _total(job: Job) -> str:
    return f"{job['total']:,}" if job["total"] else "?"


app = typer.Typer()
app.command("jobs", rich_help_panel=AUDIT)(as_operator(jobs))

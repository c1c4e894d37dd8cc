"""`kledger project …`: who does what in a project, as far as its shared memory asks."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Group

from kledger.contract.words import ProjectRole
from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import plain, table
from producers.cli.session import Session

ProjectId = Annotated[str, typer.Argument(help="The project: ledger for the scope project:ledger.")]
Entity = Annotated[str, typer.Argument(help="A user or an agent, such as agent:lead.")]


def members(session: Session, project_id: ProjectId) -> Answer:
    """The members of a project that have a role.

    Example: kledger project members ledger --project ledger
    """
    found = session.ledger.project_members(project_id)
    rows = table("member", "roles", "said by", "at position", right=("at position",), whole=("member",))
    for each in found["members"]:
        rows.add_row(plain(each["member"]), ", ".join(each["roles"]), plain(each["actor"]), str(each["position"]))
    named = plain(project_id)
    hint = f"nobody has a role in {named}: kledger project coordinator {named} agent:lead appoints a coordinator"
    return Answer(found, Group(rows) if found["members"] else hint)


def coordinator(session: Session, project_id: ProjectId, member: Entity) -> Answer:
    """Make a user or an agent a coordinator, who decides on what the project shares; the operator and coordinators do.

    Example: kledger project coordinator ledger agent:lead
    """
    return _assigned(session.ledger.appoint_coordinator(project_id, member))


def roles(
    session: Session,
    project_id: ProjectId,
    member: Entity,
    role: Annotated[
        reading.Many,
        typer.Option(
            "--role", help="coordinator, architect, reviewer, tester, developer, operations; may be repeated."
        ),
    ] = None,
) -> Answer:
    """State all roles of a user or an agent in a project; without --role they are taken away.

    Example: kledger project roles ledger agent:scribe --role architect --role developer
    """
    stated = cast("list[ProjectRole]", reading.chosen(role, get_args(ProjectRole), "--role") or [])
    return _assigned(session.ledger.assign_roles(project_id, member, stated))


def _assigned(done: Any) -> Answer:
    has = ", ".join(done["roles"]) or "nothing any more"
    said = f"{plain(done['member'])} is {has} in {plain(done['project'])}, since position {done['position']}"
    return Answer(done, said)


app = typer.Typer()

project = typer.Typer(no_args_is_help=True, help="Projects: who decides on what they share, and who does what.")
project.command("members")(as_caller(members))
project.command("coordinator")(as_caller(coordinator))
project.command("roles")(as_caller(roles))
app.add_typer(project, name="project", rich_help_panel=KNOWLEDGE)

"""`kledger profile …`: the memories of a user."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer
from rich.console import Group, RenderableType

from kledger.contract.words import ProfileType
from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import earlier, plain, short_time, table, verbatim, words
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

WhichMemory = Annotated[ProfileType, typer.Argument(help="user or work.", show_default=False)]
Content = Annotated[
    str, typer.Argument(metavar="JSON", help="A JSON object, @FILE, or - for stdin.", show_default=False)
]


def show(
    session: Session,
    memory: Annotated[ProfileType | None, typer.Argument(help="user or work; both when not given.")] = None,
    as_of: reading.AsOf = None,
) -> Answer:
    """Show what is remembered of the user.

    Example: kledger profile show work --user ann
    """
    _need_user(session)
    if memory is not None:
        content = session.ledger.profiles.get(memory, as_of=reading.moment(as_of))
        return Answer(content, _shown(memory, content))
    both = session.ledger.profiles.both(as_of=reading.moment(as_of))
    parts = Group(_shown("user", both["user_memory"]), _shown("work", both["work_memory"]))
    return Answer(both, parts)


@one_of("--user", "user")
def prompt(
    session: Session, memory: WhichMemory, as_of: reading.AsOf = None, language: reading.Language = None
) -> Answer:
    """Print one memory as the section of a system prompt: user for a router agent, work for a worker agent.

    Example: kledger profile prompt user --user ann
    """
    _need_user(session)
    section = session.ledger.profiles.prompt(memory, as_of=reading.moment(as_of), language=language)
    return Answer(
        {"memory_type": memory, "prompt": section}, verbatim(section or f"there is no active {memory} memory")
    )


@one_of("--user", "user")
def history(session: Session, memory: WhichMemory, before: reading.BeforeVersion = None) -> Answer:
    """Every version of one memory, oldest first; the latest where all do not fit.

    Example: kledger profile history work --user ann
    """
    _need_user(session)
    memory_history = session.ledger.profiles.history(memory, before=before)
    rows = table("version", "position", "time", "change", "status", right=("version", "position"))
    for version in memory_history["versions"]:
        numbers = (plain(version["version"]), plain(version["valid_from"]))
        rows.add_row(
            *numbers, short_time(version["valid_from_time"]), plain(version["change"]), plain(version["status"])
        )
    return Answer(memory_history, Group(rows, *earlier(memory_history.get("next"))))


@one_of("--user", "user")
def set_content(session: Session, memory: WhichMemory, content: Content) -> Answer:
    """State the whole content of one memory anew.

    Example: kledger profile set work @profile.json --user ann
    """
    _need_user(session)
    document = session.ledger.profiles.put(memory, reading.json_object(content))
    return Answer(document, _shown(memory, document))


@one_of("--user", "user")
def patch(session: Session, memory: WhichMemory, content: Content) -> Answer:
    """State part of one memory anew: a JSON merge patch, null removes a field.

    Example: kledger profile patch user '{"timezone": "Asia/Shanghai"}' --user ann
    """
    _need_user(session)
    document = session.ledger.profiles.patch(memory, reading.json_object(content))
    return Answer(document, _shown(memory, document))


@one_of("--user", "user")
def register(session: Session) -> Answer:
    """Begin both memories of the user with their default content; a second time changes nothing.

    Example: kledger profile register --user ann
    """
    _need_user(session)
    return Answer(session.ledger.profiles.register(), f"{session.caller['user']} has both memories")


@one_of("--user", "user")
def disable(session: Session, memory: WhichMemory) -> Answer:
    """Have one memory not used any more; its history stays, and setting it makes it active again.

    Example: kledger profile disable work --user ann
    """
    _need_user(session)
    session.ledger.profiles.disable(memory)
    return Answer({"memory": memory, "status": "disabled"}, f"the {memory} memory is disabled")


def _need_user(session: Session) -> None:
    if session.ledger.wire.caller.user is None:
        raise typer.BadParameter("whose memory? Give --user NAME or set KLEDGER_USER", param_hint="--user")


def _shown(memory: ProfileType, content: dict[str, Any] | None) -> RenderableType:
    title = words(f"{memory} memory", "bold")
    if content is None:
        return Group(title, "none, or disabled; begin one with: kledger profile register --user NAME")
    return Group(title, verbatim(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()))


app = typer.Typer()

profile = typer.Typer(no_args_is_help=True, help="What is remembered of a user, in two memories: user and work.")
profile.command("show")(as_caller(show))
profile.command("prompt")(as_caller(prompt))
profile.command("history")(as_caller(history))
profile.command("set")(as_caller(set_content))
profile.command("patch")(as_caller(patch))
profile.command("register")(as_caller(register))
profile.command("disable")(as_caller(disable))
app.add_typer(profile, name="profile", rich_help_panel=KNOWLEDGE)

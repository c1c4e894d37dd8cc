"""Plain functions as typer commands: `as_caller` and `as_operator` add the shared options and map errors to exit codes.

A command is a function that takes a session and returns an Answer.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kledger import DEFAULT_URL
from kledger.contract.errors import InvalidPayload, LedgerError
from producers.cli.answer import FAILED, NO_NODE, Answer, print_answer, print_refusal
from producers.cli.session import Session

if TYPE_CHECKING:  # it costs a good part of the time that `kledger --help` takes
    from kledger.client.wire import Wire

SHARED_PANEL = "Common options"
NODE, KNOWLEDGE, AUDIT = "Run a node", "Knowledge", "Operate and audit"
"""The panels of the commands in the help."""

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=SHARED_PANEL),
]
Url = Annotated[str, typer.Option(envvar="KLEDGER_URL", help="The node to talk to.", rich_help_panel=SHARED_PANEL)]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="KLEDGER_TOKEN_FILE",
        help="A file with the token to send; else KLEDGER_TOKEN holds it.",
        rich_help_panel=SHARED_PANEL,
    ),
]
_AROUND = 10  # characters


def _variable(kind: str) -> str:
    return f"KLEDGER_{kind.upper()}"


def _identity(kind: str) -> Any:
    return typer.Option(envvar=_variable(kind), help=f"Ask as this {kind}.", rich_help_panel=SHARED_PANEL)


@contextmanager
def files_named() -> Iterator[None]:
    """Turn an OSError about a file that the user named into InvalidPayload, and a full disk into ServiceFailed."""
    try:
        yield
    except BrokenPipeError:  # the reader closed the pipe
        raise
    except UnicodeEncodeError as error:
        excerpt = error.object[max(error.start - _AROUND, 0) : error.end + _AROUND].encode("ascii", "backslashreplace")
        raise InvalidPayload(
            f"'{excerpt.decode()}' on the command line is no text in {sys.getfilesystemencoding()}, the encoding here: "
            "type it in that encoding, or set PYTHONUTF8=1 where the terminal has UTF-8",
            errors=[],
        ) from error
    except OSError as error:
        from ledger.runtime.no_room import no_room

        if (full := no_room(error)) is not None:
            raise full from error
        reason = error.strerror or str(error) or type(error).__name__
        if error.filename is not None:
            reason = f"{os.fsdecode(error.filename)}: {reason}; give a path that is there and that you may use"
        raise InvalidPayload(reason, errors=[]) from error


def _open_as_caller(
    context: typer.Context,
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
    user: Annotated[str | None, _identity("user")] = None,
    agent: Annotated[str | None, _identity("agent")] = None,
    project: Annotated[str | None, _identity("project")] = None,
    team: Annotated[str | None, _identity("team")] = None,
    org: Annotated[str | None, _identity("org")] = None,
    entity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE:ID",
            help="Ask as this entity as well, of a registered type too; may be repeated.",
            rich_help_panel=SHARED_PANEL,
        ),
    ] = None,
    token_file: TokenFile = None,
) -> Session:
    named = {"user": user, "agent": agent, "project": project, "team": team, "org": org}
    of_environment = {kind for kind in named if _source(context, kind) == "ENVIRONMENT"}
    # As with a token: identities on the command line replace those of the environment.
    alone = bool(entity) or any(_source(context, kind) == "COMMANDLINE" for kind in named)
    left_out = of_environment if alone else ()
    empty = None if alone else next(filter(_is_empty, map(_variable, named)), None)
    caller = {kind: name if kind not in left_out else None for kind, name in named.items()}
    return Session(url, as_json, caller, token_file, entity or [], empty, _of_environment(context))


def _is_empty(variable: str) -> bool:
    """Whether the environment has this variable without a name in it, which typer treats as unset."""
    return not os.environ.get(variable, "somebody").strip()


def _source(context: typer.Context, parameter: str) -> str | None:
    source = context.get_parameter_source(parameter)
    return None if source is None else source.name


def _of_environment(context: typer.Context) -> bool:
    """Whether the file with the token is named by the environment."""
    return _source(context, "token_file") == "ENVIRONMENT"


def _open_as_operator(
    context: typer.Context, as_json: AsJson = False, url: Url = DEFAULT_URL, token_file: TokenFile = None
) -> Session:
    return Session(url, as_json, token_file=token_file, token_file_set=_of_environment(context))


def as_caller(function: Callable[..., Answer]) -> Callable[..., None]:
    """A command for a caller: --user, --agent, --project, --team, --org, --entity, or else the operator."""
    return _command(function, _open_as_caller)


def as_operator(function: Callable[..., Answer]) -> Callable[..., None]:
    """A command of the operator: it sends no identity, whatever the environment holds."""
    return _command(function, _open_as_operator)


def as_server(function: Callable[[Wire], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A command for a caller that serves a program over stdin and stdout until it ends."""
    shared = [parameter for parameter in _parameters(_open_as_caller) if parameter.name != "as_json"]

    def run(**options: Any) -> None:
        import asyncio
        import signal

        # A thread that reads stdin cannot be stopped; no work is lost, because the node keeps what it acknowledged.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        session = _open_as_caller(**options)
        try:
            asyncio.run(function(session.wire))
        except LedgerError as error:
            print_refusal(error, as_json=session.as_json)
            raise typer.Exit(NO_NODE if error.code == "node_unreachable" else FAILED) from error

    return _as_typed(run, function, shared)


def _command(function: Callable[..., Answer], opened: Callable[..., Session]) -> Callable[..., None]:
    shared = _parameters(opened)
    own = _parameters(function)[1:]  # the first is the session

    def run(**options: Any) -> None:
        session = opened(**{parameter.name: options.pop(parameter.name) for parameter in shared})
        try:
            with files_named():
                answer = function(session, **options)
                session.settle()
        except LedgerError as error:
            print_refusal(error, as_json=session.as_json, taken=own)
            raise typer.Exit(NO_NODE if error.code == "node_unreachable" else FAILED) from error
        finally:
            session.close()
        print_answer(answer, as_json=session.as_json)
        if not answer.ok:
            raise typer.Exit(FAILED)

    return _as_typed(run, function, [*own, *shared])


def _as_typed(
    run: Callable[..., None], function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give `run` the signature from which typer builds the command line: own parameters, then the shared ones."""
    run.__doc__ = function.__doc__
    run.__dict__ |= function.__dict__  # what the command is marked with
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@cache  # the options that commands share are read once
def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True, localns=_NAMES_OF_TYPE_CHECKING)
    return [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]


_NAMES_OF_TYPE_CHECKING: dict[str, Any] = {"RenderableType": object, "LedgerClient": object}

"""Whom does a command speak to, for whom, and how does it answer: for a reader, or as one JSON document?

A command is a plain function that takes a session and returns an Answer. `as_caller` and `as_operator` make
it a command of the line: they add the options that all of them share, and turn errors into exit codes.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kledger.contract.errors import IllegalScope, InvalidPayload, LedgerError, Unauthenticated
from kledger.contract.language import language_of_terminal
from producers.cli.advice import advised, advised_details

if TYPE_CHECKING:  # both cost a good part of the time that `kledger --help` takes
    from rich.console import RenderableType

    from kledger import LedgerClient
    from kledger.client.wire import Wire

OK, FAILED, USAGE, NO_NODE = 0, 1, 2, 3
EXIT_CODES = "Exit codes: 0 ok; 1 failed, not healthy or differences found; 2 usage; 3 no node reachable."

SHARED_PANEL = "Options of every command"
SETTLED_WITHIN = 5.0  # seconds

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=SHARED_PANEL),
]
Url = Annotated[str, typer.Option(envvar="KLEDGER_URL", help="The node to talk to.", rich_help_panel=SHARED_PANEL)]
DEFAULT_URL = "http://127.0.0.1:8420"
TokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="KLEDGER_TOKEN_FILE",
        help="A file with the token to send; else KLEDGER_TOKEN holds it.",
        rich_help_panel=SHARED_PANEL,
    ),
]


def _variable(kind: str) -> str:
    return f"KLEDGER_{kind.upper()}"


def _identity(kind: str) -> Any:
    return typer.Option(envvar=_variable(kind), help=f"Ask as this {kind}.", rich_help_panel=SHARED_PANEL)


_AROUND = 10  # characters
WRITTEN = ""
"""What is shown of an answer that the command has written to stdout itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: the document that --json prints, what a reader sees, and whether all is well."""

    document: Any
    shown: RenderableType
    ok: bool = True


@dataclass
class Session:
    """One run of one command."""

    url: str
    as_json: bool
    caller: dict[str, str | None] = field(default_factory=dict)
    token_file: Path | None = None
    further: list[str] = field(default_factory=list)
    empty: str | None = None  # the variable of the environment that should name who asks, and is empty
    settled: bool = False  # the command has waited for the views itself

    @cached_property
    def ledger(self) -> LedgerClient:
        """The node, asked as the caller; closed when the command ends."""
        from kledger import LedgerClient

        client = LedgerClient(self.url, token=self._token())
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal())

    @property
    def wire(self) -> Wire:
        """The same for a command that awaits; it closes the connection itself."""
        from kledger import AsyncLedgerClient

        client = AsyncLedgerClient(self.url, token=self._token())
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal()).wire

    def _named(self) -> dict[str, str | None]:
        if self.empty is not None:
            # As good as unset to many programs; here a script whose substitution failed would act as the operator.
            raise IllegalScope(f"{self.empty} is empty: name somebody, or unset it", errors=[])
        return self.caller

    def _token(self) -> str | None:
        return None if self.token_file is None else _token_in(self.token_file)

    def settle(self) -> None:
        """Return when every view has what this command wrote, so that the next command sees it.

        It was kept whatever happens here: after a while, or where the caller may not ask, nothing is said.
        """
        if self.settled or "ledger" not in self.__dict__ or not self.ledger.written:
            return
        from kledger.client.admin import pauses

        until = time.monotonic() + SETTLED_WITHIN
        try:
            for pause in pauses():  # the views are not held up while they take in thousands
                views = self.ledger.acting_as().status()["views"]
                if all(view["position"] >= self.ledger.written for view in views) or time.monotonic() + pause > until:
                    return
                time.sleep(pause)
        except LedgerError:
            return

    def close(self) -> None:
        """Close the connection if one was opened."""
        if "ledger" in self.__dict__:
            self.ledger.close()

    def tell(self, answer: Answer) -> None:
        """Print the answer on stdout; one that the command wrote itself is neither."""
        if answer.shown == WRITTEN:
            return
        if self.as_json:
            _print_json(answer.document)
        else:
            from producers.cli.screen import stdout

            stdout().print(answer.shown, crop=False)  # what is to be copied may be longer than a line
        for line in _lacks(answer.document):
            sys.stderr.write(f"{line}\n")

    def refuse(self, error: LedgerError) -> None:
        """Print the error for a reader on stderr, and for a machine on stdout."""
        message = advised(error.message)
        if self.as_json:
            _print_json({"error": {"code": error.code, "message": message, "details": advised_details(error.details)}})
        sys.stderr.write(f"error: {message} ({error.code})\n")  # click would write UTF-8 to a terminal of ASCII


def _lacks(document: Any) -> Iterator[str]:
    """A line for each thing that was kept and will not work, and each part that an answer could not use, or not up to
    date."""
    from producers.cli.screen import plain

    if not isinstance(document, dict):
        return
    for warning in document.get("warnings") or ():
        yield f"warning: {plain(advised(warning['message']))}"
    for lack in document.get("degraded") or ():
        at = "" if lack["position"] is None else f", at position {lack['position']}"
        yield f"degraded: {plain(lack['part'])}{at}: {plain(advised(lack['reason']))}"


def _token_in(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unauthenticated(
            f"the token file {file} cannot be read ({type(error).__name__}): check its name"
        ) from error


def _print_json(document: Any) -> None:
    import orjson

    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str)
    sys.stdout.write(_in_json(text.decode(), sys.stdout.encoding) + "\n")


def _in_json(text: str, encoding: str | None) -> str:
    """JSON whose characters a terminal has, the others as the escapes of JSON."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        return "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in text)
    return text


@contextmanager
def files_named() -> Iterator[None]:
    """What the system says of a file that the user named, as an error of ours: InvalidPayload."""
    try:
        yield
    except BrokenPipeError:  # whoever read the answer has enough of it
        raise
    except UnicodeEncodeError as error:
        said = error.object[max(error.start - _AROUND, 0) : error.end + _AROUND].encode("ascii", "backslashreplace")
        raise InvalidPayload(
            f"'{said.decode()}' on the command line is no text in {sys.getfilesystemencoding()}, the encoding here: "
            "type it in that encoding, or set PYTHONUTF8=1 where the terminal has UTF-8",
            errors=[],
        ) from error
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        if error.filename is not None:
            why = f"{os.fsdecode(error.filename)}: {why}; give a path that is there and that you may use"
        raise InvalidPayload(why, errors=[]) from error


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
    # As with a token: whoever names somebody is exactly those, whatever else the surroundings would add.
    alone = bool(entity) or any(_source(context, kind) == "COMMANDLINE" for kind in named)
    left_out = of_environment if alone else ()
    empty = None if alone else next(filter(_is_empty, map(_variable, named)), None)
    caller = {kind: name if kind not in left_out else None for kind, name in named.items()}
    return Session(url, as_json, caller, token_file, entity or [], empty)


def _is_empty(variable: str) -> bool:
    """Whether the environment has this variable and no name in it; to typer it is then as good as unset."""
    return not os.environ.get(variable, "somebody").strip()


def _source(context: typer.Context, parameter: str) -> str | None:
    source = context.get_parameter_source(parameter)
    return None if source is None else source.name


def _open_as_operator(as_json: AsJson = False, url: Url = DEFAULT_URL, token_file: TokenFile = None) -> Session:
    return Session(url, as_json, token_file=token_file)


def as_caller(function: Callable[..., Answer]) -> Callable[..., None]:
    """A command that asks for somebody: --user, --agent, --project, --team, --org, --entity, or the operator."""
    return _command(function, _open_as_caller)


def as_operator(function: Callable[..., Answer]) -> Callable[..., None]:
    """A command of the operator: it never says who asks, whatever the environment holds."""
    return _command(function, _open_as_operator)


def as_server(function: Callable[[Wire], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A command that asks for somebody as long as it runs, and answers to a program on stdout."""
    shared = [parameter for parameter in _parameters(_open_as_caller) if parameter.name != "as_json"]

    def run(**given: Any) -> None:
        import asyncio
        import signal

        # A thread waits for stdin and cannot be told to stop; nothing is under way that the node would not keep.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        session = _open_as_caller(**given)
        try:
            asyncio.run(function(session.wire))
        except LedgerError as error:
            session.refuse(error)
            raise typer.Exit(NO_NODE if error.code == "node_unreachable" else FAILED) from error

    return _as_typed(run, function, shared)


def _command(function: Callable[..., Answer], opened: Callable[..., Session]) -> Callable[..., None]:
    shared = _parameters(opened)
    own = _parameters(function)[1:]  # the first is the session

    def run(**given: Any) -> None:
        session = opened(**{parameter.name: given.pop(parameter.name) for parameter in shared})
        try:
            with files_named():
                answer = function(session, **given)
                session.settle()
        except LedgerError as error:
            session.refuse(error)
            raise typer.Exit(NO_NODE if error.code == "node_unreachable" else FAILED) from error
        finally:
            session.close()
        session.tell(answer)
        if not answer.ok:
            raise typer.Exit(FAILED)

    return _as_typed(run, function, [*own, *shared])


def _as_typed(
    run: Callable[..., None], function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """What typer reads to build the command line: the command's own parameters, then the shared ones."""
    run.__doc__ = function.__doc__
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True, localns=_NAMES_OF_TYPE_CHECKING)
    return [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
    ]


_NAMES_OF_TYPE_CHECKING: dict[str, Any] = {"RenderableType": object, "LedgerClient": object}

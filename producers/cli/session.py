"""The session of one command: the node, the caller, and the output as text or as one JSON document.

A command is a plain function that takes a session and returns an Answer. `as_caller` and `as_operator` turn it into a
typer command: they add the shared options and map errors to exit codes.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kledger import DEFAULT_URL
from kledger.contract.errors import IllegalScope, InvalidPayload, LedgerError, Unauthenticated
from kledger.contract.language import language_of_terminal
from producers.cli.advice import advised, advised_details
from producers.cli.encoding import plain, plain_json

if TYPE_CHECKING:  # both cost a good part of the time that `kledger --help` takes
    from rich.console import RenderableType

    from kledger import LedgerClient
    from kledger.client.wire import Wire

FAILED, NO_NODE = 1, 3
EXIT_CODES = "Exit codes: 0 ok; 1 failed, not healthy or differences found; 2 usage; 3 no node reachable; 130 Ctrl-C."

SHARED_PANEL = "Common options"
NODE, KNOWLEDGE, AUDIT = "Run a node", "Knowledge", "Operate and audit"
"""The panels of the commands in the help."""
SETTLED_WITHIN = 5.0  # seconds

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


def _variable(kind: str) -> str:
    return f"KLEDGER_{kind.upper()}"


def _identity(kind: str) -> Any:
    return typer.Option(envvar=_variable(kind), help=f"Ask as this {kind}.", rich_help_panel=SHARED_PANEL)


_AROUND = 10  # characters
WRITTEN = ""
"""The `shown` of an answer that the command has written to stdout itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: the document for --json, its rendering for a terminal, and whether it succeeded.

    `beside` is what is told of it on stderr: on stdout is what goes elsewhere, such as into a prompt.
    """

    document: Any
    shown: RenderableType
    ok: bool = True
    beside: RenderableType | None = None


def listed(page: Mapping[str, Any], rows: RenderableType, none: str) -> Answer:
    """A page of a list: how many of how many it has, as of which position. `none` says that there are none."""
    from rich.console import Group

    summary = f"{page['count']} of {page['total']}, as of position {page['position']}"
    return Answer(page, Group(rows, summary) if page["results"] else f"{none}; {summary}")


@dataclass
class Session:
    """One run of one command."""

    url: str
    as_json: bool
    caller: dict[str, str | None] = field(default_factory=dict)
    token_file: Path | None = None
    further: list[str] = field(default_factory=list)
    empty: str | None = None  # the environment variable that should name the caller, and is empty
    settled: bool = False  # the command has waited for the views itself

    @cached_property
    def ledger(self) -> LedgerClient:
        """A client of the node for the caller; closed when the command ends."""
        from kledger import LedgerClient

        client = LedgerClient(self.url, token=self._token())
        if sys.stderr.isatty():  # a person sees why nothing happens yet
            client.wire.connection.waits = _say
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal())

    @property
    def wire(self) -> Wire:
        """A connection to the node for the caller, of an asynchronous command, which closes it itself."""
        from kledger import AsyncLedgerClient

        client = AsyncLedgerClient(self.url, token=self._token())
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal()).wire

    def _named(self) -> dict[str, str | None]:
        if self.empty is not None:
            # Many programs treat it as unset; here a script whose substitution failed would act as the operator.
            raise IllegalScope(f"{self.empty} is empty: name somebody, or unset it", errors=[])
        return self.caller

    def _token(self) -> str | None:
        return None if self.token_file is None else _token_in(self.token_file)

    def settle(self) -> None:
        """Return when every view has what this command wrote, so that the next command sees it.

        The write is durable already: a timeout, and a refused status request, are ignored.
        """
        if self.settled or "ledger" not in self.__dict__ or not self.ledger.written:
            return
        from kledger.client.admin import pauses

        until = time.monotonic() + SETTLED_WITHIN
        try:
            for pause in pauses():  # growing pauses do not slow a view that folds thousands
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

    def print_answer(self, answer: Answer) -> None:
        """Print the answer on stdout, unless the command has written it itself."""
        if answer.shown == WRITTEN:
            return
        if self.as_json:
            _print_json(answer.document)
        else:
            from rich.console import Group

            from producers.cli.screen import stderr, stdout

            # Text to copy may be longer than a line; printed as it is, not in a group, it would be wrapped.
            stdout().print(Group(answer.shown), crop=False)
            if answer.beside is not None:
                sys.stdout.flush()  # before it on a terminal
                stderr().print(answer.beside)
        for line in _warnings(answer.document):
            sys.stderr.write(f"{line}\n")

    def refuse(self, error: LedgerError) -> None:
        """Print the error as text on stderr, and with --json as a document on stdout."""
        message = advised(error.message)
        if self.as_json:
            _print_json({"error": {"code": error.code, "message": message, "details": advised_details(error.details)}})
        sys.stderr.write(f"error: {plain(message)} ({error.code})\n")  # click would write UTF-8 to an ASCII terminal


def _say(line: str) -> None:
    sys.stderr.write(f"{plain(line)}\n")
    sys.stderr.flush()


def _warnings(document: Any) -> Iterator[str]:
    """A line for each warning and hint of a write, and for each part that an answer lacks or has out of date."""
    if not isinstance(document, dict):
        return
    for hint in document.get("hints") or ():
        yield f"hint: {plain(hint)}"
    for warning in document.get("warnings") or ():
        if isinstance(warning, str):  # of a status, whose answer shows it
            continue
        yield f"warning: {plain(advised(warning['message']))}"
    for lack in document.get("degraded") or ():
        at = "" if lack["position"] is None else f", at position {lack['position']}"
        yield f"degraded: {plain(lack['part'])}{at}: {plain(advised(lack['reason']))}"


def _token_in(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unauthenticated(
            f"the token file {file} cannot be read ({reason}): check its name, in --token-file or KLEDGER_TOKEN_FILE"
        ) from error


def _print_json(document: Any) -> None:
    import orjson

    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str)
    sys.stdout.write(_in_json(plain_json(text.decode()), sys.stdout.encoding) + "\n")


def _in_json(text: str, encoding: str | None) -> str:
    """JSON with the characters that the terminal's encoding lacks as JSON escapes."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        return "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in text)
    return text


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
    return Session(url, as_json, caller, token_file, entity or [], empty)


def _is_empty(variable: str) -> bool:
    """Whether the environment has this variable without a name in it, which typer treats as unset."""
    return not os.environ.get(variable, "somebody").strip()


def _source(context: typer.Context, parameter: str) -> str | None:
    source = context.get_parameter_source(parameter)
    return None if source is None else source.name


def _open_as_operator(as_json: AsJson = False, url: Url = DEFAULT_URL, token_file: TokenFile = None) -> Session:
    return Session(url, as_json, token_file=token_file)


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
            session.refuse(error)
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
            session.refuse(error)
            raise typer.Exit(NO_NODE if error.code == "node_unreachable" else FAILED) from error
        finally:
            session.close()
        session.print_answer(answer)
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

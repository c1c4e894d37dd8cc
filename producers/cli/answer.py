"""What a command answers, or why it is refused: printed as text or as one JSON document."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kledger.contract.errors import LedgerError
from producers.cli.advice import advised, advised_details
from producers.cli.encoding import plain, plain_json

if TYPE_CHECKING:  # it costs a good part of the time that `kledger --help` takes
    from rich.console import RenderableType

FAILED, NO_NODE = 1, 3
EXIT_CODES = "Exit codes: 0 ok; 1 failed, not healthy or differences found; 2 usage; 3 no node reachable; 130 Ctrl-C."
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


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print the answer on stdout, unless the command has written it itself."""
    if answer.shown == WRITTEN:
        return
    if as_json:
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


def print_refusal(error: LedgerError, *, as_json: bool, taken: Sequence[inspect.Parameter] = ()) -> None:
    """Print the error as text on stderr, and with --json as a document on stdout; `taken` is what the command takes."""
    from producers.cli.usage.own_names import in_own_words

    message = advised(in_own_words(error, taken))
    if as_json:
        _print_json({"error": {"code": error.code, "message": message, "details": advised_details(error.details)}})
    sys.stderr.write(f"error: {plain(message)} ({error.code})\n")  # click would write UTF-8 to an ASCII terminal


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

"""Arguments and options shared by commands, and their parsing: lists, tags, positions and times, JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import orjson
import typer

from kledger.contract.json_text import loads
from kledger.contract.lists import split_words
from kledger.contract.words import ItemLayer, MemoryConcern
from producers.cli.encoding import plain
from producers.requests.encoding import BYTE_ORDER_MARK, not_json, not_utf8

Many = list[str] | None

Labels = Annotated[
    Many, typer.Option("--visibility", help="private, shared, org, public; comma-separated or repeated.")
]
Owner = Annotated[str | None, typer.Option(help="Only the items of this owner, such as team:web.")]
_TYPES = "Types, comma-separated or repeated."
Types = Annotated[Many, typer.Option("--types", "--type", help=_TYPES)]
_NEEDED_TYPES = "What kind it is, in words of your own such as tool, strategy, plan; comma-separated or repeated."
NeededTypes = Annotated[list[str], typer.Option("--types", "--type", help=_NEEDED_TYPES, show_default=False)]
Scopes = Annotated[
    Many, typer.Option("--scopes", "--scope", help="Such as user:ann or public; comma-separated or repeated.")
]
Tags = Annotated[Many, typer.Option("--tag", help="A tag as name=value, or a word; may be repeated.")]
TagWords = Annotated[
    Many, typer.Option("--tag", help="Words among the tags, or name=value, comma-separated or repeated: any of them.")
]
Layers = Annotated[
    Many, typer.Option("--layer", help="semantic, episodic, document, plain, …; comma-separated or repeated.")
]
AsOf = Annotated[str | None, typer.Option("--as-of", help="Answer as of this position or time (2026-03-05T12:00:00Z).")]
ItemId = Annotated[str, typer.Argument(metavar="ID", help="The id of the item.", show_default=False)]
Reason = Annotated[str | None, typer.Option(help="Why; kept with the event.")]
Language = Annotated[
    Literal["zh", "en"] | None,
    typer.Option(help="Chinese or English.  [KLEDGER_LANGUAGE, else by the locale, else as the node is set up]"),
]
Record = Annotated[bool, typer.Option(help="Keep an event of what was served.")]
Concern = Annotated[MemoryConcern | None, typer.Option(help="Only those that are.")]
Before = Annotated[int | None, typer.Option(min=0, help="Before this position: `next` of the page before.")]
Since = Annotated[str | None, typer.Option(help="Changed last at or after this time (2026-03-05T12:00:00Z).")]
Until = Annotated[str | None, typer.Option(help="Changed last before this time.")]
MinScore = Annotated[int | None, typer.Option(min=1, max=5, help="Only with this score or more.")]
MaxScore = Annotated[int | None, typer.Option(min=1, max=5, help="Only with this score or less.")]
CreatedBy = Annotated[str | None, typer.Option(help="Stated first by this entity, such as agent:web.")]
LeastScore = Annotated[int, typer.Option(min=0, max=5, help="Leave out items scored lower.")]
ExpectedVersion = Annotated[int | None, typer.Option(min=1, help="Refuse when the item is at another version.")]
NewOwner = Annotated[str | None, typer.Option(help="The owner, such as agent:scribe or a mail address.")]
Limit = Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")]
Offset = Annotated[int, typer.Option(min=0, help="Leave out the first so many.")]
BeforeVersion = Annotated[int | None, typer.Option("--before", min=0, help="Only what is of earlier log positions.")]
Trace = Annotated[str | None, typer.Option("--trace", help="The trace that this happened in.")]
Message = Annotated[str | None, typer.Option("--message", help="The message that this comes from.")]


def several(values: Many) -> list[str] | None:
    """`--types a,b --types c` as three values; None when there is none."""
    return [part for value in values or [] for part in split_words(value)] or None


def layers(values: Many) -> list[ItemLayer] | None:
    """`--layer semantic,plain` as layers; None when there is none. Raises typer.BadParameter."""
    return cast("list[ItemLayer] | None", chosen(values, get_args(ItemLayer), "--layer"))


def chosen(values: Many, words: Sequence[str], option: str) -> list[str] | None:
    """`--layer a,b` as words out of these; None when there is none. Raises typer.BadParameter."""
    named = several(values) or []
    for name in named:
        if name not in words:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(words)}", param_hint=option)
    return named or None


def tags(values: Many) -> dict[str, str] | None:
    """`--tag name=value` as an object, in which a word is a name without a value; None when there is none."""
    return _named(values, "--tag", words=True)


def metadata(values: Many) -> dict[str, str] | None:
    """`--meta name=value` as an object; None when there is none."""
    return _named(values, "--meta", words=False)


def _named(values: Many, option: str, *, words: bool) -> dict[str, str] | None:
    parsed = {}
    for value in values or []:
        name, equals, text = value.partition("=")
        if not name.strip() or not (equals or words):
            raise typer.BadParameter(f"{value!r} is not name=value", param_hint=option)
        parsed[name] = text
    return parsed or None


def moment(value: str | None) -> int | str | None:
    """A position when it is a number, else a time; the node refuses anything else."""
    return int(value) if value is not None and value.isdecimal() else value


def text(value: str) -> str:
    """The text itself; for `-` standard input without its last newlines. Raises typer.BadParameter."""
    return value if value != "-" else text_in(Path("-")).rstrip("\r\n")


def contents(file: Path, option: str | None = None) -> bytes:
    """The bytes of a file, `-` for stdin. Raises typer.BadParameter."""
    try:
        return sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint=option) from error


def text_in(file: Path, option: str | None = None) -> str:
    """The text of a file in UTF-8, `-` for stdin, without a byte order mark. Raises typer.BadParameter."""
    content = contents(file, option).removeprefix(BYTE_ORDER_MARK)
    if fault := not_utf8(content):
        name = "what stands on standard input" if file == Path("-") else file
        raise typer.BadParameter(f"{name} is not UTF-8 text: {fault}", param_hint=option)
    return content.decode()


def json_object(value: str) -> dict[str, Any]:
    """A JSON object from `-` (stdin), `@FILE`, or the text itself."""
    if value == "-" or value.startswith("@"):
        content = contents(Path(value.removeprefix("@"))).removeprefix(BYTE_ORDER_MARK)
    else:
        content = value.encode(errors="surrogateescape")
    try:
        document = loads(content)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"this is not JSON: {not_json(content, error)}") from error
    if not isinstance(document, dict):
        raise typer.BadParameter('give a JSON object, for example {"timezone": "Asia/Shanghai"}')
    return document


def json_objects(file: Path, option: str) -> list[dict[str, Any]]:
    """A JSON list of objects from a file, `-` for stdin. No error quotes its content. Raises typer.BadParameter."""
    content = contents(file, option).removeprefix(BYTE_ORDER_MARK)
    try:
        document = loads(content)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{file} is not JSON: {not_json(content, error)}", param_hint=option) from None
    if not (isinstance(document, list) and all(isinstance(each, dict) for each in document)):
        raise typer.BadParameter(
            'give a JSON list of objects, for example [{"id": "code/a", "title": "A"}]', param_hint=option
        )
    return document


def unmatched(answer: Mapping[str, Any]) -> list[str]:
    """What an answer without items says of the words of its filters."""
    return [plain(each["message"]) for each in answer.get("unmatched", ())]

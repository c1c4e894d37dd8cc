"""Query and path parameters: ids, lists, positions and moments, each refused with what to write."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeVar, cast, get_args
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError
from starlette.requests import Request

from kledger.answers.overview import CHANGE_KINDS
from kledger.answers.parts import Degraded
from kledger.contract.bounds import MOST_LISTED, MOST_REASON
from kledger.contract.errors import IllegalScope, InvalidPayload
from kledger.contract.knowledge import KnowledgeType, Version
from kledger.contract.language import Language, accepted_language
from kledger.contract.lists import split_words
from kledger.contract.recall import Match
from kledger.contract.resource import bound_of, in_capitals
from kledger.contract.scopes import Caller, Visibility, check_entity, check_scope
from kledger.contract.words import RecallPath, SearchKind
from kledger.requests.owners import owner_named
from kledger.requests.recall import MOST_MESSAGE
from ledger.event import Lineage
from producers.http.identity import caller_of, lineage_of, retry_of, seen_by, writer_of
from producers.operations.desk import DEFAULT_WAIT, MAX_WAIT, Freshness
from producers.operations.models.processes import MAX_PATIENCE
from producers.operations.own_writes import OwnWrites, Written

T = TypeVar("T")
_PLUS_LOST = re.compile(r"(.+[Tt].+) (\d\d:\d\d)")
_LIKE_A_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.,]\d+)?)?)?(?P<offset>Z|[+-]\d\d:\d\d)?", re.ASCII)
_OWNER = "`type:id`, or the mail address of a user"
_TYPE: TypeAdapter[str] = TypeAdapter(KnowledgeType)
MAX_POSITION = 2**62
MOST_WORDS = 100
"""Words of a filter: each is looked for in every item, by one of the few threads that read for everybody."""
_ANY_OF = "Any of these, separated by commas"
_TYPE_TOO = "The same as `types`; both together are any of all that they name"
_LABELS = "Only private, shared, org or public items; several separated by commas"
_MIN_POSITION = "Answer out of a view that has this position"

Who = Annotated[Caller, Depends(caller_of)]
From = Annotated[Lineage, Depends(lineage_of)]
Retry = Annotated[uuid.UUID | None, Depends(retry_of)]


def _fault(field: str, reason: str) -> InvalidPayload:
    return InvalidPayload(f"{field} {reason}", errors=[{"field": field, "reason": reason}])


def decoded_id(sent: str) -> str:
    """An id as the path has it, decoded. Raises InvalidPayload."""
    # The path is matched as it was sent, so that an id may hold a slash: see producers/http/guard.py.
    try:
        return unquote(sent, errors="strict")
    except UnicodeDecodeError as error:
        raise _fault("the id in the path", "is not percent-encoded UTF-8: encode it") from error


_Decoded = AfterValidator(decoded_id)
ItemId = Annotated[str, Path(description="The id, percent-encoded"), _Decoded]
GoalId = ItemId
RecallId = ItemId
RecordId = ItemId
SessionId = ItemId
ResourceId = Annotated[str, Path(description="The id; its slashes raw, or as %2F"), _Decoded]
DocumentId = ResourceId
ProjectId = Annotated[str, Path(description="Percent-encoded; ledger for the scope project:ledger"), _Decoded]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader wrote or says it has seen, which its answer shows or says in `degraded` that it does not."""

    written: Written
    degraded: list[Degraded]


async def seen_of(request: Request, caller: Who) -> Seen:
    """What this reader wrote or says it has seen. Raises InvalidPayload."""
    own: OwnWrites = request.app.state.own_writes
    written, stated = own.of(writer_of(request, caller)), seen_by(request)
    if stated:
        written = Written(max(written.view, stated), max(written.vectors, stated))
    # Kept with the request as well: that something is not there is an error, and means little where not all is there.
    degraded: list[Degraded] = []
    request.state.degraded = degraded
    return Seen(written, degraded)


Own = Annotated[Seen, Depends(seen_of)]


async def _freshness(
    own: Own,
    min_position: Annotated[int, Query(ge=0, le=MAX_POSITION, description=_MIN_POSITION)] = 0,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for it")] = DEFAULT_WAIT,
) -> Freshness:
    return Freshness(min_position, wait, own.written, own.degraded)


Fresh = Annotated[Freshness, Depends(_freshness)]


def moment_or_position(value: str, field: str) -> int | datetime:
    """A log position, or an RFC 3339 moment with its offset. Raises InvalidPayload."""
    text = value.strip()
    if text.isdecimal() and text.isascii() and len(text) < 20:
        return int(text)
    lost = _PLUS_LOST.fullmatch(text)  # an unescaped + arrives as a blank
    stated = in_capitals(f"{lost[1]}+{lost[2]}" if lost else text)
    if like := _LIKE_A_MOMENT.fullmatch(stated):
        if not _in_calendar(stated):
            raise _fault(field, f"{value[:100]!r} is no moment of the calendar: write for example {_EXAMPLE}")
        if "T" not in stated:
            or_position = "a position of the log, or " if field in ("as_of", "to") else ""
            fault = f"{value[:100]!r} is a day, and does not say its offset from UTC: write {or_position}{_EXAMPLE}"
            raise _fault(field, fault)
        if like["offset"] is None:
            raise _fault(field, f"{value[:100]!r} does not say its offset from UTC: write {_EXAMPLE}")
    try:
        return bound_of(stated)
    except ValueError as error:
        raise _fault(field, f"{value[:100]!r} is neither a position nor a moment: write 42 or {_EXAMPLE}") from error


def _in_calendar(stated: str) -> bool:
    """Whether there is such a day, time and offset: what lacks its offset and is none is told that it is none."""
    try:
        datetime.fromisoformat(stated)
    except ValueError:
        return False
    return True


_EXAMPLE = "2026-03-05T12:00:00Z"


def moment_alone(value: str | None, field: str) -> datetime | None:
    """An RFC 3339 moment with its offset. Raises InvalidPayload."""
    moment = None if value is None else moment_or_position(value, field)
    if isinstance(moment, int):
        raise _fault(field, f"is a number: write a moment, such as {_EXAMPLE}")
    return moment


async def _as_of(
    as_of: Annotated[str | None, Query(description="A log position, or an RFC 3339 moment")] = None,
) -> int | datetime | None:
    return None if as_of is None else moment_or_position(as_of, "as_of")


AsOf = Annotated[int | datetime | None, Depends(_as_of)]


def _parts(value: str | None, field: str, most: int = MOST_WORDS) -> list[str]:
    named = split_words(value or "")
    if len(named) > most:
        raise _fault(field, f"names {len(named):,} words, {most:,} are the limit: ask for them in several requests")
    return named


def named_layers(layer: str | None, one: TypeAdapter[T]) -> list[T]:
    """`semantic,short` as layers of the type `one`. Raises InvalidPayload."""
    try:
        return [one.validate_python(name) for name in _parts(layer, "layer")]
    except ValidationError as error:
        known = ", ".join(one.json_schema()["enum"])
        raise _fault("layer", f"names {str(layer)[:100]!r}: it is {known}, or several separated by commas") from error


def named_words(words: str | None, field: str) -> list[str]:
    """`a,b` as words, each once. Raises InvalidPayload."""
    return _parts(words, field)


def named_ids(ids: str | None, field: str) -> list[str]:
    """`a,b` as ids, each once. Raises InvalidPayload."""
    return _parts(ids, field, MOST_LISTED)


def named_types(types: str | None, type: str | None = None, field: str = "types") -> list[str]:
    """`a,b` as types of knowledge, or as other words of the same form. Raises InvalidPayload."""
    named = list(dict.fromkeys([*_parts(types, field), *_parts(type, "type")]))
    for name in named:
        try:
            _TYPE.validate_python(name)
        except ValidationError as error:
            example = "preference,mood" if field == "kind" else "strategy,tool"
            raise _fault(field, f"names {name[:100]!r}, which is no such word: write for example {example}") from error
    return named


def named_changes(change: str | None) -> list[str]:
    """`rated,retired` as changes of items. Raises InvalidPayload."""
    named = _parts(change, "change")
    for name in named:
        if name not in CHANGE_KINDS:
            known = ", ".join(CHANGE_KINDS)
            raise _fault("change", f"names {name[:100]!r}: it is {known}, or several of them separated by commas")
    return named


def named_labels(visibility: str | None) -> list[Visibility]:
    """`org,public` as labels of visibility. Raises InvalidPayload."""
    named = _parts(visibility, "visibility")
    for name in named:
        if name not in get_args(Visibility):
            known = ", ".join(get_args(Visibility))
            raise _fault("visibility", f"names {name[:100]!r}: it is {known}, or several of them separated by commas")
    return cast(list[Visibility], named)


async def _types(
    types: Annotated[str | None, Query(description=_ANY_OF)] = None,
    type: Annotated[str | None, Query(description=_TYPE_TOO)] = None,
) -> list[str]:
    return named_types(types, type)


async def _visibility(visibility: Annotated[str | None, Query(description=_LABELS)] = None) -> list[Visibility]:
    return named_labels(visibility)


Labels = Annotated[list[Visibility], Depends(_visibility)]


Types = Annotated[list[str], Depends(_types)]


async def _scopes(
    scopes: Annotated[str | None, Query(description=_ANY_OF)] = None,
) -> list[str]:
    return [told_of("scopes", check_scope, name) for name in _parts(scopes, "scopes")]


Scopes = Annotated[list[str], Depends(_scopes)]


Before = Annotated[
    int | None, Query(ge=0, le=MAX_POSITION, description="What begins before this position: `next` of the page before")
]

BeforeVersion = Annotated[int | None, Query(ge=0, le=MAX_POSITION, description="Versions of earlier positions")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
Offset = Annotated[int, Query(ge=0, le=2**31)]


async def _owner(owner: Annotated[str | None, Query(description=_OWNER)] = None) -> str | None:
    return entity_named(owner)


def entity_named(owner: str | None, field: str = "owner") -> str | None:
    """An entity, `type:id` or the mail address of a user. Raises IllegalScope, which names the field."""
    return None if owner is None else told_of(field, check_entity, str(owner_named(owner)))


def told_of(field: str, check: Callable[[str], str], value: str) -> str:
    """What `check` makes of a value; its refusal with the field that the value stands in."""
    try:
        return check(value)
    except IllegalScope as error:
        raise IllegalScope(f"{field} {error.message}", errors=[{"field": field, "reason": error.message}]) from error


Owner = Annotated[str | None, Depends(_owner)]
Reason = Annotated[str | None, Query(max_length=MOST_REASON, description="Why, for whoever reads the history")]
ExpectedVersion = Annotated[Version | None, Query(description="Refuse when the item is at another version")]


async def _language(
    request: Request,
    language: Annotated[Language | None, Query(description="Of texts; else as Accept-Language says")] = None,
) -> Language:
    stated = language or accepted_language(request.headers.get("accept-language", ""))
    chosen: Language = stated or request.app.state.desk.language
    return chosen


InLanguage = Annotated[Language, Depends(_language)]


Patience = Annotated[
    float, Query(alias="wait", ge=0, le=MAX_PATIENCE, description="Seconds to wait for the model's work")
]


class FreshQuery(BaseModel):
    """How new an answer has to be."""

    min_position: Annotated[int, Field(ge=0, le=MAX_POSITION, description=_MIN_POSITION)] = 0
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to wait for it")] = DEFAULT_WAIT

    def freshness(self, own: Seen) -> Freshness:
        """How new the answer has to be; it gathers what the answer lacks."""
        return Freshness(self.min_position, self.wait, own.written, own.degraded)


class PageQuery(FreshQuery):
    """Which page of a list, where nothing else is asked of it."""

    limit: Limit = 10
    offset: Offset = 0
    before: Before = None


class ReadQuery(FreshQuery):
    """How one item is read."""

    as_of: Annotated[str | None, Field(description="A log position, or an RFC 3339 moment")] = None

    def moment(self) -> int | datetime | None:
        """When the answer is to hold. Raises InvalidPayload."""
        return None if self.as_of is None else moment_or_position(self.as_of, "as_of")


_KIND = "What is recorded; `page` where a person looks, which counts for nothing"
_MATCH = "Leave out results that cover less of the query than this share"


class SearchQuery(ReadQuery):
    """What a search asks."""

    q: Annotated[str, Field(min_length=1, max_length=MOST_MESSAGE, description="What to look for, in words")]
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    min_match: Annotated[Match, Field(description=_MATCH)] = 0.0
    types: Annotated[str | None, Field(description=_ANY_OF)] = None
    type: Annotated[str | None, Field(description=_TYPE_TOO)] = None
    owner: Annotated[str | None, Field(description=_OWNER)] = None
    visibility: Annotated[str | None, Field(description=_LABELS)] = None
    paths: RecallPath = "fused"
    record: bool = True
    kind: Annotated[SearchKind, Field(description=_KIND)] = "search"
    explain: Annotated[bool, Field(description="Answer why each result stands where it does (`explained`)")] = False
    route: Annotated[bool | None, Field(description="Have a model choose first; by default as the node is set up")] = (
        None
    )

    def named_types(self) -> list[str]:
        """The types asked for. Raises InvalidPayload."""
        return named_types(self.types, self.type)

    def owned_by(self) -> str | None:
        """Whose items alone. Raises IllegalScope."""
        return entity_named(self.owner)


Read = Annotated[ReadQuery, Query()]

"""What do query and path parameters mean? Ids, lists, positions and moments, each refused with what to write."""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ledger.errors import InvalidPayload
from ledger.event import Lineage
from ledger.events.knowledge import KnowledgeType
from ledger.scopes import Caller, check_entity, check_scope
from producers.http.identity import caller_of, lineage_of, retry_of
from producers.operations.desk import DEFAULT_WAIT, MAX_WAIT, Freshness
from producers.operations.processes import MAX_PATIENCE
from producers.operations.recall import Paths

_PLUS_LOST = re.compile(r"(.+T.+) (\d\d:\d\d)")
_TYPE: TypeAdapter[str] = TypeAdapter(KnowledgeType)
MAX_POSITION = 2**62
_MIN_POSITION = "Answer out of a view that has this position"

Who = Annotated[Caller, Depends(caller_of)]
From = Annotated[Lineage, Depends(lineage_of)]
Retry = Annotated[uuid.UUID | None, Depends(retry_of)]


def _fault(field: str, reason: str) -> InvalidPayload:
    return InvalidPayload(f"{field} {reason}", errors=[{"field": field, "reason": reason}])


def _decoded_id(sent: str) -> str:
    """An id as the path has it, decoded. Raises InvalidPayload."""
    # The path is matched as it was sent, so that an id may hold a slash: see producers/http/guard.py.
    try:
        return unquote(sent, errors="strict")
    except UnicodeDecodeError as error:
        raise _fault("the id in the path", "is not percent-encoded UTF-8: encode it") from error


async def _item_id(item_id: Annotated[str, Path(description="The id, percent-encoded")]) -> str:
    return _decoded_id(item_id)


async def _goal_id(goal_id: Annotated[str, Path(description="The id, percent-encoded")]) -> str:
    return _decoded_id(goal_id)


async def _resource_id(resource_id: Annotated[str, Path(description="The id; its slashes raw, or as %2F")]) -> str:
    return _decoded_id(resource_id)


ItemId = Annotated[str, Depends(_item_id)]
GoalId = Annotated[str, Depends(_goal_id)]
ResourceId = Annotated[str, Depends(_resource_id)]


async def _freshness(
    min_position: Annotated[int, Query(ge=0, le=MAX_POSITION, description=_MIN_POSITION)] = 0,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for it")] = DEFAULT_WAIT,
) -> Freshness:
    return Freshness(min_position, wait)


Fresh = Annotated[Freshness, Depends(_freshness)]


def moment_or_position(value: str, field: str) -> int | datetime:
    """A log position, or an RFC 3339 moment with its offset. Raises InvalidPayload."""
    text = value.strip()
    if text.isdecimal() and text.isascii() and len(text) < 20:
        return int(text)
    lost = _PLUS_LOST.fullmatch(text)  # an unescaped + arrives as a blank
    try:
        moment = datetime.fromisoformat(f"{lost[1]}+{lost[2]}" if lost else text)
    except ValueError as error:
        raise _fault(field, f"{value[:100]!r} is neither a position nor a moment: write 42 or {_EXAMPLE}") from error
    if moment.tzinfo is None:
        raise _fault(field, f"{value[:100]!r} does not say its offset from UTC: write {_EXAMPLE}")
    return moment


_EXAMPLE = "2026-03-05T12:00:00Z"


async def _as_of(
    as_of: Annotated[str | None, Query(description="A log position, or an RFC 3339 moment")] = None,
) -> int | datetime | None:
    return None if as_of is None else moment_or_position(as_of, "as_of")


AsOf = Annotated[int | datetime | None, Depends(_as_of)]


def _parts(value: str | None) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))


def named_types(types: str | None) -> list[str]:
    """`a,b` as types of knowledge. Raises InvalidPayload."""
    named = _parts(types)
    for name in named:
        try:
            _TYPE.validate_python(name)
        except ValidationError as error:
            raise _fault("types", f"names {name[:100]!r}, which is no type: write for example strategy,tool") from error
    return named


async def _types(
    types: Annotated[str | None, Query(description="Any of these, separated by commas")] = None,
) -> list[str]:
    return named_types(types)


Types = Annotated[list[str], Depends(_types)]


async def _scopes(
    scopes: Annotated[str | None, Query(description="Any of these, separated by commas")] = None,
) -> list[str]:
    return [check_scope(name) for name in _parts(scopes)]


Scopes = Annotated[list[str], Depends(_scopes)]


async def _owner(owner: Annotated[str | None, Query(description="`type:id`")] = None) -> str | None:
    return None if owner is None else check_entity(owner)


Owner = Annotated[str | None, Depends(_owner)]
Reason = Annotated[str | None, Query(max_length=10_000, description="Why, for whoever reads the history")]


Patience = Annotated[
    float, Query(alias="wait", ge=0, le=MAX_PATIENCE, description="Seconds to wait for the model's work")
]


class ReadQuery(BaseModel):
    """How one item is read."""

    as_of: Annotated[str | None, Field(description="A log position, or an RFC 3339 moment")] = None
    min_position: Annotated[int, Field(ge=0, le=MAX_POSITION, description=_MIN_POSITION)] = 0
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to wait for it")] = DEFAULT_WAIT

    def moment(self) -> int | datetime | None:
        """When the answer is to hold. Raises InvalidPayload."""
        return None if self.as_of is None else moment_or_position(self.as_of, "as_of")

    def freshness(self) -> Freshness:
        """How new the view has to be."""
        return Freshness(self.min_position, self.wait)


class SearchQuery(ReadQuery):
    """What a search asks."""

    q: Annotated[str, Field(min_length=1, max_length=4_000, description="What to look for, in words")]
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    types: Annotated[str | None, Field(description="Any of these, separated by commas")] = None
    paths: Paths = "fused"
    record: bool = True
    route: Annotated[bool | None, Field(description="Have a model choose first; by default as the node is set up")] = (
        None
    )

    def named_types(self) -> list[str]:
        """The types asked for. Raises InvalidPayload."""
        return named_types(self.types)


Search = Annotated[SearchQuery, Query()]
Read = Annotated[ReadQuery, Query()]

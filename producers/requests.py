"""What may be asked of a door, field by field: the bodies of sources 001 and 003, typos refused.

`read_json` turns bytes into a document, `parse` a document into one of these models; both say what is wrong
and what to do. Every door reads its input here, so that each refuses the same things in the same words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ledger.envelope import Short
from ledger.errors import BadJson, IllegalScope, InvalidPayload
from ledger.event import JsonObject
from ledger.events.knowledge import (
    Case,
    Confidence,
    Count,
    Id,
    KnowledgeType,
    Scopes,
    Score,
    Source,
    Text,
    Types,
)
from ledger.events.process import ModelName
from ledger.events.scope_type import Priority, TypeWord
from ledger.scopes import Entity, Visibility

MAX_DEPTH = 32
MAX_BATCH = 1_000
MAX_FEEDBACK = 5_000

M = TypeVar("M", bound=BaseModel)

# What pydantic says, in the words of a door: what to do about it.
_ADVICE = {
    "extra_forbidden": "is not a field here: correct its spelling or leave it out",
    "missing": "is required",
    "string_unicode": "is not Unicode text (a lone surrogate?): send UTF-8",
}
_SCOPE_FIELDS = {"scopes", "owner", "visible_scopes", "entity"}
_SCOPE_FAULTS = {"value_error", "string_too_long"}


def check_document(value: JsonObject) -> JsonObject:
    """Return a free-form JSON object that every view can keep; ValueError says what it holds instead."""
    _check_value(value, depth=1)
    return value


def _check_value(value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep: flatten it")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict):
        for name, part in value.items():
            if not isinstance(name, str):
                raise ValueError(f"has the key {name!r}, and keys are strings")
            _check_text(name)
            _check_value(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _check_value(part, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"holds {value}, which JSON has no form for: leave it out or write it as text")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("holds an integer beyond 64 bits: write it as text")


def _check_text(value: str) -> None:
    if "\0" in value:
        raise ValueError("holds a NUL character, which the views cannot keep: remove it")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("holds a lone surrogate, which is not Unicode text: send UTF-8")


def _no_control(value: str) -> str:
    if not value.isprintable() or value != value.strip():
        raise ValueError("has control characters or blanks around it: an id is printable text")
    return value


Document = Annotated[JsonObject, AfterValidator(check_document)]
NewId = Annotated[Id, AfterValidator(_no_control)]


class Asked(BaseModel):
    """Base of every request body: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SourceBody(Source):
    """`source` of an item."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CaseBody(Case):
    """One use of an item: what for, with which outcome, why, when, in which trace."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EvalBody(Asked):
    """What an item begins with. Histories are made of cases and cannot be stated."""

    score: Score | None = None
    helpful: Count | None = None
    harmful: Count | None = None
    confidence: Confidence | None = None
    helpful_history: Annotated[list[Any], Field(max_length=0)] = []
    harmful_history: Annotated[list[Any], Field(max_length=0)] = []


class AclEntryBody(Asked):
    """Somebody who may read an item beside those in its scopes (source 002)."""

    entity: Entity
    permission: Literal["read", "read_write"] = "read"


def _each_once(acl: list[AclEntryBody]) -> list[AclEntryBody]:
    if len({entry.entity for entry in acl}) < len(acl):
        raise ValueError("names an entity twice: state each once, with its one permission")
    return acl


Acl = Annotated[list[AclEntryBody], Field(max_length=64), AfterValidator(_each_once)]


class SaveRequest(Asked):
    """A new item (source 001). `types` or a single `type`; the owner defaults to who asks, scopes to the owner.

    The forms of sources 000 and 002 are taken too: `acl` names who else may read or revise it; `visibility` follows
    from scopes and ACL and has to agree with them; `created_at` becomes `source.timestamp` when that is absent,
    `updated_at` is not kept, since both are the ledger's own for the new item.
    """

    id: NewId | None = None
    message_id: Short | None = None
    trace_id: Short | None = None
    type: KnowledgeType | None = None
    types: Types | None = None
    task: str
    content: Text
    tags: Document | None = None
    scopes: Scopes | None = None
    owner: Entity | None = None
    visibility: Visibility | None = None
    acl: Acl | None = None
    resource_ids: list[Text] | None = None
    source: SourceBody | None = None
    score: Score | None = None
    eval: EvalBody | None = None
    created_at: str | None = None
    updated_at: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.types is None and self.type is None:
            raise ValueError("states neither `types` nor `type`: name at least one kind of knowledge")
        if self.types is not None and self.type is not None and self.type not in self.types:
            raise ValueError(f"`type` {self.type!r} is not one of `types`: state one of the two")
        return self

    def kinds(self) -> list[str]:
        """The kinds of knowledge, each once, in the order given."""
        return list(dict.fromkeys(self.types or [self.type or ""]))


class SaveManyRequest(Asked):
    """Up to 1,000 payloads of POST /api/knowledge; each is judged on its own."""

    items: Annotated[list[JsonObject], Field(min_length=1, max_length=MAX_BATCH)]


class UpdateRequest(Asked):
    """Feedback on an item (source 001), and for its owner the fields to state anew."""

    add_helpful_case: CaseBody | None = None
    add_harmful_case: CaseBody | None = None
    update_score: Score | None = None
    evolve_feedback: Text | None = None
    evolve_dry_run: bool = False
    evolve_model: ModelName | None = None
    types: Types | None = None
    task: str | None = None
    content: Text | None = None
    tags: Document | None = None
    scopes: Scopes | None = None
    owner: Entity | None = None
    resource_ids: list[Text] | None = None
    source: SourceBody | None = None
    expected_version: Annotated[int, Field(ge=1)] | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _evolves(self) -> Self:
        if self.evolve_feedback is None and (self.evolve_dry_run or self.evolve_model is not None):
            raise ValueError("`evolve_dry_run` and `evolve_model` go with `evolve_feedback`: say what is to be better")
        return self


class ShareRequest(Asked):
    """The whole ACL of an item; an empty one leaves it to its scopes."""

    acl: Acl


class ScopeTypeRequest(Asked):
    """A type of scope, and its place among user 6, project 5, agent 4, team 3, org 2, public 1."""

    type: TypeWord
    priority: Priority


class FeedbackBody(Asked):
    """One verdict of a batch."""

    knowledge_id: Id
    is_helpful: bool
    case: CaseBody | None = None


class FeedbackRequest(Asked):
    """Up to 5,000 verdicts; each is judged on its own."""

    feedback_list: Annotated[list[JsonObject], Field(min_length=1, max_length=MAX_FEEDBACK)]


class ContentRequest(Asked):
    """The content of a memory, whole (PUT) or as a JSON merge patch (PATCH)."""

    content: Document


class FocusRequest(Asked):
    """What a goal is about, and how much knowledge to inject (the defaults of source 001)."""

    description: Annotated[str, Field(min_length=1, max_length=4_000)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 3
    min_score: Annotated[int, Field(ge=0, le=5)] = 3


def read_json(body: bytes) -> Any:
    """Parse a request body. Raises BadJson with the place of the fault, InvalidPayload for a NUL character.

    NaN, lone surrogates and nesting beyond 1,024 are no JSON to this reader; deeper limits are the fields'.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"the body is not valid JSON: {error}") from error
    if b"\\u0000" in body:
        refuse_nul(document, "the body")
    return document


def refuse_nul(document: object, what: str) -> None:
    """Raise InvalidPayload naming the first field of `document` that holds a NUL character."""
    stack: list[tuple[str, object]] = [("", document)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, str):
            if "\0" in value:
                reason = "holds a NUL character, which the views cannot keep: remove it"
                raise InvalidPayload(
                    f"{what} does not fit: {place or 'it'} {reason}",
                    errors=[{"field": place, "reason": reason}],
                )
        elif isinstance(value, Mapping):
            for name, part in value.items():
                stack += [(f"{place}.{name}".lstrip("."), part), (place, name)]
        elif isinstance(value, list | tuple):
            stack += [(f"{place}.{index}".lstrip("."), part) for index, part in enumerate(value)]


def parse(model: type[M], document: object, what: str = "the body") -> M:
    """A document as `model`. Raises InvalidPayload or IllegalScope naming every field that is wrong."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise refusal(error.errors(include_url=False, include_input=False), what) from error


def refusal(faults: Sequence[Any], what: str = "the body") -> InvalidPayload | IllegalScope:
    """The error of ours for pydantic's list of faults: illegal_scope when scopes are all that is wrong."""
    errors = [
        {"field": ".".join(map(str, fault["loc"])), "reason": _reason(fault)}
        for fault in faults  # loc, type and msg, as pydantic documents them
    ]
    told = "; ".join(f"{error['field'] or 'it'} {error['reason']}" for error in errors[:5])
    more = f"; and {len(errors) - 5} more" if len(errors) > 5 else ""
    kind = IllegalScope if faults and all(map(_is_about_scopes, faults)) else InvalidPayload
    return kind(f"{what} does not fit: {told}{more}", errors=errors)


def _is_about_scopes(fault: Any) -> bool:
    return fault["type"] in _SCOPE_FAULTS and bool(_SCOPE_FIELDS.intersection(map(str, fault["loc"])))


def _reason(fault: Any) -> str:
    advice = _ADVICE.get(fault["type"])
    if advice is not None:
        return advice
    message = str(fault["msg"]).removeprefix("Value error, ")
    return message if fault["type"] == "value_error" else f"is wrong: {message}"

"""Reads a request body into its model.

`read_json` turns bytes into a document, `parse` a document into a model of kledger/requests; both say what is wrong
and what to do. Every interface reads its input here, so that each refuses the same things in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import orjson
from pydantic import AliasChoices, BaseModel, ValidationError

from kledger.contract.errors import BadJson, IllegalScope, InvalidPayload, PayloadTooLarge
from kledger.contract.faults import in_plain_words
from kledger.contract.json_text import Unfit, loads
from ledger.event import JsonObject
from ledger.runtime.gc_tuning import let_go
from ledger.wire.envelope import NUL, refuse_nul
from producers.requests.elsewhere import here
from producers.requests.encoding import BYTE_ORDER_MARK, not_json

MOST_NESTED = 200
"""How deep a body may be nested as a whole. It is kept, compared and answered by a writer that goes 254 deep."""
MOST_FIELDS = 250_000
"""Fields of all objects of a body together: more than an event has room for. One that is unknown takes a kilobyte and
more until it is refused, whatever it took in the body."""

M = TypeVar("M", bound=BaseModel)

MOST_TOLD, LONGEST = 20, 300
"""Faults that an error tells of, and characters of the name of a place: a body may be nothing but faults."""
MOST_LOOKED_AT = 1_000
"""Faults that are put into words, and unknown fields that are counted one by one."""

_HAS_TO_BE = "has to be "
_NO_FIELD = "is not a field here"
_THERE_ARE = f"{_NO_FIELD}: there are "
_FORM = re.compile(r"(?:constrained-)?(?:str|int)|.+[\[(].*[\])]", re.DOTALL)
"""What pydantic calls a form in the place of a fault: `int`, `list[constrained-str]`."""
_SCOPE_FIELDS = {"scopes", "owner", "visible_scopes", "entity"}
_SCOPE_FAULTS = {"value_error", "string_too_long"}


def read_json(body: bytes) -> Any:
    """Parse a request body. Raises BadJson with the place of the fault, InvalidPayload for a NUL character, nesting,
    a whole number beyond 64 bits or a key that stands twice, PayloadTooLarge for too many fields.

    NaN, lone surrogates and nesting beyond 1,024 are no JSON to this reader; stricter limits are the fields'. A byte
    order mark at the beginning is read over, as RFC 8259 allows.
    """
    try:
        document = loads(body.removeprefix(BYTE_ORDER_MARK))
    except Unfit as error:
        raise InvalidPayload(
            f"the body does not fit: {error}", errors=[{"field": error.place, "reason": error.reason}]
        ) from error
    except orjson.JSONDecodeError as error:
        raise BadJson(f"the body is not valid JSON: {not_json(body, error)}") from error
    if NUL in body:
        refuse_nul(document, "the body")
    if body.count(b":") > MOST_FIELDS:
        refuse_many_fields(document)
    if body.count(b"{") + body.count(b"[") > MOST_NESTED:
        _refuse_nested(document)
    return document


def refuse_many_fields(document: object, what: str = "the body") -> None:
    """Raise PayloadTooLarge where the objects of a document have more than MOST_FIELDS together."""
    fields, within = 0, [document]
    while within:
        part = within.pop()
        if isinstance(part, dict):
            fields += len(part)
            within += (each for each in part.values() if each.__class__ in _NESTING)
        elif isinstance(part, list):
            within += (each for each in part if each.__class__ in _NESTING)
    if fields > MOST_FIELDS:
        raise PayloadTooLarge(
            f"{what} has {fields:,} fields in its objects, {MOST_FIELDS:,} are the limit: send less at once"
        )


_NESTING = {dict, list}


def _refuse_nested(document: object) -> None:
    """Raise InvalidPayload where a document is nested deeper than MOST_NESTED."""
    level = [document]
    for _ in range(MOST_NESTED):
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                below += part.values()
            elif isinstance(part, list):
                below += part
        level = [part for part in below if part.__class__ in _NESTING]
        if not level:
            return
    raise InvalidPayload(f"the body is nested more than {MOST_NESTED} deep: flatten it", errors=[])


def parse(model: type[M], document: object, what: str = "the body") -> M:
    """A document as `model`. Raises InvalidPayload or IllegalScope naming every field that is wrong."""
    read, dropped = document, 0
    if isinstance(document, dict) and len(document) > MOST_LOOKED_AT:
        read, dropped = without_most_unknown(model, document)
    try:
        return model.model_validate(read)
    except ValidationError as error:
        refused = error
    if refused.error_count() > MOST_LOOKED_AT and not dropped:
        read, dropped = without_most_unknown(model, document)
        try:
            return model.model_validate(read)
        except ValidationError as error:
            refused = error
    faults = refused.errors(include_url=False, include_input=False)
    raise refusal(faults, what, fields_in(model), dropped) from refused


def without_most_unknown(model: type[BaseModel], document: object) -> tuple[object, int]:
    """A document without most of the fields that its models do not have, where they are very many, and how many were
    left out: each is a fault of its own, and takes more time and memory than it took in the body.

    So many stay that it is refused: of those that say something as of those that do not, which some models read over.
    """
    kept = {False: 0, True: 0}
    dropped = 0

    def rest_of(part: object, model: type[BaseModel]) -> object:
        nonlocal dropped
        if isinstance(part, list):
            return [rest_of(each, model) for each in part]
        if not isinstance(part, dict):
            return part
        there, is_closed, rest = _models_in(model), model.model_config.get("extra") == "forbid", dict[str, Any]()
        for name, value in part.items():
            says_nothing = value in (None, [], {})
            if name in there:
                within = there[name]
                rest[name] = value if within is None else rest_of(value, within)
            elif is_closed and kept[says_nothing] >= MOST_LOOKED_AT:
                dropped += 1
            else:
                kept[says_nothing] += 1
                rest[name] = value
        return rest

    return rest_of(document, model), dropped


@cache
def _models_in(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """The fields of a model by every name that a document may have for them, and of what model alone each is."""
    found: dict[str, type[BaseModel] | None] = {}
    for field, info in model.model_fields.items():
        within = None if _may_be_free(info.annotation) else _one_model(info.annotation)
        others = info.validation_alias
        names = others.choices if isinstance(others, AliasChoices) else [others]
        found |= {name: within for name in (field, info.alias, *names) if isinstance(name, str)}
    return found


def _may_be_free(annotation: Any) -> bool:
    """Whether what stands there may be an object with whatever names."""
    origin = get_origin(annotation) or annotation
    if origin is Any or origin is object or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return True
    return any(_may_be_free(each) for each in get_args(annotation) if isinstance(each, type) or get_origin(each))


FieldsAt = Callable[[Sequence[int | str]], Sequence[str]]
"""The fields that there are at a place of a document; none where nobody knows."""


def fields_in(model: type[BaseModel]) -> FieldsAt:
    """The fields of a model's document, and of each object within it that is of one model."""

    def at(place: Sequence[int | str]) -> Sequence[str]:
        found: type[BaseModel] | None = model
        for part in place:
            if found is not None and part in found.model_fields:
                found = _one_model(found.model_fields[str(part)].annotation)
            elif not isinstance(part, int):  # within free-form JSON, or one of several forms
                return ()
        return () if found is None else list(found.model_fields)

    return at


def _one_model(annotation: Any) -> type[BaseModel] | None:
    """The model of an annotation, or of the entries of a list; None where there is none, or several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = {model for each in get_args(annotation) if (model := _one_model(each)) is not None}
    return found.pop() if len(found) == 1 else None


def unknown_fields(_place: Sequence[int | str]) -> Sequence[str]:
    """Of a document that nobody knows the fields of."""
    return ()


def refusal(
    faults: Sequence[Any], what: str = "the body", fields: FieldsAt = unknown_fields, dropped: int = 0
) -> InvalidPayload | IllegalScope:
    """The error of ours for pydantic's list of faults: illegal_scope when scopes are all that is wrong. `fields` are
    those that there are, where the caller knows them. Of more faults than MOST_TOLD, `more` says how many there are,
    with those that were `dropped` before."""
    for fault in faults:
        if isinstance(raised := (fault.get("ctx") or {}).get("error"), Exception):
            let_go(raised)  # it came through whoever has the faults, and would hold them, and what they are of
    told = _told(faults[:MOST_LOOKED_AT], fields)
    of = len(told) + len(faults[MOST_LOOKED_AT:]) + dropped
    errors = [
        {"field": place, "reason": " or ".join((reasons[0], *(each.removeprefix(_HAS_TO_BE) for each in reasons[1:])))}
        for place, reasons in told[:MOST_TOLD]
    ]
    details = in_details(errors, of)
    errors = details["errors"]
    shown = errors[:5]
    reasons = "; ".join(
        f"{error['field'] or 'it'} {_NO_FIELD if _is_said(error, shown[:at]) else error['reason']}"
        for at, error in enumerate(shown)
    )
    more = f"; and {of - 5} more" if of > 5 else ""
    kind = IllegalScope if faults and all(map(_is_about_scopes, faults)) else InvalidPayload
    return kind(f"{what} does not fit: {reasons}{more}", **details)


def _is_said(error: JsonObject, before: Sequence[JsonObject]) -> bool:
    """Whether an error before it has told already which fields there are."""
    reason = error["reason"]
    return reason.startswith(_THERE_ARE) and any(each["reason"] == reason for each in before)


def in_details(errors: Sequence[JsonObject], of: int) -> JsonObject:
    """The details of an error with these faults, of so many: as many as it tells of, and how many `more` there are."""
    told = [{**error, "field": str(error["field"])[:LONGEST]} for error in errors[:MOST_TOLD]]
    return {"errors": told} | ({"more": of - len(told)} if of > len(told) else {})


def some_of(names: Sequence[str]) -> str:
    """Names as a message tells them: the first five, and how many more there are."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(name[:LONGEST] for name in names[:5]) + more


def _told(faults: Sequence[Any], fields: FieldsAt) -> list[tuple[str, list[str]]]:
    """Each place with what is wrong there. Of a value that may have several forms it is what is wrong in the one that
    it has; where it has none, all that it may be.
    """
    placed = [(*_place(fault), _reason(fault, fields)) for fault in faults]  # loc and type as pydantic documents them
    has_a_form = {several for place, several, reason in placed if several and not _no_form(place, several, reason)}
    told: dict[tuple[str, str | None], list[str]] = {}
    for place, several, reason in placed:
        if several not in has_a_form or not _no_form(place, several, reason):
            told.setdefault((place, several), []).append(reason)
    return [(place, reasons) for (place, _), reasons in told.items()]


def _place(fault: Any) -> tuple[str, str | None]:
    """A place in words, and the value there that may have several forms: pydantic puts the form that it tried there."""
    parts = [str(part) for part in fault["loc"]]
    named = len(parts) if fault["type"] != "extra_forbidden" else 0  # whatever name was not known
    at = next((at for at in range(1, named) if _FORM.fullmatch(parts[at])), None)
    return (".".join(parts), None) if at is None else (".".join(parts[:at] + parts[at + 1 :]), ".".join(parts[:at]))


def _no_form(place: str, several: str | None, reason: str) -> bool:
    return place == several and reason.startswith((f"{_HAS_TO_BE}a ", f"{_HAS_TO_BE}an "))


def _is_about_scopes(fault: Any) -> bool:
    return fault["type"] in _SCOPE_FAULTS and bool(_SCOPE_FIELDS.intersection(map(str, fault["loc"])))


def _reason(fault: Any, fields: FieldsAt) -> str:
    if fault["type"] == "extra_forbidden" and (there := fields(fault["loc"][:-1])):
        called = here(str(fault["loc"][-1]), there)
        return f"{_NO_FIELD}: here it is {called}" if called else f"{_THERE_ARE}{', '.join(there)}"
    return in_plain_words(fault)

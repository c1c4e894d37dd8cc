"""Event schemas in SQL: each pydantic model, translated to DuckDB types and predicates.

The model is the authority. Whatever SQL accepts, the model accepts too (a property in the tests); all other events are
validated by the model. A constraint without a SQL form fails at import, not in a fold.
"""

from __future__ import annotations

import types
from collections.abc import Collection
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types as at
import orjson
from pydantic import AfterValidator, AllowInfNan, BaseModel, StringConstraints
from pydantic.fields import FieldInfo

from kledger.contract import bounds, entities, knowledge, resource, scope_fields
from kledger.contract.seal_mark import MARK
from ledger.event import Fact
from projections.fold_kit.envelopes import USED_ATTRIBUTES
from projections.fold_kit.sql_text import text

_COMMON_LETTER = (
    "[0-9A-Za-z\u00c0-\u02af\u0391-\u03c9\u0410-\u044f\u05d0-\u05ea\u0620-\u064a\u0904-\u0939\u0e01-\u0e30"
    "\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]"
)
"""Of Latin, Greek, Cyrillic, Hebrew, Arabic, Hindi, Thai, Japanese, Chinese and Korean: most texts begin with one."""
_SCALARS: dict[Any, str] = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


def entity_check(column: str) -> str:
    """The predicate of kledger.contract.scopes.check_entity."""
    pattern = text(entities.ENTITY_PATTERN.removeprefix("^").removesuffix("$"))
    return f"(length({column}) <= {entities.ENTITY_MAX_LENGTH} AND regexp_full_match({column}, {pattern}))"


def json_structure(fact: type[Fact]) -> str:
    """The structure argument of from_json for a whole event of this fact."""
    fields: dict[str, object] = dict.fromkeys(USED_ATTRIBUTES, "VARCHAR")
    fields["data"] = _structure(fact)
    return orjson.dumps(fields).decode()


def data_structure(fact: type[Fact]) -> str:
    """The same, for the data of an event alone."""
    return orjson.dumps(_structure(fact)).decode()


def struct_type(fact: type[Fact]) -> str:
    """The type of a column that holds the data of this fact: that of `d`, as from_json makes it."""
    return _type(_structure(fact))


def _type(structure: object) -> str:
    if isinstance(structure, dict):
        fields = ", ".join(f'"{name}" {_type(part)}' for name, part in structure.items())
        return f"STRUCT({fields})"
    return f"{_type(structure[0])}[]" if isinstance(structure, list) else str(structure)


def _structure(annotation: Any) -> object:
    annotation, _ = _unwrap(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = get_origin(annotation)
    if origin is Literal:
        return "VARCHAR"
    if origin is dict:
        return "JSON"
    if origin is list:
        return [_structure(get_args(annotation)[0])]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {name: _structure(info.annotation) for name, info in annotation.model_fields.items()}
    raise TypeError(f"no SQL form for {annotation!r}")


def _unwrap(annotation: Any) -> tuple[Any, list[Any]]:
    """Strip Annotated and `| None`; collect the constraints on the way."""
    constraints: list[Any] = []
    while True:
        if hasattr(annotation, "__metadata__"):
            constraints += annotation.__metadata__
            annotation = annotation.__origin__
            continue
        if get_origin(annotation) in (Union, types.UnionType):
            rest = [a for a in get_args(annotation) if a is not type(None)]
            if len(rest) != 1:
                raise TypeError(f"no SQL form for the union {annotation!r}")
            annotation = rest[0]
            continue
        return annotation, constraints


def fits(fact: type[Fact]) -> str:
    """The predicate over `d` (from json_structure) that holds only for data that the model accepts.

    Of the documents in it only where each that is not `flat` is a plain one (projections/fold_kit/documents.py).
    """
    parts = ["d IS NOT NULL", *_model_checks(fact, "d", documents(fact))]
    if fact.at_least_one:
        fields = ", ".join(f"d.{name}::VARCHAR" for name in fact.at_least_one)
        parts.append(f"coalesce({fields}) IS NOT NULL")
    return " AND ".join(parts)


def documents(fact: type[Fact]) -> list[str]:
    """The free-form JSON objects among the fields of a fact, as SQL over `d`."""
    fields = fact.model_fields.items()
    return [f'd."{name}"' for name, info in fields if get_origin(_unwrap(info.annotation)[0]) is dict]


def flat(fact: type[Fact]) -> str:
    """The predicate of data whose documents are so simple that SQL can tell that the model accepts them."""
    return " AND ".join(f"({path} IS NULL OR ({' AND '.join(_flat(path))}))" for path in documents(fact)) or "true"


def _flat(path: str) -> list[str]:
    return [
        # Each key once: repeated keys and nested values are left to others.
        f"NOT regexp_matches(substr({path}::VARCHAR, 2), '[{{\\[]')",
        # Short integers only: other numbers have more than one spelling, or do not fit a double.
        f"NOT regexp_matches({path}::VARCHAR, ':-?([0-9]+[.eE]|[0-9]{{16}}|0[0-9])|:-0')",
        # NaN and infinity are not JSON, but DuckDB parses them.
        f"NOT regexp_matches({path}::VARCHAR, ':-?(nan|inf)', 'i')",
        f"len(list_distinct(json_keys({path}))) = len(json_keys({path}))",
    ]


def _model_checks(model: type[BaseModel], path: str, loose: Collection[str] = ()) -> list[str]:
    fields = ((f'{path}."{name}"', info) for name, info in model.model_fields.items())
    return [check for field, info in fields for check in _field_checks(field, info, field in loose)]


def _field_checks(path: str, info: FieldInfo, loose: bool) -> list[str]:
    annotation, constraints = _unwrap(info.annotation)
    nullable = type(None) in get_args(info.annotation)
    checks = _value_checks(path, annotation, [*info.metadata, *constraints], loose)
    if not nullable:
        return [f"{path} IS NOT NULL", *checks]
    return [f"({path} IS NULL OR {' AND '.join(checks)})"] if checks else []


def _value_checks(path: str, annotation: Any, constraints: list[Any], loose: bool = False) -> list[str]:
    """The checks of a value; of a document that is `loose` not whether it is flat."""
    checks = [c for constraint in constraints for c in _constraint(path, annotation, constraint)]
    origin = get_origin(annotation)
    if origin is Literal:
        checks.append(f"{path} IN ({', '.join(text(value) for value in get_args(annotation))})")
    elif origin is dict:
        checks += [f"json_type({path}) = 'OBJECT'", *(() if loose else _flat(path))]
    elif origin is list:
        item, item_constraints = _unwrap(get_args(annotation)[0])
        each = ["x IS NOT NULL", *_value_checks("x", item, item_constraints)]
        checks.append(f"len(list_filter({path}, lambda x: NOT coalesce({' AND '.join(each)}, false))) = 0")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation.__pydantic_decorators__.model_validators:  # a rule over several fields: only the models check it
            return ["false"]
        checks += _model_checks(annotation, path)
    return checks


def _constraint(path: str, annotation: Any, constraint: Any) -> list[str]:
    length = f"len({path})" if get_origin(annotation) is list else f"length({path})"
    if isinstance(constraint, FieldInfo):  # Annotated[..., Field(...)] keeps the FieldInfo itself
        return [c for inner in constraint.metadata for c in _constraint(path, annotation, inner)]
    match constraint:
        case at.Ge(ge=bound):
            return [f"{path} >= {bound}"]
        case at.Le(le=bound):
            return [f"{path} <= {bound}"]
        case at.MinLen(min_length=bound):
            return [f"{length} >= {bound}"]
        case at.MaxLen(max_length=bound):
            return [f"{length} <= {bound}"]
        case StringConstraints(max_length=bound):
            return [f"length({path}) <= {bound}"]
        case AllowInfNan(allow_inf_nan=False):
            return [f"isfinite({path})"]
        case AfterValidator(func=scope_fields.entity_or_value_error):
            return [entity_check(path)]
        case AfterValidator(func=scope_fields.scope_or_value_error):
            return [f"({path} = 'public' OR {entity_check(path)})"]
        case AfterValidator(func=scope_fields.seen_whole):  # stricter: the models look at letters of other scripts
            return [f"regexp_full_match({path}, {text('[ -~' + _COMMON_LETTER.removeprefix('[') + '*')})"]
        case AfterValidator(func=bounds.check_document):  # covered by the checks of a dict, see _value_checks
            return []
        case AfterValidator(func=bounds.without_sign_of_zero):
            return [f"NOT ({path} = 0 AND signbit({path}))"]
        case AfterValidator(func=bounds.says_something):  # stricter: what has no common letter the models look at
            return [f"regexp_matches({path}, {text(_COMMON_LETTER)})"]
        case AfterValidator(func=bounds.legal_id):  # stricter than the model, which allows every printable character
            return [f"regexp_full_match({path}, '[A-Za-z0-9_.:-]*')", f"NOT starts_with({path}, {text(MARK)})"]
        case AfterValidator(func=knowledge.each_entity_once):
            return [f"len(list_distinct(list_transform({path}, lambda x: x.entity))) = len({path})"]
        case AfterValidator(func=resource.times_or_value_error):  # stricter: only the models parse timestamps
            return [f"({path}->>'{name}') IS NULL" for name in resource.TIMES]
    pattern = getattr(constraint, "pattern", None)
    if isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$"):
        return [f"regexp_full_match({path}, {text(pattern[1:-1])})"]
    raise TypeError(f"no SQL form for the constraint {constraint!r} of {path}")

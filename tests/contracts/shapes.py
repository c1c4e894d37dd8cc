"""What the fields of requests and events admit, and of what parts they are."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo


def shape(annotation: Any, metadata: Any = ()) -> Any:
    """What a field admits: its kind, its constraints, and the same of its parts; not whether it may be absent."""
    constraints = list(metadata)
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            constraints += more
            continue
        rest = [one for one in get_args(annotation) if one is not type(None)]
        if get_origin(annotation) in (Union, types.UnionType) and len(rest) == 1:
            (annotation,) = rest
            continue
        break
    single = [one for each in constraints for one in (each.metadata if isinstance(each, FieldInfo) else [each])]
    # Before a value is checked it may be spelled anew (a mail address as an entity), which admits nothing more.
    told = sorted({str(one) for one in single if not isinstance(one, BeforeValidator)})
    if get_origin(annotation) is list:
        return ["list", told, shape(get_args(annotation)[0])]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ["object", told, sorted((name, shape(*of(info))) for name, info in annotation.model_fields.items())]
    return [str(annotation), told]


def of(info: FieldInfo) -> tuple[Any, Any]:
    return info.annotation, info.metadata


def parts(form: type[BaseModel]) -> Iterator[tuple[str, str, list[str]]]:
    """Each place in an event or request, `case.task`, with its kind and its constraints; `[]` is each of a list."""
    for name, info in form.model_fields.items():
        yield from _parts(name, shape(*of(info)))


def _parts(place: str, told: Any) -> Iterator[tuple[str, str, list[str]]]:
    kind, constraints, *inner = told
    yield place, kind, constraints
    if kind == "list":
        yield from _parts(f"{place}[]", inner[0])
    elif kind == "object":
        for name, part in inner[0]:
            yield from _parts(f"{place}.{name}", part)

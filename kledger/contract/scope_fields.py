"""Scopes and entities as fields of models: the grammar of `scopes`, which the client uses without any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, StringConstraints, ValidationInfo

from kledger.contract.bounds import STRICTER, kept_before
from kledger.contract.entities import ENTITY_MAX_LENGTH, is_entity
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import PUBLIC, check_entity, check_scope, check_seen


def entity_or_value_error(value: str) -> str:
    """check_entity for pydantic, which collects ValueErrors with their field."""
    return value if is_entity(value) else _or_value_error(check_entity, value)


def scope_or_value_error(value: str) -> str:
    """check_scope for pydantic."""
    return value if value == PUBLIC or is_entity(value) else _or_value_error(check_scope, value)


def seen_whole(value: str, info: ValidationInfo) -> str:
    """Return an entity or scope that does not look like another one; for pydantic.

    Raises IllegalScope, also where the node makes an event of what is kept: no fold would take it.
    """
    if value.isascii() or kept_before(info, STRICTER):
        return value
    field = str(info.field_name)
    try:
        return check_seen(_CALLED.get(field, field), value)
    except IllegalScope as error:
        raise IllegalScope(error.message, errors=[{"field": field, "reason": error.message}]) from error


def _or_value_error(check: Callable[[str], str], value: str) -> str:
    try:
        return check(value)
    except IllegalScope as error:
        raise ValueError(error.message) from error


Entity = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(entity_or_value_error)]
Scope = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(scope_or_value_error)]
SeenEntity = Annotated[Entity, AfterValidator(seen_whole)]
"""An entity that is stated as an owner or a reader."""
SeenScope = Annotated[Scope, AfterValidator(seen_whole)]
_CALLED = {
    "scopes": "scope",
    "entity": "entity",
    "shared_with": "entity",
    "readers": "entity",
    "writers": "entity",
    "member": "entity",
}

"""Scopes and entities as fields of models: the grammar of `scopes`, which the client uses without any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from kledger.contract.entities import ENTITY_MAX_LENGTH
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import check_entity, check_scope


def entity_or_value_error(value: str) -> str:
    """check_entity for pydantic, which collects ValueErrors with their field."""
    return _or_value_error(check_entity, value)


def scope_or_value_error(value: str) -> str:
    """check_scope for pydantic."""
    return _or_value_error(check_scope, value)


def _or_value_error(check: Callable[[str], str], value: str) -> str:
    try:
        return check(value)
    except IllegalScope as error:
        raise ValueError(error.message) from error


Entity = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(entity_or_value_error)]
Scope = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(scope_or_value_error)]

"""Scopes and entities as fields of models: the grammar of `scopes`, which the client uses without any model."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from kledger.contract.entities import ENTITY_MAX_LENGTH
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import PUBLIC, check_entity


def entity_or_value_error(value: str) -> str:
    """check_entity for pydantic, which collects ValueErrors with their field."""
    try:
        return check_entity(value)
    except IllegalScope as error:
        raise ValueError(error.message) from error


def scope_or_value_error(value: str) -> str:
    """check_scope for pydantic."""
    return value if value == PUBLIC else entity_or_value_error(value)


Entity = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(entity_or_value_error)]
Scope = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(scope_or_value_error)]

"""The base of request bodies: nothing in one is unknown, and nothing of it is converted."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import AfterValidator, BaseModel, ConfigDict


class Asked(BaseModel):
    """Base of every request body.

    What is wrong with a request is told and may be logged: never with what it held.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def without_fault(fault_of: Callable[[str], str | None]) -> AfterValidator:
    """Refuse a text in which `fault_of` finds a fault."""

    def checked(value: str) -> str:
        if (fault := fault_of(value)) is not None:
            raise ValueError(fault)
        return value

    return AfterValidator(checked)

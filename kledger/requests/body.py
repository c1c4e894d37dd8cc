"""The base of request bodies: nothing in one is unknown, and nothing of it is converted."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Asked(BaseModel):
    """Base of every request body.

    What is wrong with a request is told and may be logged: never with what it held.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

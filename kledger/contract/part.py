"""What every part of an event is: immutable, of exactly its types, and open to fields of later versions."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Base of objects in the data of events. Unknown fields are ignored: a newer writer does not break a reader."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

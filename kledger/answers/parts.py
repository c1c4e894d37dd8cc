"""Parts that answers of every family share: errors, what an answer lacks, JSON of an author, the cost of a model."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, JsonValue
from typing_extensions import TypedDict

from kledger.contract.words import ItemStatus, ServingPart

JsonDocument = dict[str, JsonValue]
"""An object whose fields are its author's own, such as `tags`."""

Count = Annotated[int, Field(description="How many there are on this page")]
Total = Annotated[int, Field(description="How many there are on all pages")]
Searched = Annotated[
    int, Field(description="Of a message that is too long for a search, the characters that were searched")
]
NextOffset = Annotated[
    int, Field(description="The `offset` of the next page, where this one ended early as its entries are large")
]
Earlier = Annotated[
    int, Field(description="The `before` of what is earlier, where there is more than fits into an answer; else absent")
]
Shortened = Annotated[
    list[str],
    Field(
        description="The long fields of which this has the beginning, or nothing, as the answer has no room for more: "
        "the item has them whole; absent otherwise"
    ),
]
Position = Annotated[int, Field(description="The log position that the answer is of")]
PastRetention = Annotated[
    int,
    Field(description="How many more recalls there were whose detail this node keeps no longer; absent without any"),
]
KeptAt = Annotated[int, Field(description="The log position of the event")]
Time = Annotated[str, Field(description="RFC 3339, in UTC")]


class Fault(TypedDict):
    """Why something was refused: a stable `code`, what happened and what to do, and details by name."""

    code: str
    message: str
    details: JsonDocument


class Refusal(TypedDict):
    """What every error looks like."""

    error: Fault


class Degraded(TypedDict):
    """A part of the node that an answer could not use, or not up to date; `position` is what the part knows."""

    part: ServingPart
    reason: str
    position: int | None


class Answered(TypedDict):
    """What every read answers beside its own: `degraded` is empty when the answer is whole."""

    degraded: list[Degraded]


class Unmatched(TypedDict):
    """A word of a filter that no item of the caller's has, and in `message` what is near to it or which there are."""

    field: Literal["types", "scopes", "owner", "tags", "created_by", "kind"]
    value: str
    message: str


Unmatching = Annotated[
    list[Unmatched],
    Field(description="In an answer without items: the words of its filters that no item of the caller's has"),
]


class Usage(TypedDict):
    """What a model's answer cost; `cost_usd` is null where no price is known."""

    model: str
    prompt_version: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    calls: int


class Warned(TypedDict):
    """What was kept and will not work as it is: a resource that `readers` of the item do not read."""

    code: Literal["unreadable_resource"]
    resource_id: str
    readers: list[str]
    message: str


class Saved(TypedDict):
    """A new item or resource, acknowledged at a position; `warnings` is empty when all is well."""

    id: str
    position: KeptAt
    version: int
    event_id: str
    duplicate: Annotated[bool, Field(description="The same request was kept before; this is its answer")]
    warnings: list[Warned]


class Moved(TypedDict):
    """An item or resource that was retired, restored or shared; `status` is that of what a project shares."""

    id: str
    position: KeptAt
    event_id: str
    status: NotRequired[ItemStatus]

"""What does HTTP answer with? JSON by orjson, and the shapes of the answers as the OpenAPI document tells them.

The models here only describe: answers are made by the operations and are not validated a second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from decimal import Decimal
from typing import Any, Literal

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from kledger.contract.scopes import Visibility
from ledger.degraded import Degraded, Part
from ledger.event import JsonObject
from producers.operations.desk import Freshness

_WIDEST = 2**63  # an integer beyond has no form that every reader of JSON keeps
POSITION = "X-Ledger-Position"
DEGRADED = "X-Ledger-Degraded"
"""Where the position of an answer is in a header, what the answer lacks is in this one, as JSON; absent when whole."""


class Json(Response):
    """A JSON response; takes dataclasses as well as documents."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(orjson.dumps(content, default=_plain), status_code, headers)
        stated = content.get("position") if isinstance(content, dict) else getattr(content, "position", None)
        self.position: int = stated if isinstance(stated, int) else 0
        """Where a write is kept, 0 where the answer does not say."""


class ReadJson(Json):
    """A document that was read, with what it lacks in `degraded`."""

    def __init__(self, content: Any, freshness: Freshness, headers: Mapping[str, str] | None = None) -> None:
        stated = content if isinstance(content, dict) else {f.name: getattr(content, f.name) for f in fields(content)}
        super().__init__({**stated, "degraded": freshness.degraded or []}, headers=headers)
        self.position = 0


def in_headers(position: int, degraded: Sequence[Degraded] | None = None) -> dict[str, str]:
    """The headers of an answer whose document has no place of its own for its position and for what it lacks."""
    stated = {POSITION: str(position)}
    if degraded:
        # Escaped: a header is ASCII.
        stated[DEGRADED] = json.dumps([asdict(each) for each in degraded])
    return stated


def _plain(value: object) -> int | float | str:
    """What JSON has no form for, as an analyst's SELECT may give it: a sum of integers is a Decimal."""
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value) if abs(value) < _WIDEST else str(value)
        return float(value)
    return str(value)


class ErrorAnswer(BaseModel):
    """What every error looks like: a stable `code`, what happened and what to do, and details."""

    class Error(BaseModel):
        code: str
        message: str
        details: JsonObject

    error: Error


class DegradedAnswer(BaseModel):
    """A part of the node that the answer could not use, or not up to date; `position` is what the part knows."""

    part: Part
    reason: str
    position: int | None


class ReadAnswer(BaseModel):
    """What every read answers beside its own: an empty list when it is whole."""

    degraded: list[DegradedAnswer] = []


class IndexAnswer(BaseModel):
    """What is where on a node; each link is a path of it."""

    name: str
    version: str
    links: dict[str, str]


class EvalAnswer(BaseModel):
    score: int
    helpful: int
    harmful: int
    confidence: float


class FullEvalAnswer(EvalAnswer):
    helpful_history: list[JsonObject]
    harmful_history: list[JsonObject]


class AclEntryAnswer(BaseModel):
    entity: str
    permission: Literal["read", "read_write"]


class ItemAnswer(BaseModel):
    """An item as lists tell it: `acl`, `message_id` and the fields of `source` are there where it has them."""

    id: str
    message_id: str | None = None
    task: str
    content: str
    types: list[str]
    tags: JsonObject
    scopes: list[str]
    owner: str
    visibility: Visibility
    resource_ids: list[str]
    source: JsonObject
    eval: EvalAnswer
    quality_score: float
    version: int
    position: int
    created_at: str
    updated_at: str
    acl: list[AclEntryAnswer] | None = None


class ListedItemAnswer(ItemAnswer):
    status: Literal["active", "retired", "merged"]
    merged_into: str | None = None


class FoundItemAnswer(ItemAnswer):
    relevance: float
    why: str | None = None


class FullItemAnswer(ListedItemAnswer, ReadAnswer):
    """One item with every field: what nobody filled in is null or empty.

    `origin` is what its save states of the whole item at the top of the body; its dates are of where it was before.
    """

    class WholeSource(BaseModel):
        name: str | None
        category: str | None
        urls: list[str]
        agent_id: str | None
        submitted_by: str | None
        timestamp: str | None
        trace_id: str | None
        message_id: str | None

    class Origin(BaseModel):
        trace_id: str | None
        message_id: str | None
        created_at: str | None
        updated_at: str | None

    class Referred(BaseModel):
        id: str
        readable: bool

    message_id: str | None
    source: WholeSource  # type: ignore[assignment]  # as a document it is the narrower one
    origin: Origin | None
    eval: FullEvalAnswer
    resources: list[Referred]


class SearchAnswer(ReadAnswer):
    results: list[FoundItemAnswer]
    count: int
    position: int
    recall_id: str | None
    routed: bool | None = None
    reason: str | None = None


class ListAnswer(ReadAnswer):
    results: list[ListedItemAnswer]
    count: int
    total: int
    next: int | None
    position: int


class WarningAnswer(BaseModel):
    """What was kept and will not work as it is: a resource that `readers` of the item do not read."""

    code: Literal["unreadable_resource"]
    resource_id: str
    readers: list[str]
    message: str


class SavedAnswer(BaseModel):
    id: str
    position: int
    version: int
    event_id: str
    duplicate: bool
    warnings: list[WarningAnswer] = []


class SavedManyAnswer(BaseModel):
    class Outcome(BaseModel):
        index: int
        id: str | None
        outcome: Literal["saved", "unchanged", "refused"]
        position: int | None
        error: JsonObject | None
        warnings: list[WarningAnswer] = []

    results: list[Outcome]
    saved: int
    unchanged: int
    refused: int
    position: int


class UpdatedAnswer(BaseModel):
    class Kept(BaseModel):
        type: str
        event_id: str
        position: int

    class Field(BaseModel):
        kept: bool
        position: int | None = None
        error: JsonObject | None = None

    id: str
    position: int
    events: list[Kept]
    fields: dict[str, Field]
    warnings: list[WarningAnswer] = []


class RatedAnswer(BaseModel):
    class Refused(BaseModel):
        index: int
        knowledge_id: str | None
        error: JsonObject

    updated: int
    refused: list[Refused]
    position: int


class ChangedAnswer(BaseModel):
    id: str
    position: int
    event_id: str


class MemoryPromptAnswer(BaseModel):
    memory_type: Literal["user", "work"]
    agent_type: Literal["router", "worker"]
    prompt: str | None


class MemoryHistoryAnswer(ReadAnswer):
    class Version(BaseModel):
        version: int
        change: Literal["created", "replaced", "patched", "disabled"]
        status: Literal["active", "disabled"]
        content: JsonObject
        valid_from: int
        valid_to: int | None
        valid_from_time: str
        valid_to_time: str | None
        trace_id: str | None
        message_id: str | None
        event_id: str

    id: str
    owner: str
    memory_type: Literal["user", "work"]
    versions: list[Version]
    position: int


class MemoriesAnswer(BaseModel):
    user_memory: JsonObject | None
    work_memory: JsonObject | None


class DisabledAnswer(BaseModel):
    id: str
    owner: str
    memory_type: Literal["user", "work"]
    status: Literal["disabled"]
    position: int
    event_id: str


class JobAnswer(BaseModel):
    id: str
    kind: Literal["rebuild", "verify", "replay", "snapshot", "audit", "backup", "forget", "retry"]
    state: Literal["running", "done", "failed"]
    done: int
    total: int
    rate: float
    result: JsonObject | None
    error: JsonObject | None


class SqlAnswer(ReadAnswer):
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool
    position: int


def told(model: Any, *codes: int, status: int = 200, later: bool = False) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: its answer (`later`: as 202 while work goes on), and which errors it may give."""
    answers: dict[int | str, dict[str, Any]] = {status: {"model": model}}
    if later:
        answers[202] = {"model": model, "description": "The work is still under way"}
    return answers | {code: {"model": ErrorAnswer} for code in (*codes, 422, 503)}

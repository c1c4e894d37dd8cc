"""What does HTTP answer with? JSON by orjson, and the shapes of the answers as the OpenAPI document tells them.

The models here only describe: answers are made by the operations and are not validated a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from ledger.event import JsonObject
from ledger.scopes import Visibility

POSITION = "X-Ledger-Position"


class Json(Response):
    """A JSON response; takes dataclasses as well as documents."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(orjson.dumps(content, default=_plain), status_code, headers)


def _plain(value: object) -> int | float | str:
    """What JSON has no form for, as an analyst's SELECT may give it: a sum of integers is a Decimal."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


class ErrorAnswer(BaseModel):
    """What every error looks like: a stable `code`, what happened and what to do, and details."""

    class Error(BaseModel):
        code: str
        message: str
        details: JsonObject

    error: Error


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
    """An item as lists tell it; `acl` is there where it has one."""

    id: str
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


class FullItemAnswer(ItemAnswer):
    class Referred(BaseModel):
        id: str
        readable: bool

    status: Literal["active", "retired", "merged"]
    merged_into: str | None = None
    eval: FullEvalAnswer
    resources: list[Referred]


class SearchAnswer(BaseModel):
    results: list[FoundItemAnswer]
    count: int
    position: int
    recall_id: str | None
    routed: bool | None = None
    reason: str | None = None


class ListAnswer(BaseModel):
    results: list[ListedItemAnswer]
    count: int
    position: int


class SavedAnswer(BaseModel):
    id: str
    position: int
    version: int
    event_id: str
    duplicate: bool


class SavedManyAnswer(BaseModel):
    class Outcome(BaseModel):
        index: int
        id: str | None
        outcome: Literal["saved", "unchanged", "refused"]
        position: int | None
        error: JsonObject | None

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

    id: str
    position: int
    events: list[Kept]


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


class WhyAnswer(BaseModel):
    class Because(BaseModel):
        class Since(BaseModel):
            position: int
            version: int
            change: str
            event_id: str
            by: str
            time: str

        kind: Literal["scope", "acl", "owner", "operator"]
        entity: str | None
        permission: Literal["read", "read_write"] | None = None
        since: Since

    class MayChange(BaseModel):
        owner: str
        writers: list[str]
        you: Literal["owner", "writer", "operator"] | None

    id: str
    visibility: Visibility
    because: list[Because]
    recalled: bool
    also: list[str]
    may_change: MayChange
    position: int


class HistoryAnswer(BaseModel):
    id: str
    versions: list[JsonObject]
    feedback: list[JsonObject]
    position: int


class LineageAnswer(BaseModel):
    class Edge(BaseModel):
        direction: Literal["from", "to"]
        relation: str
        ref: str
        event_id: str
        event_type: str
        entity: str
        entity_id: str
        position: int
        time: str

    ref: str
    edges: list[Edge]
    position: int


class MemoryPromptAnswer(BaseModel):
    memory_type: Literal["user", "work"]
    agent_type: Literal["router", "worker"]
    prompt: str | None


class MemoryHistoryAnswer(BaseModel):
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

    owner: str
    memory_type: Literal["user", "work"]
    versions: list[Version]
    position: int


class MemoriesAnswer(BaseModel):
    user_memory: JsonObject | None
    work_memory: JsonObject | None


class DisabledAnswer(BaseModel):
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


class SqlAnswer(BaseModel):
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

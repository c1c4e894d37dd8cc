"""What shapes do answers have? The JSON documents of the HTTP door, as types; nothing is checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

Score = dict[str, Any]  # {"score","helpful","harmful","confidence"[,"helpful_history","harmful_history"]}


class Degraded(TypedDict):
    """A part of the node that an answer could not use, or not up to date; `position` is what the part knows."""

    part: str
    reason: str
    position: int | None


class Answered(TypedDict):
    """What every read answers beside its own: `degraded` is empty when the answer is whole."""

    degraded: list[Degraded]


class AclEntry(TypedDict):
    """Somebody who may read an item beside those in its scopes, and with `read_write` revise it."""

    entity: str
    permission: Literal["read", "read_write"]


class Item(TypedDict):
    """One item of knowledge as a list or `get` gives it; `get` adds `status`, `resources`, `degraded`, the histories.

    `acl`, `message_id` and the fields of `source` are there where the item has them; from `get`, all but `acl` always
    are, null or empty. `origin` is what its save states of the whole item: `trace_id`, `message_id`, `created_at` and
    `updated_at` of where it was before.
    """

    id: str
    message_id: NotRequired[str | None]
    origin: NotRequired[dict[str, Any] | None]
    task: str
    content: str
    types: list[str]
    tags: dict[str, Any]
    scopes: list[str]
    owner: str
    visibility: str
    resource_ids: list[str]
    source: dict[str, Any]
    eval: Score
    version: int
    position: int
    created_at: str
    updated_at: str
    status: NotRequired[str]
    resources: NotRequired[list[dict[str, Any]]]
    acl: NotRequired[list[AclEntry]]
    merged_into: NotRequired[str]
    degraded: NotRequired[list[Degraded]]


class Hit(Item):
    """An item that a search found; `why` where its scope alone puts it before a far more relevant one."""

    quality_score: float
    relevance: float
    why: NotRequired[str]


class ToolMetadata(TypedDict):
    """What a tool of source 001 puts beside its text: the items of its answer, once more."""

    items: Sequence[Item | Hit]


class SearchResults(Answered):
    """What was found, best first; `recall_id` names the event that says so, null when none was kept."""

    results: list[Hit]
    count: int
    position: int
    recall_id: str | None
    routed: NotRequired[bool]
    reason: NotRequired[str | None]
    metadata: NotRequired[ToolMetadata]


class ItemList(Answered):
    """A page of items: `total` is how many fit on all pages, `next` where the next page begins (see `iterate`)."""

    results: list[Item]
    count: int
    total: int
    next: int | None
    position: int
    metadata: NotRequired[ToolMetadata]


class Warned(TypedDict):
    """What was kept and will not work as it is: a resource that `readers` of the item do not read."""

    code: str
    resource_id: str
    readers: list[str]
    message: str


class Saved(TypedDict):
    """A new item, acknowledged at a position; `warnings` is empty when all is well."""

    id: str
    position: int
    version: int
    event_id: str
    duplicate: bool
    warnings: list[Warned]


class SavedOne(TypedDict):
    """What became of one item of a batch; `error` is `{"code","message"}` or null."""

    index: int
    id: str | None
    outcome: Literal["saved", "unchanged", "refused"]
    position: int | None
    error: dict[str, Any] | None
    warnings: list[Warned]


class SavedMany(TypedDict):
    """What became of a batch; `results` in the order of the items."""

    results: list[SavedOne]
    saved: int
    unchanged: int
    refused: int
    position: int


class Changed(TypedDict):
    """An item that was revised, rated or scored: one event for each thing said.

    `fields` says of each field whether it was `kept`, and its `position`, or the `error` for which it was not;
    `warnings` as of a save.
    """

    id: str
    position: int
    events: list[dict[str, Any]]
    fields: dict[str, dict[str, Any]]
    warnings: list[Warned]


class RatedMany(TypedDict):
    """What became of many verdicts; `refused` names each that was not kept, with its reason."""

    updated: int
    refused: list[dict[str, Any]]
    position: int


class Moved(TypedDict):
    """An item that was retired or restored."""

    id: str
    position: int
    event_id: str


class History(Answered):
    """Every version of an item and every verdict on it, oldest first."""

    id: str
    versions: list[dict[str, Any]]
    feedback: list[dict[str, Any]]
    position: int


class Why(Answered):
    """Why the caller may read an item: each reason with the event `since` which it holds.

    `recalled`: lists and searches show it, not its id alone; `also` are entities that read it too and that the caller
    is not; `may_change` names owner and writers, and in which part the caller is (`you`).
    """

    id: str
    visibility: str
    because: list[dict[str, Any]]
    recalled: bool
    also: list[str]
    may_change: dict[str, Any]
    position: int


class ScopeTypes(Answered):
    """The types of scopes that may be used, the most specific first."""

    scope_types: list[dict[str, Any]]
    position: int


class Edge(TypedDict):
    """One step of lineage: `from` is where it came from, `to` what came of it.

    `stated_in` says where in its event a trace or message is named: `envelope` (a header of the request), or a part
    of the data: `origin`, `source`, `case`.
    """

    direction: Literal["from", "to"]
    relation: str
    ref: str
    event_id: str
    event_type: str
    entity: str
    entity_id: str
    position: int
    time: str
    stated_in: NotRequired[list[str]]


class LineageEvent(TypedDict):
    """One event of a lineage, told once. `verdict` and `case` are a rating's or confirmation's, `score` a score's."""

    role: Literal["origin", "change", "verdict", "cause", "use", "mention", "effect"]
    event_id: str
    event_type: str
    entity: str
    entity_id: str
    actor: str
    trace_id: str | None
    message_id: str | None
    position: int
    time: str
    verdict: NotRequired[Literal["helpful", "harmful", "confirmed"]]
    case: NotRequired[dict[str, str]]
    score: NotRequired[int]


class LineageOf(Answered):
    """The events around a reference, each once in the order of the log, and the links between them."""

    ref: str
    events: list[LineageEvent]
    edges: list[Edge]
    position: int


class Resource(TypedDict):
    """A resource; `secure_body` and `secure`, which says why it is there or not, only from `get`."""

    id: str
    title: str
    body: str
    secure_body: NotRequired[str | None]
    secure: NotRequired[Literal["none", "given", "withheld", "expired", "retired", "superseded", "erased"]]
    has_secure: bool
    content_type: str
    metadata: dict[str, Any]
    expired: bool
    valid: bool
    scopes: list[str]
    owner: str
    visibility: str
    shared_with: list[str]
    version: int
    position: int
    created_at: str
    updated_at: str
    status: str
    degraded: NotRequired[list[Degraded]]


class ResourceList(Answered):
    """A page of resources, as of items."""

    results: list[Resource]
    count: int
    total: int
    next: int | None
    position: int


class ResourceHistory(Answered):
    """Every version of a resource, oldest first, without its secret."""

    id: str
    versions: list[dict[str, Any]]
    position: int


class Memories(TypedDict):
    """The two memories of a user, with their defaults until something is stated; null for one that is disabled."""

    user_memory: dict[str, Any] | None
    work_memory: dict[str, Any] | None


class MemoryHistory(Answered):
    """Every version of one memory of a user, oldest first."""

    id: str
    owner: str
    memory_type: Literal["user", "work"]
    versions: list[dict[str, Any]]
    position: int


class Job(TypedDict):
    """Work of the node that takes a while: `done` of `total` positions (0 until known), `rate` events a second."""

    id: str
    kind: str
    state: Literal["running", "done", "failed"]
    done: int
    total: int
    rate: float
    result: dict[str, Any] | None
    error: dict[str, Any] | None


class Table(Answered):
    """Rows of a query; `truncated` when the node left some out."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool
    position: int

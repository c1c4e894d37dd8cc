"""Answers about lineage: the events around a reference, and the links between them."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.knowledge import Verdict
from kledger.answers.parts import Answered, Count, PastRetention, Position, Time
from kledger.contract.words import LineageRole, RecallKind


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
    time: Time
    stated_in: NotRequired[list[Literal["envelope", "origin", "source", "case"]]]


class LineageCase(TypedDict):
    """The use of an item that a verdict is about; each field is there where the verdict has it."""

    task: NotRequired[str]
    query: NotRequired[str]
    outcome: NotRequired[str]
    reason: NotRequired[str]


class LineageEvent(TypedDict):
    """One event of a lineage, once. `verdict` and `case` are a rating's or confirmation's, `score` a score's.

    `task` is the beginning of the task of the item that it is about, as it is now. Of a recall, `recall_kind` and the
    beginning of its `query`.
    """

    role: LineageRole
    event_id: str
    event_type: str
    entity: str
    entity_id: str
    actor: str
    trace_id: str | None
    message_id: str | None
    position: int
    time: Time
    verdict: NotRequired[Verdict]
    case: NotRequired[LineageCase]
    score: NotRequired[int]
    task: NotRequired[str]
    recall_kind: NotRequired[RecallKind]
    query: NotRequired[str]


class TraceInBrief(TypedDict):
    """A trace by what it caused: how many events, by whom (five at most), and when. Looks at pages are none of it."""

    trace_id: str
    events: int
    actors: list[str]
    began: Time
    ended: Time
    position: Annotated[int, Field(description="The log position of its last event")]


class TraceList(Answered):
    """A page of traces, the one whose last event is the latest first."""

    results: list[TraceInBrief]
    count: Count
    next: Annotated[int | None, Field(description="The `before` of the next page; null at the end")]
    position: Position


class LineageOf(Answered):
    """The events around a reference, each once in the order of the log, and the links between them."""

    ref: str
    events: list[LineageEvent]
    edges: list[Edge]
    more: NotRequired[
        Annotated[
            Literal[True],
            Field(
                description="There may be more: these are the earliest that fit into an answer, 10,000 events or links "
                "at most, and of causes those within 64 steps. Ask for `event:ID` of one to go on from there"
            ),
        ]
    ]
    past_retention: NotRequired[PastRetention]
    position: Position

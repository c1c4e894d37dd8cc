"""Request bodies of memories, field by field: our names, and those that an agent's memory often has beside them."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from kledger.contract.bounds import Document, NewItemId, Reason, Short, is_blank
from kledger.contract.knowledge import Confidence, Id, KnowledgeType, Scopes, Score, Text, Types, Version
from kledger.contract.memory import (
    Importance,
    Labels,
    Lifetime,
    Line,
    MomentText,
    Related,
    Steps,
    fault_of_layer,
    words_of_steps,
)
from kledger.contract.projects import is_shared_kind
from kledger.contract.resource import in_capitals
from kledger.contract.words import MemoryLayer
from kledger.requests.body import Asked
from kledger.requests.knowledge import Acl, CaseBody, Referring, SourceBody
from kledger.requests.owners import Owner

DERIVED = ("evidence_count", "first_observed", "last_confirmed", "success_rate", "usage_count", "last_updated")
"""What follows from events. A body may hold it, as a memory that was read does; it is not kept, and the answer says
so: a count that could be typed in would be worth nothing."""
Moment = Annotated[MomentText, BeforeValidator(in_capitals)]
_SAME = {"related_memories": "related", "timestamp": "happened_at", "type": "layer"}
"""Another name of a field, and ours."""


class ContextBody(Asked):
    """`context` of an episode."""

    session_id: Short | None = None
    participants: Labels = Field(default_factory=list)
    outcome: Line | None = None
    artifacts: Labels = Field(default_factory=list)


class RememberRequest(Referring):
    """A new memory of a layer: short, semantic, episodic or procedural.

    `type`, `context`, `related_memories` and `timestamp` are other names of `layer`, of the fields of an episode,
    `related` and `happened_at`. An episode may state its `event`, a procedure its `name`, `trigger` and `steps`,
    instead of task and content. A short memory lives as long as its `kind` does, or as `lifetime` says, in seconds.
    `tags` are words, or an object. A memory of a kind that projects share (project_context, adr, convention,
    known_issue, user_preference) is semantic where it says nothing else, and belongs to the caller's project; there it
    is a proposal until a coordinator approves it. `supersedes` names the item of which it is a later version. Counts
    that follow from events are not kept.
    """

    layer: MemoryLayer | None = None
    type: MemoryLayer | None = None
    id: NewItemId | None = None
    task: str | None = None
    content: Text | None = None
    types: Types | None = None
    kind: KnowledgeType | None = None
    importance: Importance | None = None
    confidence: Confidence | None = None
    score: Score | None = None
    lifetime: Lifetime | None = None
    category: Short | None = None
    related: Related | None = None
    related_memories: Related | None = None
    tags: Document | Labels | None = None
    session: Short | None = None
    context: ContextBody | None = None
    event: Text | None = None
    participants: Labels | None = None
    outcome: Line | None = None
    artifacts: Labels | None = None
    happened_at: Moment | None = None
    timestamp: Moment | None = None
    name: Short | None = None
    trigger: Line | None = None
    steps: Steps | None = None
    scopes: Scopes | None = None
    owner: Owner | None = None
    acl: Acl | None = None
    source: SourceBody | None = None
    message_id: Short | None = None
    trace_id: Short | None = None
    supersedes: Id | None = None
    evidence_count: Annotated[Any, Field(description="Read over: it follows from events")] = None
    first_observed: Annotated[Any, Field(description="Read over: it follows from events")] = None
    last_confirmed: Annotated[Any, Field(description="Read over: it follows from events")] = None
    success_rate: Annotated[Any, Field(description="Read over: it follows from events")] = None
    usage_count: Annotated[Any, Field(description="Read over: it follows from events")] = None
    last_updated: Annotated[Any, Field(description="Read over: it follows from events")] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the memory by our names, those that are stated."""
        names = ("kind", "importance", "lifetime", "category", "related", "session", "event", "participants", "outcome")
        stated = {
            name: getattr(self, name) for name in (*names, "artifacts", "happened_at", "name", "trigger", "steps")
        }
        stated |= {ours: getattr(self, other) for other, ours in _SAME.items() if stated.get(ours) is None}
        stated["layer"] = self.layer or self.type or ("semantic" if is_shared_kind(self.kind) else None)
        if self.context is not None:
            of_context = {"session": self.context.session_id, **dict(self.context)}
            del of_context["session_id"]
            stated |= {name: value for name, value in of_context.items() if stated.get(name) is None}
        if isinstance(self.tags, list):
            stated["tags"] = self.tags
        return {name: value for name, value in stated.items() if value is not None}

    def words(self) -> tuple[str | None, str | None]:
        """Task and content: as stated, else what the fields of the layer say."""
        stated = self.fields()
        task, content = self.task, self.content
        match stated["layer"]:
            case "episodic":
                content = content or "\n".join(filter(None, [stated.get("event"), stated.get("outcome")]))
            case "procedural":
                task = stated.get("trigger") if task is None else task
                content = content or words_of_steps(stated.get("name"), stated.get("steps", ()))
        return task, content or None

    def read_over(self) -> list[str]:
        """The stated fields that are not kept."""
        return [name for name in DERIVED if name in self.model_fields_set]

    @model_validator(mode="after")
    def _is_one_memory(self) -> Self:
        if self.fields().get("layer") is None:
            raise ValueError("states no `layer`: write short, semantic, episodic or procedural")
        for other, ours in _SAME.items():
            if None not in (getattr(self, other), getattr(self, ours)) and getattr(self, other) != getattr(self, ours):
                raise ValueError(f"`{ours}` and `{other}` are the same and differ: state one of the two")
        stated = self.fields()
        if (fault := fault_of_layer(stated["layer"], stated)) is not None:
            raise ValueError(fault)
        if is_blank(self.words()[1] or ""):
            raise ValueError("says nothing: state `content`, or the `event` of an episode, the `steps` of a procedure")
        return self


class ConfirmRequest(Asked):
    """That a memory holds, with the case that shows it."""

    case: CaseBody | None = None


class DecideRequest(Asked):
    """A decision on a proposal; `expected_version` is the version that was read, else it is the last one."""

    expected_version: Version | None = None
    reason: Reason | None = None


class DecideHeldRequest(Asked):
    """A decision on a held statement, with the reason for it."""

    reason: Reason | None = None


class CleanRequest(Asked):
    """Retire what is expired, or only name it."""

    dry_run: bool = True

"""Closed sets of words that requests, events and answers share, each written once.

A plain module: whoever needs a word loads nothing for it, not even pydantic.
"""

from __future__ import annotations

from typing import Literal

AgentType = Literal["router", "worker"]
BulkAction = Literal["retire", "restore", "share"]
"""What is done to many items at once."""
BulkOutcome = Literal["would", "done", "unchanged", "refused"]
"""What became of one of them; `would`: it is to be done once it is no dry run."""
DocumentFilter = Literal["active", "removed", "all"]
DocumentStatus = Literal["active", "removed"]
ExtractionAction = Literal["saved", "confirmed", "conflict", "revised", "held"]
ExtractionKind = Literal["statement", "task", "conversation", "feedback"]
HeldStatus = Literal["held", "released", "dropped"]
"""What became of a statement that a person had retired or corrected before it was said again."""
ImportOutcome = Literal["saved", "unchanged", "refused", "held"]
ItemFilter = Literal["active", "retired", "merged", "expired", "proposed", "rejected", "superseded", "all"]
ItemSort = Literal["newest", "oldest", "updated", "helpful", "confidence"]
"""The order of a list of items."""
ItemStatus = Literal["active", "retired", "merged", "expired", "proposed", "rejected", "superseded"]
StartableJob = Literal["rebuild", "verify", "replay", "snapshot", "audit", "backup", "forget"]
JobKind = Literal[StartableJob, "retry"]
LineageRole = Literal["origin", "change", "verdict", "cause", "use", "mention", "effect"]
MemoryConcern = Literal["conflicting", "promoted", "never_recalled"]
MemoryLayer = Literal["short", "semantic", "episodic", "procedural"]
ModelTask = Literal["evolve", "extract", "slim", "summarise", "route", "intent", "rewrite", "hyde"]
"""What a chat model does for a node; `KLEDGER_MODEL_<TASK>` names the model of each."""
ModelWork = Literal[ModelTask, "embed", "rerank"]
"""What any model does for a node: chats, embeddings, a reranker."""
PromotionCause = Literal["recalled", "confirmed"]
ParkedState = Literal["parked", "dismissed", "released"]
Permission = Literal["read", "read_write"]
ProjectRole = Literal["coordinator", "architect", "reviewer", "tester", "developer", "operations"]
"""What a member of a project does there."""
ProfileType = Literal["user", "work"]
RecallPath = Literal["fused", "keyword", "vector", "recency"]
ResourceFilter = Literal["active", "retired", "all"]
ResourceStatus = Literal["active", "retired"]
SecretState = Literal["none", "given", "withheld", "expired", "retired", "superseded", "erased", "unreadable"]
"""What an answer says of a resource's secret."""
SessionFilter = Literal["open", "closed", "removed", "all"]
SessionEnd = Literal["request", "idle"]
"""Why a session was closed."""
SessionRemoval = Literal["request", "expired"]
"""Why the words of a session were removed."""
SessionStatus = Literal["open", "closed", "removed"]
"""What a session is; `removed`: its words are kept no longer."""
SharedKind = Literal["project_context", "adr", "convention", "known_issue", "user_preference"]
"""The kinds of memories that a project shares; a coordinator of it approves them."""
ServingPart = Literal["view", "vectors", "embeddings", "sessions", "rewriting", "reranker"]
"""A part of a node that answers reads."""
SummaryBy = Literal["sentences", "model"]
TokenRole = Literal["agent", "analyst", "operator"]
Verdict = Literal["helpful", "harmful"]

NodeRole = Literal["api", "vectors", "reactors"]
"""What a node does: serve the interfaces (every one does), write vectors, ask models."""
MOST_DAYS = 366
"""Days of one overview."""
MOST_CHANGES = 1_000
"""Changes in one answer about what changed."""
EVERYTHING = "(everything)"
"""Stands among scopes that are searched by for whoever reads all; no item has it, and nobody can name it."""

RecallKind = Literal["search", "startup", "focus", "recall", "page"]
SearchKind = Literal["search", "page"]
MessageKind = Literal["recall", "page"]
ItemLayer = Literal["short", "semantic", "episodic", "procedural", "shared", "document", "plain"]
"""A layer of memory, the shared memory of a project, a document, or knowledge that is none of these."""
RecallLayer = Literal["working", ItemLayer]
"""Where a result is from: the words of the session, a layer of memory, the shared memory of a project, a document, or
knowledge that is none of these."""

EvolutionStatus = Literal["requested", "started", "proposed", "applied", "reverted", "rejected", "failed"]

ConflictStatus = Literal["recorded", "resolved"]

SlimStatus = Literal["requested", "reported", "approved", "applied", "withdrawn", "reverted", "rejected", "failed"]

"""What a field or parameter is called here that a caller names as another library or interface does."""

from __future__ import annotations

from collections.abc import Collection

from kledger.client.slips.other_names import ELSEWHERE

_ITEMS = ("knowledge_id", "memory_id", "ref", "id", "resource_id", "goal_id", "held_id", "record_id", "session_id")
_ASKED = ("query", "message", "q")
_TALKS = ("session_id", "session")
_IN_REQUESTS = {
    **dict.fromkeys(("id", "item_id", "knowledge_id", "memory_id"), _ITEMS),
    **dict.fromkeys(("q", "query", "message", "question", "search", "prompt", "input"), _ASKED),
    **dict.fromkeys(("text", "data", "fact", "body", "value"), ("content", *_ASKED)),
    **dict.fromkeys(("session", "session_id", "thread_id", "conversation_id", "chat_id"), _TALKS),
    **dict.fromkeys(("user_id", "agent_id", "project_id", "team_id", "org_id"), ("owner",)),
    **dict.fromkeys(("comment", "note", "why"), ("reason",)),
    "feedback": ("evolve_feedback",),
    "harmful": ("add_harmful_case",),
    "helpful": ("add_helpful_case",),
    "labels": ("tags",),
    "run_id": ("trace_id",),
    "score": ("update_score",),
    "type": ("types",),
}
"""The names of requests; those of the client's arguments, which most are as well, are beside its own."""
_FORM = {"owner": "owner, written {kind}:ID"}


def here(name: str, there: Collection[str]) -> str | None:
    """What is called `name` elsewhere, where it is one of those that are there."""
    found = next((each for each in (*ELSEWHERE.get(name, ()), *_IN_REQUESTS.get(name, ())) if each in there), None)
    if found is None:
        return None
    return _FORM.get(found, found).format(kind=name.removesuffix("_id"))

"""The tool that was meant by a name that none has: misspelled, in another order, or as other servers call it."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

_WORD = re.compile(r"[A-Z]?[a-z]+")
_SAME = {
    **dict.fromkeys(("add", "append", "create", "insert", "put", "remember", "retain", "store", "write"), "save"),
    **dict.fromkeys(("fetch", "get", "show", "view"), "read"),
    **dict.fromkeys(("ask", "find", "query"), "search"),
    **dict.fromkeys(("delete", "forget", "remove"), "retire"),
    **dict.fromkeys(("change", "edit", "replace"), "revise"),
    **dict.fromkeys(("facts", "item", "items"), "knowledge"),
    **dict.fromkeys(("memories", "episode", "episodes", "archival"), "memory"),
    **dict.fromkeys(("core", "block", "persona", "human"), "profile"),
    **dict.fromkeys(("conversation", "message", "messages", "thread"), "session"),
}
ELSEWHERE = {
    "save": "knowledge_save",
    "read": "knowledge_read",
    "search": "knowledge_search",
    "retire": "knowledge_retire",
    "revise": "knowledge_revise",
    "list": "knowledge_list",
    "recall": "memory_recall",
    "startup": "knowledge_startup",
    "reflect": "memory_recall",
    "knowledge memory search": "memory_recall",
    "memory profile read": "profile_read",
    "memory profile revise": "profile_update",
    "memory profile save": "profile_update",
    "memory read": "knowledge_read",
    "memory retire": "knowledge_retire",
    "memory revise": "knowledge_revise",
    "memory search": "memory_recall",
    "memory update": "knowledge_revise",
    "knowledge recall": "memory_recall",
    "read session": "session_context",
    "save session": "session_append",
    "profile revise": "profile_update",
    "profile save": "profile_update",
}
"""The tool for words, in the order of the alphabet, that are no tool's name. A test holds each tool to be there."""
_CLOSE = 0.75
_LONGEST = 100  # of a name that is looked at: what is longer is no slip


def meant(name: str, tools: Collection[str]) -> str | None:
    """The tool that was meant by a name; None where nothing says which."""
    if len(name) > _LONGEST:
        return None
    words = [each.lower() for each in _WORD.findall(name) if each not in ("mcp", "kledger")]
    said = " ".join(sorted({_SAME.get(each, each) for each in words}))
    of_words = {" ".join(sorted(tool.split("_"))): tool for tool in tools}
    found = of_words.get(" ".join(sorted(words))) or of_words.get(said) or ELSEWHERE.get(said)
    return found or next(iter(get_close_matches("_".join(words), tools, 1, _CLOSE)), None)

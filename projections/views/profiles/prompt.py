"""Rendering of a memory for a prompt, as Markdown between markers.

The `user` memory is for a router agent, the `work` memory for a worker agent. Left out are null and empty values, and
defaults that nobody set (stated.py beside this). Fields are named in the reader's language (labels.py). Texts are not
changed otherwise but for letters that nobody sees, and none can close its own section.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kledger.contract.language import ENGLISH, Language
from kledger.contract.words import AgentType, ProfileType
from ledger.event import JsonObject
from projections.fold_kit.prompt_text import harmless, indented
from projections.views.profiles.labels import label, said_value

READERS: dict[ProfileType, AgentType] = {"user": "router", "work": "worker"}
"""Which agent a memory is for."""


def markers(memory_type: ProfileType) -> tuple[str, str]:
    """The comments between which the memory stands in a system prompt."""
    name = memory_type.upper()
    return f"<!-- {name}_MEMORY_START -->", f"<!-- {name}_MEMORY_END -->"


def build_memory_prompt(
    memory_type: ProfileType, content: JsonObject | None, language: Language = ENGLISH
) -> str | None:
    """The section of one memory, from the values set in it; None when there is no memory."""
    if content is None:
        return None
    start, end = markers(memory_type)
    lines = "\n".join(_lines(content, 0, language)) or f"- {label('nothing yet', language)}"
    return f"{start}\n## {label(f'{memory_type} memory', language)}\n{harmless(lines)}\n{end}"


def _lines(content: JsonObject, depth: int, language: Language, entries: str = "") -> Iterator[str]:
    """The fields of an object; `entries` is the list of which it is an entry."""
    by = "  " * depth
    for name, value in content.items():
        inline = _inline(value, language)
        inline = inline and said_value(entries, name, inline, language)
        named = label(name, language)
        if inline is not None:
            yield f"{by}- {named}: {indented(inline, by + '  ')}"
        elif isinstance(value, dict):
            inner = list(_lines(value, depth + 1, language))
            if inner:
                yield f"{by}- {named}:"
                yield from inner
        elif isinstance(value, list) and value:
            yield f"{by}- {named}:"
            for entry in value:
                yield from _entry(entry, depth + 1, language, name)


def _inline(value: Any, language: Language) -> str | None:
    """The value as text on one line; None for one that needs lines of its own, and for an empty one."""
    if value is None or value == "" or isinstance(value, dict):
        return None
    if isinstance(value, list):
        if not value or any(isinstance(each, (dict, list)) for each in value):
            return None
        return ", ".join(str(each) for each in value)
    return label("yes" if value else "no", language) if isinstance(value, bool) else str(value)


def _entry(entry: Any, depth: int, language: Language, entries: str) -> Iterator[str]:
    """One entry of the list `entries`: its name first, or the hours of a window; the rest below it."""
    by = "  " * depth
    if not isinstance(entry, dict):
        yield f"{by}- {indented(_inline(entry, language) or str(entry), by + '  ')}"
        return
    rest = dict(entry)
    meta = rest.pop("meta", None)
    if {"start", "end"} <= rest.keys():
        days = ", ".join(str(day) for day in rest.pop("weekdays", None) or []) or label("every day", language)
        head = f"{days} {rest.pop('start')}-{rest.pop('end')}"
    else:
        head = str(rest.pop("name", label("entry", language)))
    yield f"{by}- {indented(head, by + '  ')}{_sureness(meta, language)}"
    yield from _lines(rest, depth + 1, language, entries)


def _sureness(meta: Any, language: Language) -> str:
    """An entry's confidence, source and time, in brackets."""
    if not isinstance(meta, dict):
        return ""
    parts = [f"{label('confidence', language)} {meta['confidence']}"] if meta.get("confidence") is not None else []
    parts += [f"{label('source', language)} {meta['source']}"] if meta.get("source") else []
    parts += (
        [f"{label('updated', language)} {str(meta['last_updated_at'])[:10]}"] if meta.get("last_updated_at") else []
    )
    return f" ({', '.join(parts)})" if parts else ""

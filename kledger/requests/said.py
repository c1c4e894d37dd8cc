"""Messages as the APIs of models have them: a request takes them in that form, and they are kept in the form of ours.

Such a message states every field it knows, null or empty where it says nothing, and its content may be parts instead
of a text. What this does not know is left as it is, for the request to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that say something in words, each with the field that has them."""
_ATTACHED = frozenset({"image_url", "input_image", "image", "input_audio", "audio", "input_file", "file", "document"})
"""Types of parts that are something beside the words."""


def in_our_form(*ours: str) -> Callable[[Any], Any]:
    """For pydantic, before a message is validated that has these fields: the message in the form of ours."""
    fields = frozenset(ours)

    def formed(message: Any) -> Any:
        if not isinstance(message, Mapping):
            return message
        stated = {name: value for name, value in message.items() if not _says_nothing(name, value, fields)}
        parts = stated.get("content")
        return _of_parts(stated, parts, fields) if isinstance(parts, list) else stated

    return formed


def _says_nothing(name: str, value: Any, ours: Collection[str]) -> bool:
    """Whether a field is as good as not stated: null content, as beside calls, or nothing in a field that we lack."""
    return value is None if name == "content" else name not in ours and (value is None or value in ([], {}))


def _of_parts(stated: dict[str, Any], parts: Sequence[Any], ours: Collection[str]) -> dict[str, Any]:
    """A message whose content are parts: their words as one text, the others as attachments. Raises ValueError."""
    words, attached = [], []
    for number, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _TEXTS and isinstance(said := part.get(_TEXTS[kind]), str):
            words.append(said)
        elif kind in _ATTACHED and "attachments" in ours:
            attached.append(part)
        else:
            taken = sorted({*_TEXTS, *(_ATTACHED if "attachments" in ours else ())})
            called = f"of the type {kind!r}" if isinstance(kind, str) else "without a type"
            raise ValueError(
                f"has a content whose part {number} is {called[:100]}: write the words as one text, calls in "
                f"`tool_calls`, or parts of the types {', '.join(taken)}"
            )
    formed = {**stated, "content": "\n".join(words)}
    before = stated.get("attachments") or []
    if attached and isinstance(before, list):
        formed["attachments"] = [*before, *attached]
    return formed

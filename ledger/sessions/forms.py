"""Forms of a message: whole, or shortened so that it takes fewer tokens; and what each of them costs.

Every shortened text ends in a mark with the id by which `expand` gives the words back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import orjson

from ledger.event import JsonObject
from ledger.sessions.words import Message

Count = Callable[[str], int]
ShortenedBy = Literal["level 1", "budget"]
EACH = 4
"""Tokens that a model's format adds to each message."""
LINE = 160
"""Characters of a tool's output that stay at level 1."""
_LONGEST_ID = 64
_PARTS = ("image_url", "input_audio", "file", "source")
"""Fields of an API's part that say what it is, as an object or as the address alone."""
_KINDS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}


@dataclass(frozen=True, slots=True)
class Form:
    """A message as it is to be sent to a model, and its cost in tokens."""

    message: Message
    document: JsonObject
    cost: int
    shortened: ShortenedBy | None = None

    def shown(self) -> JsonObject:
        """As an answer has it."""
        how = {"shortened": self.shortened} if self.shortened else {}
        about = {"id": self.message.id, "number": self.message.number}
        return {**about, **self.document, "tokens": self.cost, **how}


def cost_of(document: JsonObject, count: Count) -> int:
    """Tokens of a message: of everything in it that is sent to a model."""
    parts = [str(document.get("role", "")), str(document.get("content", ""))]
    lists = [document[name] for name in ("tool_calls", "attachments") if document.get(name)]
    parts += [orjson.dumps(each).decode() for each in lists]
    parts += [str(document[name]) for name in ("tool_call_id", "name") if document.get(name)]
    return count("\n".join(parts)) + EACH


def whole(message: Message, count: Count) -> Form:
    """The message as it is; what its sender counted is believed where it is more."""
    document = {name: value for name, value in message.said.items() if name != "tokens"}
    return Form(message, document, max(cost_of(document, count), int(message.said.get("tokens") or 0)))


def trimmed(message: Message, count: Count, plain: Form | None = None) -> Form:
    """The message at level 1: a tool's output as one line, attachments in words; else as it is (`plain`)."""
    plain = plain or whole(message, count)
    document = {name: value for name, value in message.said.items() if name not in ("tokens", "attachments")}
    content = str(document.get("content", ""))
    changed = False
    if document.get("role") == "tool" and len(content) > LINE:
        line = " ".join(content[: 4 * LINE].split())[:LINE]
        content, changed = line + mark(message, len(content) - len(line)), True
    if attachments := message.said.get("attachments"):
        content = "\n".join([*([content] if content else []), *map(described, attachments)])
        changed = True
    if not changed:
        return plain
    document["content"] = content
    short = Form(message, document, cost_of(document, count), "level 1")
    return short if short.cost < plain.cost else plain


def fitted(message: Message, room: int, count: Count) -> Form | None:
    """The longest beginning of a message that fits `room` tokens; None where not even a mark of it fits."""
    base = trimmed(message, count)
    if base.cost <= room:
        return base
    content = message.content
    document = {
        name: value for name, value in base.document.items() if name in ("role", "name", "content", "tool_call_id")
    }

    def form(length: int, ending: str) -> Form:
        cut = {**document, "content": content[:length] + ending}
        return Form(message, cut, cost_of(cut, count), "budget")

    for ending in (mark(message, len(content)), "[…]", ""):
        low, high = 0, len(content)
        if form(0, ending).cost > room:
            continue
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if form(middle, ending).cost <= room else (low, middle - 1)
        # A tokenizer may take more tokens for less text: go back until it fits.
        for length in range(low, -1, -max(1, low // 64)):
            if (found := form(length, ending)).cost <= room:
                return found
    return None


def mark(message: Message, left_out: int) -> str:
    """What stands where a message was cut."""
    named = f": expand {message.id}" if len(message.id) <= _LONGEST_ID else ""
    return f" [… {left_out:,} characters more{named}]"


def described(attachment: JsonObject) -> str:
    """An attachment in words, in whichever form it came: one of its own, or that of a model's API."""
    stated = _flat(attachment)
    kind = stated.get("type") or stated.get("mime_type") or stated.get("content_type") or "attachment"
    names = ("name", "filename", "title", "url", "file_id", "media_type", "format")
    name = next((value for each in names if isinstance(value := stated.get(each), str) and value), None)
    size = f", {stated['size']:,} bytes" if isinstance(stated.get("size"), int) else ""
    about = stated.get("description") or stated.get("alt")
    words = f"[{_KINDS.get(str(kind), str(kind))[:80]}{f' {name[:200]}' if name else ''}{size}"
    return words + (f": {about[:400]}]" if isinstance(about, str) else "]")


def _flat(attachment: JsonObject) -> JsonObject:
    """What an attachment states, with what stands one level deeper in an API's part; bytes in a URL are their kind."""
    flat: JsonObject = {}
    for name in _PARTS:
        inner = attachment.get(name)
        if isinstance(inner, str):
            flat["url"] = inner
        elif isinstance(inner, Mapping):
            flat |= {key: value for key, value in inner.items() if key != "type"}
    flat |= attachment
    for name in ("url", "file_data"):
        if isinstance(url := flat.get(name), str) and url.startswith("data:"):
            del flat[name]
            flat.setdefault("media_type", url[len("data:") : 100].partition(",")[0].partition(";")[0])
    return flat

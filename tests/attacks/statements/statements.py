"""What does an adversary state? Requests over HTTP, and messages with a publisher's rights, out of well-formed ones.

About half are well formed and about what is there (course.py), and count. The others are such a statement in which one
or a few places are stated otherwise: so they come as far as they can.
"""

from __future__ import annotations

import copy
import random
import re
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.subjects import encode_token
from tests.attacks.statements.course import Course
from tests.attacks.statements.values import Values, spelt

HTTP_BODY = 2_000_000
MESSAGE_BODY = 1_040_000
"""Bytes that the interfaces take at most; what is larger is refused before anybody reads it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request over HTTP."""

    method: str
    path: str
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to the log, with the id that it claims, if any."""

    subject: str
    body: bytes
    claimed: str | None = None
    well_formed: str | None = None
    """The event's id where it ought to count."""


_TOKENS = ("=", "==", "=00", "=0A", "=FF", "=ED=A0=80", "=61", "=2F", "a" * 300, "=E7=8E=8B" * 100, "A", "default")
_SAVE: dict[str, Any] = {
    "task": "log in",
    "content": "use selenium",
    "types": ["tool"],
    "tags": {"a": 1, "b": {"c": [True]}},
    "scopes": ["public"],
    "owner": "agent:scribe",
    "resource_ids": ["code/selenium/login"],
    "source": {"name": "n", "urls": ["http://x"], "trace_id": "t1", "timestamp": "2026-03-05T12:00:00Z"},
    "score": 4,
    "eval": {"helpful": 1, "harmful": 0, "confidence": 0.5},
    "acl": [{"entity": "user:ada", "permission": "read"}],
}
_REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/knowledge", _SAVE),
    ("POST", "/api/knowledge", {**_SAVE, "id": "k1"}),
    ("POST", "/api/knowledge", {**_SAVE, "id": "k2", "owner": "user:ada", "scopes": ["user:ada"]}),
    ("POST", "/api/knowledge/batch", {"items": [_SAVE, {**_SAVE, "id": "k3"}]}),
    ("PUT", "/api/knowledge/{id}", {"add_helpful_case": {"task": "t", "outcome": "o"}, "update_score": 4}),
    ("PUT", "/api/knowledge/{id}", {"content": "c", "tags": {"a": 1}, "resource_ids": ["r"], "expected_version": 1}),
    ("PUT", "/api/knowledge/{id}/acl", {"acl": [{"entity": "user:ada", "permission": "read_write"}]}),
    (
        "POST",
        "/api/knowledge/batch_update",
        {"feedback_list": [{"knowledge_id": "k1", "is_helpful": True, "case": {}}]},
    ),
    ("DELETE", "/api/knowledge/{id}", None),
    ("POST", "/api/knowledge/{id}/restore", None),
    ("PUT", "/api/v1/memories/user", {"content": {"occupation": "x", "people": [{"name": "a", "meta": {}}]}}),
    ("PATCH", "/api/v1/memories/work", {"content": {"timezone": "UTC", "projects": [{"name": "a"}]}}),
    ("POST", "/api/v1/memories", None),
    ("POST", "/api/goals/{id}/focus", {"description": "log in with selenium", "top_k": 3, "min_score": 0}),
    ("POST", "/api/resource", {"id": "code/selenium/login", "title": "t", "body": "b", "metadata": {"n": 1}}),
    ("POST", "/api/resource", {"id": "cred/x", "title": "t", "secure_body": "s", "shared_with": ["user:ada"]}),
    ("POST", "/api/scope_types", {"type": "department", "priority": 2.5}),
    ("POST", "/api/knowledge/slim", {"owner": "agent:scribe", "threshold": 0.8, "dry_run": True, "wait": 0}),
    ("POST", "/api/knowledge/extract", {"kind": "task", "text": "we said", "owner": "agent:scribe"}),
    ("GET", "/api/knowledge/search?q={text}&top_k=5", None),
    ("GET", "/api/knowledge?types=tool&limit=5", None),
    ("GET", "/api/knowledge/{id}", None),
    ("GET", "/api/recall/startup?q={text}", None),
    ("GET", "/api/resource/{id}", None),
    ("GET", "/api/lineage?id={text}", None),
    ("POST", "/api/knowledge/{id}/revert", {"to_version": 1}),
    ("GET", "/api/evolutions/{id}", None),
    ("POST", "/api/evolutions/{id}/apply", None),
    ("POST", "/api/conflicts/{id}/resolve", {"winner": "k1", "reason": "r"}),
    ("POST", "/api/slims/{id}/apply", None),
    ("DELETE", "/api/resource/{id}", None),
    ("PUT", "/api/v1/memories/work", {"content": {"timezone": "UTC"}}),
)
_HEADERS = ("X-Ledger-User", "X-Ledger-Agent", "X-Ledger-Trace", "X-Ledger-Scope", "Idempotency-Key", "X-Ledger-Team")
_FREE = {"content", "task", "reason", "query", "description", "title", "body", "outcome", "name", "feedback", "model"}
"""Fields of events that hold a text."""
_LITERAL = re.compile(rb"(?<=:)-?[0-9][^,}\]]*")


class Statements:
    """Statements without end, the same for the same seed."""

    def __init__(self, seed: int, largest: int | None = None) -> None:
        self._chance = random.Random(seed)
        self._values = Values(self._chance) if largest is None else Values(self._chance, largest)
        self._course = Course(self._chance, self._values.words)
        first = ("knowledge.saved", "resource.saved")  # what most others are about
        self._kinds = [*sorted(EXAMPLES), *first * (len(EXAMPLES) // 6)]
        self._before: deque[Message] = deque(maxlen=50)

    def next(self) -> Request | Message:
        """One more."""
        if self._before and self._chance.random() < 0.01:
            return replace(self._chance.choice(self._before), well_formed=None)  # the same once more
        if self._chance.random() < 0.35:
            return self._request()
        message = self._message()
        if len(message.body) < 10_000:
            self._before.append(message)
        return message

    def _request(self) -> Request:
        method, path, stated = self._chance.choice(_REQUESTS)
        as_it_is = self._chance.random() < 0.5
        headers = {"X-Ledger-Agent": "scribe", "Content-Type": "application/json"}
        if "/memories" in path or self._chance.random() < 0.2:
            headers = {"X-Ledger-User": "ada", "Content-Type": "application/json"}
        item = self._course.item() if "/api/knowledge/{id}" in path else None
        if item is not None and self._chance.random() < 0.8:
            path = path.replace("{id}", item.id)
            kind, _, name = item.owner.partition(":")
            headers = {f"X-Ledger-{kind.capitalize()}": name, "Content-Type": "application/json"}
            if method != "GET":
                item.doubtful()
        path = path.replace("{id}", quote(self._values.identifier()[:300], safe="", errors="replace"))
        path = path.replace("{text}", quote(self._values.text()[:1_000], safe="", errors="replace"))
        if not as_it_is and self._chance.random() < 0.2:
            name = self._chance.choice(_HEADERS)
            headers[name] = quote(self._values.text()[:300], safe=":", errors="replace")
        if stated is None:
            return Request(method, path, None, headers)
        if as_it_is:
            return Request(method, path, spelt(stated, plain=True).encode(), headers)
        body = self._spelt(self._changed(stated))
        return Request(method, path, body if len(body) <= HTTP_BODY else b"{}", headers)

    def _message(self) -> Message:
        made = self._course.event(self._chance.choice(self._kinds))
        as_it_is = self._chance.random() < 0.6
        made.settle(as_it_is)
        document = made.document
        kind = document["type"]
        entity, entity_id = document["subject"].split("/", 1)
        if as_it_is:
            subject = self._subject(document, kind, entity, entity_id, odd=False)
            claimed = document["id"] if self._chance.random() < 0.5 else None
            return Message(
                subject, spelt(document, plain=self._chance.random() < 0.5).encode(), claimed, document["id"]
            )
        if self._chance.random() < 0.1:
            entity_id = self._values.identifier()
            document["subject"] = f"{entity}/{entity_id}"
        if self._chance.random() < 0.4:
            self._reword(document["data"])
        else:
            document["data"] = self._changed(document["data"])
        if self._chance.random() < 0.1:
            name = self._chance.choice(sorted(document))
            document[name] = self._values.moment() if name == "time" else self._values.odd()
        subject = self._subject(document, kind, entity, entity_id, odd=self._chance.random() < 0.1)
        body = self._spelt(document)
        if self._chance.random() < 0.05:
            body = self._broken(body)
        if len(body) > MESSAGE_BODY:
            body = body[:MESSAGE_BODY]
        claimed = str(document["id"])[:100] if self._chance.random() < 0.5 else None
        return Message(subject, body, claimed if claimed is None or claimed.isascii() else None)

    def _reword(self, data: Any) -> None:
        """Another text where there is a text: what may stand there is mostly kept."""
        texts = [(holder, at) for holder, at in _places(data) if at in _FREE and isinstance(holder[at], str)]
        for holder, at in self._chance.sample(texts, min(len(texts), 2)):
            holder[at] = self._values.text()

    def _subject(self, document: Any, kind: str, entity: str, entity_id: str, *, odd: bool) -> str:
        actor = document["actor"] if isinstance(document["actor"], str) else "user:x"
        who, _, name = actor.partition(":")
        told = [_safe(part) for part in (entity_id, kind.partition(".")[2], who, name)]
        tokens = ["ledger", "default", entity, *told]
        if odd:
            tokens[self._chance.choice((1, 1, 2, 3, 4, 5, 6))] = self._chance.choice(_TOKENS)
        subject = ".".join(token[:2_000] for token in tokens)
        return subject if len(subject) < 3_500 else ".".join([*tokens[:3], "long", *tokens[4:]])[:3_500]

    def _changed(self, stated: Any) -> Any:
        """The same with a few places stated otherwise."""
        changed = copy.deepcopy(stated)
        for _ in range(self._chance.choices((1, 2, 5), (6, 2, 1))[0]):
            places = list(_places(changed))
            if not places:
                break
            holder, at = self._chance.choice(places)
            holder[at] = self._values.odd()
        if isinstance(changed, dict) and self._chance.random() < 0.05:
            changed[self._values.text()[:30]] = self._values.odd()
        return changed

    def _spelt(self, document: Any) -> bytes:
        text = spelt(document, plain=self._chance.random() < 0.5)
        if self._chance.random() < 0.05:
            text = text.replace('":"', '":"' + self._chance.choice(("\\ud800", "\\u0000", "\\ud83d\\ude00", "\\/")), 1)
        return text.encode("utf-8", "surrogatepass")

    def _broken(self, body: bytes) -> bytes:
        cut = self._chance.randrange(len(body) + 1)
        number = self._chance.choice((b"1e400", b"-0", b"01", b"NaN", b"-0.0", b"9" * 5_000, b"1e-400", b"Infinity"))
        return self._chance.choice(
            (
                lambda: body[:cut],
                lambda: b"\xff" + body,
                lambda: body[:cut] + b"\xed\xa0\x80" + body[cut:],
                lambda: _LITERAL.sub(number, body, count=1),
                lambda: body.replace(b"{", b'{"data":{},"id":"x",', 1),
                lambda: body.replace(b"{", b'{ "extra":' + b"[" * 600 + b"]" * 600 + b",", 1),
                lambda: b"",
                lambda: b"[]",
            )
        )()


def _places(document: Any) -> Any:
    """Every (holder, key) of a document."""
    stack = [document]
    while stack:
        holder = stack.pop()
        for at, part in holder.items() if isinstance(holder, dict) else enumerate(holder):
            yield holder, at
            if isinstance(part, dict | list) and len(part) < 50:
                stack.append(part)


def _safe(part: str) -> str:
    return encode_token(part.encode("utf-8", "replace").decode())

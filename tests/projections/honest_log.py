"""A log as version 1 of rated, scored and confirmed wrote it: readers alone judge, through whatever they read."""

from __future__ import annotations

from typing import Any

import orjson

from ledger.event import StoredEvent
from ledger.wire.subjects import event_subject
from tests.projections.histories import START_NS

_ITEM = {"types": ["tool"], "task": "Deploy at night", "content": "Deploy before noon.", "tags": {"severity": 2}}
_CASE = {"task": "release 44", "query": None, "outcome": "完成", "reason": None, "timestamp": None}
_SAID: list[tuple[str, str, str, dict[str, Any]]] = [
    ("of-all", "saved", "user:jonas", {**_ITEM, "scopes": ["public"], "owner": "user:jonas"}),
    ("of-project", "saved", "agent:a", {**_ITEM, "scopes": ["project:apollo"], "owner": "agent:a"}),
    ("of-one", "saved", "agent:a", {**_ITEM, "scopes": ["user:ann"], "owner": "agent:a"}),
    ("of-one", "shared", "agent:a", {"acl": [{"entity": "user:bob", "permission": "read"}]}),
    ("of-all", "rated", "agent:anybody", {"verdict": "helpful", "case": _CASE}),
    ("of-project", "rated", "user:member", {"verdict": "harmful", "case": _CASE}),
    ("of-project", "scored", "user:member", {"score": 4, "reason": "fast"}),
    ("of-one", "rated", "user:ann", {"verdict": "helpful", "case": _CASE}),
    ("of-one", "confirmed", "user:bob", {"case": _CASE}),
    ("of-one", "scored", "agent:a", {"score": 5}),
    ("of-project", "revised", "agent:a", {"scopes": ["agent:a"]}),
    ("of-project", "rated", "agent:a", {"verdict": "helpful"}),
]
_VERSIONS = {"saved": 2}


def honest_log(spaced: bool = False) -> list[StoredEvent]:
    """The events; `spaced`: spelled as another program may spell them."""
    return [_event(number, *said, spaced) for number, said in enumerate(_SAID, 1)]


def _event(position: int, item: str, verb: str, actor: str, data: dict[str, Any], spaced: bool) -> StoredEvent:
    body = {
        "specversion": "1.0",
        "id": f"event-{position}",
        "type": f"knowledge.{verb}",
        "source": "urn:kledger",
        "subject": f"knowledge/{item}",
        "time": f"2026-03-05T12:00:{position:02d}Z",
        "datacontenttype": "application/json",
        "dataschema": f"urn:kledger:knowledge.{verb}:{_VERSIONS.get(verb, 1)}",
        "actor": actor,
        "data": data,
    }
    subject = event_subject("default", "knowledge", item, verb, actor)
    told = orjson.dumps(body, option=orjson.OPT_INDENT_2 if spaced else None)
    return StoredEvent(position, START_NS + position * 1_000_000, subject, told)

"""Facts from payloads: a save, or the revised fields of an item, with defaults filled in and checked."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from kledger.contract.errors import InvalidPayload, NotOwner
from kledger.contract.knowledge import Source
from kledger.contract.memory import Memory, tags_of_words
from kledger.contract.scopes import Caller, check_name, check_seen, visibility_of
from kledger.requests.knowledge import EvalBody, SaveRequest, UpdateRequest
from ledger import new_item
from ledger.event import Lineage
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved, Origin
from producers.access.principal import require_addressable
from producers.operations.first_cases import before_cases
from producers.operations.publish import lifted
from producers.requests.first_sentence import first_sentence
from projections.views.times import microseconds, rfc3339

T = TypeVar("T")
_NO_SOURCE = Source()
_ANY = KnowledgeSaved(types=["any"], task="", content="any", scopes=["public"], owner="org:any")
FILLED_IN = ("agent_id", "timestamp")
"""Source fields that the node fills in for a save by an agent: they would differ between two attempts."""


def signed(fact: KnowledgeSaved, caller: Caller, moment: datetime) -> KnowledgeSaved:
    """A save by an agent with the agent and the time filled into its source; other saves unchanged."""
    source = signed_source(fact.source, caller, moment)
    return fact if source is fact.source else fact.model_copy(update={"source": source})


def signed_source(source: Source, caller: Caller, moment: datetime) -> Source:
    """The source of a save by an agent with the agent and the time filled in; of other saves unchanged.

    It is by an agent that asks, or that the source names: an agent's tool may state itself in the body alone.
    """
    agent = source.agent_id or caller.agent
    if agent is None:
        return source
    filled = {"agent_id": agent, "timestamp": rfc3339(microseconds(moment))}
    missing = {name: filled[name] for name in FILLED_IN if getattr(source, name) is None}
    return source.model_copy(update=missing) if missing else source


def stated_source(payload: SaveRequest) -> Source:
    """The source of an item as its payload states it."""
    source = payload.source or _NO_SOURCE
    if payload.created_at and not source.timestamp:
        source = source.model_copy(update={"timestamp": payload.created_at})
    return source


def saved_fact(payload: SaveRequest, caller: Caller, source: Source | None = None) -> KnowledgeSaved:
    """The save event of a payload, with defaults filled in, and with its source or this one.

    Raises NotOwner, Forbidden, InvalidPayload.
    """
    owner = payload.owner or default_owner(caller, payload.source)
    if not caller.may_act_for(owner):
        raise not_owner(f"save knowledge owned by {owner}", owner, caller)
    scopes = list(dict.fromkeys(payload.scopes or [owner]))
    require_addressable(caller, scopes, "what you save")
    label = visibility_of(scopes, owner, [each.entity for each in payload.acl or ()])
    if payload.visibility is not None and payload.visibility != label:
        raise InvalidPayload(
            f"visibility {payload.visibility!r} does not agree with scopes and ACL, which make the item {label}: "
            "leave it out, or change those",
            errors=[{"field": "visibility", "reason": f"follows from scopes and ACL, which say {label}"}],
        )
    # Every value was checked by SaveRequest, whose fields have the types of the fact's. A copy that is given all fields
    # takes half of `model_construct`.
    return _ANY.model_copy(
        update={
            "types": payload.kinds(),
            "task": first_sentence(payload.content) if payload.task is None else payload.task,
            "content": payload.content,
            "tags": _tags(payload),
            "scopes": scopes,
            "owner": owner,
            "resource_ids": payload.referred() or [],
            "source": stated_source(payload) if source is None else source,
            **(_UNJUDGED if payload.eval is None else _judged(payload.eval)),
            "origin": _origin(payload),
            "memory": None if payload.memory is None else Memory(**{**dict(payload.memory), "tags": _words(payload)}),
            "supersedes": payload.supersedes,
        }
        | ({} if payload.score is None else {"score": payload.score})
    )


def _judged(first: EvalBody) -> dict[str, Any]:
    """The score and the counts that an item begins with."""
    return {
        "score": _stated(first.score, new_item.SCORE),
        "helpful": before_cases(first, "helpful"),
        "harmful": before_cases(first, "harmful"),
        "confidence": float(_stated(first.confidence, new_item.CONFIDENCE)),
    }


def _tags(payload: SaveRequest) -> dict[str, Any]:
    """The tags of an item; where a memory has words beside them, they are tags without a value."""
    tags = payload.tags or {}
    return {**tags_of_words(payload.memory.tags), **tags} if payload.memory is not None and tags else tags


def _words(payload: SaveRequest) -> list[str]:
    """The words of a memory that has no tags beside them: it has its tags in one place."""
    return [] if payload.memory is None or payload.tags else payload.memory.tags


def _origin(payload: SaveRequest) -> Origin | None:
    """The origin of an item as the payload gives it, None where it gives no field of it."""
    stated = (payload.trace_id, payload.message_id, payload.created_at, payload.updated_at)
    if stated == (None, None, None, None):
        return None
    trace_id, message_id, created_at, updated_at = stated
    return Origin(trace_id=trace_id, message_id=message_id, created_at=created_at, updated_at=updated_at)


def _stated(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


_UNJUDGED = _judged(EvalBody())


def default_owner(caller: Caller, source: Source | None) -> str:
    """The owner where a payload names none: the caller, or for the operator the source's agent.

    Raises IllegalScope.
    """
    entities = caller.entities()
    if entities:
        return check_seen("owner", entities[0])
    agent = source.agent_id if source is not None else None
    return Caller(agent=agent and check_name("agent", agent)).reading_as()[0]


def not_owner(what: str, owner: str, caller: Caller) -> NotOwner:
    """The error for a caller that may not act for the owner."""
    return NotOwner(
        f"you are {', '.join(caller.entities())} and may not {what}: ask as {owner}, in the X-Ledger headers",
        owner=owner,
    )


def lineage_of(lineage: Lineage, payload: SaveRequest) -> Lineage:
    """The lineage of the request, completed from the payload's own fields and its source."""
    return lifted(lineage, payload.source, trace_id=payload.trace_id, message_id=payload.message_id)


def revision_of(payload: UpdateRequest) -> KnowledgeRevised | None:
    """The revision in an update, None where it revises no field."""
    fields = {name: getattr(payload, name) for name in KnowledgeRevised.at_least_one}
    fields["resource_ids"] = payload.referred()
    revised = {name: value for name, value in fields.items() if value is not None}
    if not revised:
        return None
    if isinstance(payload.tags, list):
        revised["tags"] = tags_of_words(payload.tags)
    if "scopes" in revised:
        revised["scopes"] = list(dict.fromkeys(revised["scopes"]))
    return KnowledgeRevised(**revised, expected_version=payload.expected_version, reason=payload.reason)

"""What does each event look like when it is used? One example a name, written down by the program itself.

They stand in the generated reference and in the AsyncAPI document, so that a reader copies what really works.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ledger.event import Fact, Lineage, NewEvent
from ledger.events.knowledge import (
    AclEntry,
    Case,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    Source,
)
from ledger.events.profile import ProfileCreated, ProfileDisabled, ProfilePatched, ProfileReplaced, profile_id
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.scope_type import ScopeTypeRegistered
from ledger.events.subject import SubjectForgotten

ITEM = "knowledge-20260305-a1b2"
AUTHOR = "agent:research_agent"
USER = "user:li.wei@example.com"
TASK = "运行单元测试前需要准备数据库"
LINEAGE = Lineage(trace_id="trace-7f3a", message_id="msg-0042")

_PROFILE = {"preferences": [{"key": "language", "value": "中文", "meta": {"confidence": 0.9}}]}
_FACTS: tuple[tuple[Fact, str, str], ...] = (
    (
        KnowledgeSaved(
            types=["strategy", "tool"],
            task=TASK,
            content="Start the container with `make db` first; the tests then need no further settings.",
            tags={"category": "habit", "domain": "testing"},
            scopes=["project:ledger", AUTHOR],
            owner=AUTHOR,
            source=Source(category="exp", urls=["https://example.com/testing"], agent_id="research_agent"),
        ),
        ITEM,
        AUTHOR,
    ),
    (KnowledgeRevised(content="`make db` first, then `make test`.", reason="shorter"), ITEM, AUTHOR),
    (
        KnowledgeRated(verdict="helpful", case=Case(query=TASK, outcome="passed", trace_id="trace-81c0")),
        ITEM,
        USER,
    ),
    (KnowledgeScored(score=4, reason="saved an hour"), ITEM, USER),
    (KnowledgeRetired(reason="the container is gone"), ITEM, AUTHOR),
    (KnowledgeRestored(reason="the container is back"), ITEM, AUTHOR),
    (ProfileCreated(owner=USER, memory_type="user", content={}), profile_id(USER, "user"), USER),
    (ProfileReplaced(owner=USER, memory_type="user", content=_PROFILE), profile_id(USER, "user"), USER),
    (ProfilePatched(owner=USER, memory_type="user", patch={"places": []}), profile_id(USER, "user"), USER),
    (ProfileDisabled(owner=USER, memory_type="user", reason="on request"), profile_id(USER, "user"), USER),
    (
        RecallServed(
            query="怎么跑测试",
            visible_scopes=[USER, "project:ledger", "public"],
            items=[ServedItem(id=ITEM, version=2, relevance=0.83)],
            view_position=6,
        ),
        "recall-20260305-c3d4",
        USER,
    ),
    (
        KnowledgeShared(
            acl=[
                AclEntry(entity="department:finance", permission="read"),
                AclEntry(entity=USER, permission="read_write"),
            ]
        ),
        ITEM,
        AUTHOR,
    ),
    (ScopeTypeRegistered(type="department", priority=2.5), "department", "user:local"),
    (SubjectForgotten(subject=USER, receipt="forget-20260305-0f3a9c21d7e4"), USER, "user:local"),
)

EXAMPLES: Mapping[str, NewEvent] = {
    fact.name: NewEvent(
        fact=fact,
        entity_id=entity_id,
        actor=actor,
        lineage=LINEAGE,
        source="urn:example:research_agent",
        id=f"3f2b8c1e-0000-4000-8000-{number:012d}",
        time=datetime(2026, 3, 5, 12, 0, number, tzinfo=UTC),
    )
    for number, (fact, entity_id, actor) in enumerate(_FACTS, start=1)
}
"""By event name; the ids and times are fixed, so that what is made from them only changes with the code."""

"""Example events: one for each event name, built with the models.

They are in the generated reference and in the AsyncAPI document, so that readers copy examples that work.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from kledger.contract.knowledge import AclEntry, Case, Source
from ledger.event import Fact, Lineage, NewEvent
from ledger.events.conflict import ConflictRecorded, ConflictResolved
from ledger.events.evolution import (
    EvolutionFailed,
    EvolutionProposed,
    EvolutionRejected,
    EvolutionRequested,
    EvolutionStarted,
)
from ledger.events.extraction import (
    Extracted,
    ExtractionCompleted,
    ExtractionFailed,
    ExtractionRequested,
    ExtractionStarted,
)
from ledger.events.goal import GoalFocused, goal_entity_id
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeConfirmed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    KnowledgeUnmerged,
    Origin,
)
from ledger.events.model import ModelUsed
from ledger.events.profile import ProfileCreated, ProfileDisabled, ProfilePatched, ProfileReplaced, profile_id
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from ledger.events.scope_type import ScopeTypeRegistered
from ledger.events.slim import (
    Similar,
    Skipped,
    SlimApplied,
    SlimApproved,
    SlimFailed,
    SlimProposed,
    SlimRejected,
    SlimReported,
    SlimRequested,
    SlimReverted,
    SlimStarted,
    SlimWithdrawn,
)
from ledger.events.subject import SubjectForgotten
from ledger.events.usage import Usage

ITEM = "knowledge-20260305-a1b2"
AUTHOR = "agent:research_agent"
USER = "user:li.wei@example.com"
RESOURCE = "credentials/website_a"
TASK = "运行单元测试前需要准备数据库"
LINEAGE = Lineage(trace_id="trace-7f3a", message_id="msg-0042")

OTHER = "knowledge-20260305-d5e6"
EVOLUTION, SLIM = "evolution-20260305-e5f6", "slim-20260305-e1f2"

_USAGE = Usage(model="small-model", prompt_version="2026-03", input_tokens=812, output_tokens=64, cost_usd=0.0011)
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
            origin=Origin(trace_id="trace-7f3a", message_id="msg-0042"),
        ),
        ITEM,
        AUTHOR,
    ),
    (KnowledgeRevised(content="`make db` first, then `make test`.", reason="shorter"), ITEM, AUTHOR),
    (
        KnowledgeRated(
            verdict="helpful",
            case=Case(query=TASK, outcome="passed", trace_id="trace-81c0"),
            through="project:ledger",
        ),
        ITEM,
        USER,
    ),
    (KnowledgeScored(score=4, reason="saved an hour", through="project:ledger"), ITEM, USER),
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
        GoalFocused(
            goal_id="goal-123",
            owner=USER,
            description=TASK,
            items=[ServedItem(id=ITEM, version=2, relevance=0.83)],
            recall="recall-20260305-c3d4",
        ),
        goal_entity_id(USER, "goal-123"),
        USER,
    ),
    (SubjectForgotten(subject=USER, receipt="forget-20260305-0f3a9c21d7e4"), USER, "user:local"),
    (
        KnowledgeConfirmed(case=Case(task=TASK, message_id="msg-0050"), through="project:ledger"),
        ITEM,
        USER,
    ),
    (
        KnowledgeEvolved(evolution=EVOLUTION, base_version=2, content="`make db`, wait for it, then `make test`."),
        ITEM,
        AUTHOR,
    ),
    (
        KnowledgeReverted(
            to_version=2,
            types=["strategy", "tool"],
            task=TASK,
            content="`make db` first, then `make test`.",
            tags={"category": "habit", "domain": "testing"},
            scopes=["project:ledger", AUTHOR],
            resource_ids=[],
            source=Source(category="exp", urls=["https://example.com/testing"], agent_id="research_agent"),
            score=4,
            cause=EVOLUTION,
        ),
        ITEM,
        AUTHOR,
    ),
    (KnowledgeAbsorbed(slim=SLIM, merged=[OTHER], content="`make db`, then `make test`."), ITEM, AUTHOR),
    (KnowledgeMerged(into=ITEM, slim=SLIM), OTHER, AUTHOR),
    (KnowledgeUnmerged(slim=SLIM), OTHER, AUTHOR),
    (EvolutionRequested(item_id=ITEM, base_version=2, feedback="先等数据库就绪"), EVOLUTION, AUTHOR),
    (EvolutionStarted(call="evolution-20260305-e5f6-1", model="small-model"), EVOLUTION, AUTHOR),
    (
        EvolutionProposed(
            item_id=ITEM, content="`make db`, wait for it, then `make test`.", reason="said to wait", usage=_USAGE
        ),
        EVOLUTION,
        AUTHOR,
    ),
    (EvolutionRejected(item_id=ITEM, reason="it was right before"), EVOLUTION, AUTHOR),
    (EvolutionFailed(item_id=ITEM, code="model_failed", reason="no answer within 60 s"), EVOLUTION, AUTHOR),
    (
        ExtractionRequested(
            kind="statement",
            messages=[{"id": "msg-0042", "role": "user", "content": "以后都用中文回答我"}],
            owner=USER,
            scopes=[USER],
            agent_id="research_agent",
        ),
        "extraction-20260305-a7b8",
        USER,
    ),
    (ExtractionStarted(call="extraction-20260305-a7b8-1", model="small-model"), "extraction-20260305-a7b8", USER),
    (
        ExtractionCompleted(items=[Extracted(knowledge_id="knowledge-20260305-c9d0", action="saved")], usage=_USAGE),
        "extraction-20260305-a7b8",
        USER,
    ),
    (ExtractionFailed(code="budget_spent", reason="the day's budget is spent"), "extraction-20260305-a7b8", USER),
    (SlimRequested(owner=AUTHOR, scopes=["project:ledger"], model="small-model", threshold=0.85), SLIM, AUTHOR),
    (SlimStarted(call="slim-20260305-e1f2-0", model="small-model"), SLIM, AUTHOR),
    (
        SlimProposed(
            group=0,
            survivor=ITEM,
            survivor_version=2,
            merged=[Similar(id=OTHER, version=1, similarity=0.93)],
            content="`make db`, then `make test`.",
            usage=_USAGE,
        ),
        SLIM,
        AUTHOR,
    ),
    (SlimReported(candidates=120, groups=1, items=2, seconds=0.4), SLIM, AUTHOR),
    (SlimApproved(reason="they say the same"), SLIM, AUTHOR),
    (SlimApplied(groups=1), SLIM, AUTHOR),
    (SlimWithdrawn(reason="both were needed"), SLIM, AUTHOR),
    (SlimReverted(groups=0, skipped=[Skipped(group=0, reason="the survivor has changed since")]), SLIM, AUTHOR),
    (SlimRejected(reason="both are needed"), SLIM, AUTHOR),
    (SlimFailed(code="model_failed", reason="no answer within 60 s", usage=_USAGE), SLIM, AUTHOR),
    (
        ConflictRecorded(
            first=ITEM, first_version=2, second=OTHER, second_version=1, reason="one says before, one after"
        ),
        "conflict-20260305-b3c4",
        AUTHOR,
    ),
    (ConflictResolved(winner=ITEM, reason="tried it"), "conflict-20260305-b3c4", AUTHOR),
    (
        ResourceSaved(
            title="某网站测试账号",
            body="使用方法：直接登录即可，每天限额 100 次",
            secure_body=f"sealed:v1:resource:{RESOURCE}:q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
            content_type="credential",
            metadata={"acquired_at": "2026-03-06T10:00:00Z"},
            scopes=["project:ledger", AUTHOR],
            owner=AUTHOR,
            shared_with=["team:crawlers"],
            origin=Origin(trace_id="trace-7f3a", message_id="msg-0042"),
        ),
        RESOURCE,
        AUTHOR,
    ),
    (ResourceRetired(reason="the account was closed"), RESOURCE, AUTHOR),
    (ResourceRestored(reason="the account is open again"), RESOURCE, AUTHOR),
    (ResourceSecretDestroyed(reason="the password was seen"), RESOURCE, AUTHOR),
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
    (
        ModelUsed(kind="evolution", process=EVOLUTION, asked_by=AUTHOR, usage=_USAGE),
        f"{EVOLUTION}:evolve",
        "user:local",
    ),
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
"""By event name. Ids and times are fixed, so that generated documents change only with the code."""

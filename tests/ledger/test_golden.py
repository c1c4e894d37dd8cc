"""Every event that was ever written can still be read: one sample a name and version, never edited.

A sample is what a producer published then. A new event or version adds a file (`python -m tests.ledger.new_samples`); a
change to a line that stands means that the past is read in another way than it was, and needs a very good reason.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from kledger.contract.knowledge import AclEntry, Case, Source
from ledger.event import Fact
from ledger.events import FACTS
from ledger.events.extraction import ExtractionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    Origin,
)
from ledger.events.profile import ProfileCreated, ProfileDisabled, ProfilePatched, ProfileReplaced
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from ledger.events.scope_type import ScopeTypeRegistered
from ledger.events.subject import SubjectForgotten
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.envelope import decode_envelope, decode_fact, schema_name
from ledger.wire.upcasts import known_versions

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

CASE = Case(
    task="处理年报",
    query="年报 表格",
    outcome="12 张表全部正确",
    timestamp="2026-02-04T08:00:00Z",
    trace_id="trace-43",
    message_id="msg-9",
)

# A sample means the example of the reference, unless its meaning is written here. When an example changes, what it was
# is written here, and the sample stays.
WRITTEN: dict[str, Fact] = {
    "knowledge.saved.1": KnowledgeSaved(
        types=["tool"],
        task="从 PDF 中提取表格",
        content="用 `pdfplumber` 的 extract_tables()，先裁掉页眉。",
        tags={"category": "pdf"},
        scopes=["project:ledger", "public"],
        owner="agent:research_agent",
        resource_ids=["code/pdf/extract"],
        source=Source(
            name="pdfplumber",
            category="tool",
            urls=["https://example.com/pdfplumber"],
            agent_id="research_agent",
            submitted_by="user@example.com",
            timestamp="2026-02-01T08:30:00Z",
            message_id="msg-7",
        ),
        score=4,
        helpful=2,
        harmful=1,
        confidence=0.8,
    ),
    "knowledge.saved.2": KnowledgeSaved(
        types=["strategy", "tool"],
        task="Extract tables from a PDF",
        content="Crop the page header first, then call `extract_tables()`.",
        tags={"category": "pdf", "priority": 2},
        scopes=["project:ledger"],
        owner="agent:research_agent",
        source=Source(category="exp", agent_id="research_agent", trace_id="trace-42"),
        score=5,
        confidence=0.9,
    ),
    "knowledge.saved.3": KnowledgeSaved(
        types=["strategy"],
        task="在什么场景下要完成什么目标",
        content="核心知识内容",
        scopes=["org:cybertogether"],
        owner="agent:research_agent",
        source=Source(category="exp", agent_id="research_agent", timestamp="2026-03-05T12:00:00Z", message_id="msg-13"),
        score=4,
        origin=Origin(message_id="msg-12", created_at="2026-03-01T08:00:00Z", updated_at="2026-03-02T08:00:00Z"),
    ),
    "knowledge.saved.4": EXAMPLES["knowledge.saved"].fact.model_copy(update={"supersedes": None}),
    "knowledge.revised.1": KnowledgeRevised(
        content="先裁掉页眉和页脚，再调用 `extract_tables()`。",
        scopes=["project:ledger", "team:docs"],
        expected_version=1,
        reason="页脚也会干扰",
    ),
    "knowledge.rated.1": KnowledgeRated(verdict="helpful", case=CASE),
    "knowledge.rated.2": KnowledgeRated(verdict="helpful", case=CASE, through="project:ledger"),
    "knowledge.scored.1": KnowledgeScored(score=4, reason="works on scans too"),
    "knowledge.scored.2": KnowledgeScored(score=4, reason="works on scans too", through="project:ledger"),
    "knowledge.confirmed.1": KnowledgeConfirmed(case=Case(task="运行单元测试前需要准备数据库", message_id="msg-0050")),
    "knowledge.confirmed.2": KnowledgeConfirmed(
        case=Case(task="运行单元测试前需要准备数据库", message_id="msg-0050"), through="project:ledger"
    ),
    "knowledge.retired.1": KnowledgeRetired(),
    "knowledge.restored.1": KnowledgeRestored(reason="仍然有用"),
    "knowledge.shared.1": KnowledgeShared(
        acl=[
            AclEntry(entity="user:123", permission="read_write"),
            AclEntry(entity="department:财务", permission="read"),
        ]
    ),
    "scope_type.registered.1": ScopeTypeRegistered(type="department", priority=2.5),
    "profile.created.1": ProfileCreated(owner="user:123", memory_type="user", content={}),
    "profile.replaced.1": ProfileReplaced(
        owner="user:123",
        memory_type="work",
        content={
            "projects": [
                {
                    "name": "知识账本",
                    "meta": {"source": "explicit", "confidence": 0.9, "last_updated_at": "2026-02-09T00:00:00Z"},
                }
            ]
        },
    ),
    "profile.patched.1": ProfilePatched(
        owner="user:123", memory_type="work", patch={"projects": None, "habits": {"morning": "代码评审"}}
    ),
    "profile.disabled.1": ProfileDisabled(owner="user:123", memory_type="work", reason="on request"),
    "recall.served.1": RecallServed(
        query="表格 提取",
        visible_scopes=["agent:research_agent", "project:ledger", "public"],
        items=[
            ServedItem(id="knowledge-20260201-3f2b", version=2, relevance=0.91),
            ServedItem(id="knowledge-20260115-aa01", version=1, relevance=0.4),
        ],
        view_position=7,
    ),
    **{
        f"extraction.requested.{1 + (agent is not None)}": ExtractionRequested(
            kind="statement",
            messages=[{"id": "msg-0042", "role": "user", "content": "以后都用中文回答我"}],
            owner="user:li.wei@example.com",
            scopes=["user:li.wei@example.com"],
            agent_id=agent,
        )
        for agent in (None, "research_agent")
    },
    "resource.saved.2": ResourceSaved(
        title="某网站 Cookie",
        body="适用于:已登录状态的 API 调用",
        secure_body="sealed:v1:resource:cookies/website_a:q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
        content_type="cookie",
        metadata={"acquired_at": "2026-03-06T10:00:00Z", "expires_at": "2026-03-07T10:00:00Z"},
        scopes=["org:cybertogether"],
        owner="agent:research_agent",
        shared_with=["team:crawlers"],
        origin=Origin(trace_id="trace-44", message_id="msg-12"),
    ),
    "resource.saved.1": ResourceSaved(
        title="某网站 Cookie",
        body="适用于:已登录状态的 API 调用",
        secure_body="sealed:v1:resource:cookies/website_a:q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
        content_type="cookie",
        metadata={"acquired_at": "2026-03-06T10:00:00Z", "expires_at": "2026-03-07T10:00:00Z"},
        scopes=["org:cybertogether"],
        owner="agent:research_agent",
        shared_with=["team:crawlers"],
    ),
    "resource.retired.1": ResourceRetired(reason="网站改版"),
    "resource.restored.1": ResourceRestored(),
    "resource.secret_destroyed.1": ResourceSecretDestroyed(reason="leaked"),
    "goal.focused.1": GoalFocused(
        goal_id="goal-123",
        owner="agent:research_agent",
        description="整理年报中的表格",
        items=[ServedItem(id="knowledge-20260201-3f2b", version=2, relevance=0.91)],
        recall="recall-20260212-9c",
    ),
    "subject.forgotten.1": SubjectForgotten(subject="user:li.wei@example.com", receipt="forget-20260305-0f3a9c21d7e4"),
}
MEANING = {f"{name}.{FACTS[name].version}": example.fact for name, example in EXAMPLES.items()} | WRITTEN


def test_every_known_name_and_version_has_its_sample_and_its_meaning() -> None:
    known = {f"{fact.name}.{version}" for fact in FACTS.values() for version in known_versions(fact)}
    assert {path.stem for path in GOLDEN.glob("*.json")} == known
    assert set(MEANING) == known


@pytest.mark.parametrize("form", sorted(MEANING))
def test_a_sample_is_read_as_it_was_meant(form: str) -> None:
    envelope = decode_envelope((GOLDEN / f"{form}.json").read_bytes())
    fact = decode_fact(envelope)
    assert fact == MEANING[form]
    assert type(fact) is type(MEANING[form])
    name, _, version = form.rpartition(".")
    assert envelope.type == name
    assert envelope.dataschema == schema_name(FACTS[name], int(version))
    assert envelope.time.utcoffset() is not None


def test_the_attributes_of_an_envelope_are_read_as_they_were_meant() -> None:
    envelope = decode_envelope((GOLDEN / "knowledge.saved.1.json").read_bytes())
    assert envelope.id == "018f2c6e-7b1a-7000-8000-000000000001"
    assert envelope.source == "urn:example:research-agent"
    assert envelope.subject == "knowledge/knowledge-20260201-3f2b"
    assert envelope.time == datetime.fromisoformat("2026-02-01T00:30:00.123456+00:00")
    assert envelope.actor == "agent:research_agent"
    assert envelope.traceparent == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert (envelope.traceid, envelope.messageid) == ("trace-42", "msg-7")
    assert envelope.causationid == "018f2c6e-7b1a-7000-8000-000000000099"
    assert envelope.correlationid == "corr-1"

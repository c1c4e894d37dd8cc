"""A node with something of everything that the pages show, and who is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from kledger import LedgerClient
from ledger.event import Fact, NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.slim import SlimReported, SlimRequested
from ledger.events.usage import Usage
from ledger.store.jetstream import JetStreamLedger
from tests.journeys.running_node import RunningNode, caught_up, running

USER, AGENT, PROJECT = "jonas", "deployer", "harbour"
TRACE, MESSAGE, SESSION = "trace-release-44", "msg-release-44-01", "session-release-44"
GOAL = "release-44"
LAMPS = ("lamp-oil", "lamp-electric")
TEAM = ["project:harbour"]


@contextmanager
def furnished_node(data: Path) -> Iterator[RunningNode]:
    """A running node that was used for a while."""
    with running(data) as node:
        furnish(node)
        yield node


def furnish(node: RunningNode) -> None:
    """Save, judge, recall, propose, contradict: a few of each."""
    with node.client() as ledger:
        sample = (resources.files("producers") / "sample" / "knowledge.jsonl").read_text("utf-8")
        ledger.save_many(json.loads(line) for line in sample.splitlines() if line)
        jonas = ledger.acting_as(user=USER, project=PROJECT).within(trace_id=TRACE, message_id=MESSAGE)
        _memories(jonas)
        _history(ledger, jonas)
        _sessions(jonas)
        jonas.focus(GOAL, "Deploy release 44 at night")
        jonas.documents.ingest("harbour-handbook", text=HANDBOOK, content_type="text/markdown", title="Handbook")
        ledger.assign_roles(PROJECT, f"user:{USER}", ["coordinator"])
        scribe = ledger.acting_as(agent="scribe", project=PROJECT)
        scribe.remember(
            "Every pull request has one reviewer from another team.", "semantic", kind="convention", scopes=TEAM
        )
        scribe.remember("Tests run before a merge, not after it.", "semantic", kind="adr", scopes=TEAM)
        caught_up(ledger)
        with ThreadPoolExecutor(1) as thread:  # a browser's driver has a loop in this one
            thread.submit(lambda: asyncio.run(_appended(node, list(_proposals())))).result()
        caught_up(ledger)


def _memories(jonas: LedgerClient) -> None:
    jonas.remember("用户偏好使用 TypeScript + React 技术栈", "semantic", id="prefers-typescript", category="tech_stack")
    jonas.remember("修复了登录页面布局问题 (flex 错位)", "episodic", id="fixed-login", event="bug_fix", outcome="fixed")
    jonas.remember(
        "Review a change: style, security, then improvements.", "procedural",
        id="review-a-change", name="code review", trigger="a pull request", steps=["style", "security", "improvements"],
    )  # fmt: skip
    jonas.remember("Jonas is calm this week.", "short", id="calm-week", kind="mood")
    jonas.remember("The demo is on Thursday.", "short", id="demo-thursday", kind="follow_up")


def _history(ledger: LedgerClient, jonas: LedgerClient) -> None:
    jonas.save(
        "Deploy at night", "Deploy on Friday night, when nobody uses the service.", ["strategy"],
        id="night-deploys", scopes=["public"], tags={"area": "release", "risk": "high"},
        source={"name": "the release of March", "urls": ["https://example.org/release"]},
    )  # fmt: skip
    for name, words in zip(
        LAMPS, ("The lamp at the pier burns oil.", "The lamp at the pier is electric."), strict=True
    ):
        jonas.save("The lamp at the pier", words, ["definition"], id=name, scopes=["public"])
    agent = ledger.acting_as(agent=AGENT, project=PROJECT).within(trace_id=TRACE)
    for query in ("deploy at night", "when do we deploy", "测试有时候会失败", "the lamp at the pier"):
        agent.search(query, top_k=4)
    agent.rate("night-deploys", "helpful", task="release 44", outcome="no user noticed", trace_id=TRACE)
    mei = ledger.acting_as(user="mei")
    mei.rate("night-deploys", "harmful", task="release 45", reason="broken until Monday")
    jonas.revise("night-deploys", content="Deploy on Tuesday before noon.", reason="release 45")
    mei.rate("night-deploys", "helpful", task="release 46", outcome="done at eleven")
    ledger.acting_as(user="mei").save(
        "How the mail is sorted", "By hand, at noon.", ["plan"], id="mail", scopes=["public"]
    )
    ledger.acting_as(user="mei").retire("mail", reason="nobody writes letters any more")


def _sessions(jonas: LedgerClient) -> None:
    jonas.session(SESSION).append(
        [
            {"id": MESSAGE, "role": "user", "content": "When do we deploy release 44?"},
            {
                "id": "msg-release-44-02",
                "role": "assistant",
                "content": "On Friday night, when nobody uses the service.",
            },
            {"id": "msg-release-44-03", "role": "user", "content": "以后改成星期二上午发布，出了问题还有人在。"},
        ]
    )


def _proposals() -> Iterator[NewEvent]:
    usage = Usage(model="small-model", prompt_version="1")
    facts: tuple[tuple[str, Fact], ...] = (
        (
            "evolution-deploys",
            EvolutionRequested(item_id="night-deploys", base_version=2, feedback="say why", apply=False),
        ),
        (
            "evolution-deploys",
            EvolutionProposed(
                item_id="night-deploys",
                content="Deploy on Tuesday before noon: if it breaks, everybody is there to mend it.",
                usage=usage,
            ),
        ),
        ("slim-lamps", SlimRequested(owner=f"user:{USER}", threshold=0.9, apply=False)),
        ("slim-lamps", SlimReported(candidates=0, groups=0, items=2, seconds=0.1)),
        (
            "conflict-lamps",
            ConflictRecorded(
                first=LAMPS[0], first_version=1, second=LAMPS[1], second_version=1, reason="oil or electric"
            ),
        ),
    )
    for name, fact in facts:
        yield NewEvent(fact, name, f"user:{USER}")


async def _appended(node: RunningNode, events: list[NewEvent]) -> None:
    ledger = await JetStreamLedger.connect(node.access, role="node", name="furnished")
    for event in events:
        await ledger.append(event)
    await ledger.close()


HANDBOOK = """# Handbook of the harbour

The harbour has two gates and one crane.

## Fuel

Diesel is sold at the southern quay from seven in the morning until noon, and only to boats that are registered.

## 暴风雨

暴风雨来临时，外闸门由人工关闭，所有船只必须停在闸门后面，直到港长升起蓝旗。
"""

"""What follows from what a model found in messages? Pure: its answers in, events of knowledge out."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from consumers.reactors.work import NAMESPACE, Standing, Work
from kledger.contract.scopes import PUBLIC
from ledger.event import Fact, JsonObject, NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.extraction import Extracted, ExtractionCompleted
from ledger.events.knowledge import Case, KnowledgeConfirmed, KnowledgeSaved, Source
from ledger.events.usage import Usage
from projections.views.knowledge.ask import rfc3339
from projections.views.processes.ask import Process

MOST_FINDINGS = 60
PROFILE = "user_profile"
PROFILE_CATEGORIES = ("preference", "background", "habit", "constraint")


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Finding(_Said):
    """One piece of knowledge, as the model states it."""

    type: Literal["user_profile", "strategy", "tool", "usecase", "definition", "plan"]
    task: str
    content: str
    category: str
    domain: str
    message_ids: list[str]


class Findings(_Said):
    """Everything that it found."""

    items: list[Finding]


class Verdict(_Said):
    """What a finding is beside what is known."""

    item: int
    verdict: Literal["new", "duplicate", "conflict"]
    known: str | None
    reason: str


class Judgement(_Said):
    """Of each finding."""

    verdicts: list[Verdict]


def material(asked: JsonObject, messages: Sequence[JsonObject]) -> str:
    """What the model is given to find knowledge in."""
    told = [
        f'<message id="{message.get("id", "")}" role="{message.get("role", "user")}">\n{message.get("content", "")}\n'
        "</message>"
        for message in messages
    ]
    about = "" if asked["owner"].startswith("user:") else "\nNobody's profile is kept here: use another type.\n"
    return f"These messages are a {asked['kind']}.{about}\n\n" + "\n".join(told)


def knowledge_in(said: Findings, asked: JsonObject) -> list[Finding]:
    """What of it can be kept: no empty ones, no profile of nobody, and only messages that were given."""
    given = {message["id"] for message in asked["messages"] if isinstance(message, dict) and "id" in message}
    personal = asked["owner"].startswith("user:")
    found = []
    for finding in said.items[:MOST_FINDINGS]:
        if not finding.content.strip() or (finding.type == PROFILE and not personal):
            continue
        ids = [each for each in dict.fromkeys(finding.message_ids) if each in given]
        if not ids and len(given) == 1:
            ids = list(given)
        category = finding.category.strip()
        if finding.type == PROFILE and category not in PROFILE_CATEGORIES:
            category = "background"
        found.append(finding.model_copy(update={"message_ids": ids, "category": category}))
    return found


def pairs(found: Sequence[Finding], known: Mapping[int, Sequence[JsonObject]]) -> str:
    """What the model is given to compare."""
    told = []
    for number, items in known.items():
        finding = found[number]
        lines = [f'<new item="{number}">\n{finding.task}\n{finding.content}\n</new>']
        lines += [f'<known id="{item["id"]}">\n{item["task"]}\n{item["content"]}\n</known>' for item in items]
        told.append("\n".join(lines))
    return "\n\n".join(told)


def events_of(
    work: Work,
    standing: Standing,
    found: Sequence[Finding],
    known: Mapping[int, Sequence[JsonObject]],
    judgement: Judgement,
    usage: Usage,
) -> list[NewEvent]:
    """One save, confirmation or conflict a finding, and the end of the extraction."""
    process, asked = standing.process, standing.process.requested
    verdicts = {verdict.item: verdict for verdict in judgement.verdicts}
    events: list[NewEvent] = []
    became: list[Extracted] = []
    confirmed: set[str] = set()

    def state(fact: Fact, part: str, about: str, finding: Finding) -> None:
        message = finding.message_ids[0] if finding.message_ids else None
        events.append(work.event(process, fact, part, entity_id=about, message_id=message))

    for number, finding in enumerate(found):
        verdict = verdicts.get(number)
        others = {item["id"]: item for item in known.get(number, ())}
        other = others.get(verdict.known or "") if verdict is not None else None
        if verdict is not None and other is not None and verdict.verdict == "duplicate":
            if other["id"] not in confirmed:
                case = Case(task=finding.task, outcome=finding.content, reason=verdict.reason)
                read = process.owner if process.owner in (other["owner"], *other["scopes"]) else PUBLIC
                state(KnowledgeConfirmed(case=case, through=read), f"confirmed:{number}", other["id"], finding)
                became.append(Extracted(knowledge_id=other["id"], action="confirmed"))
            confirmed.add(other["id"])
            continue
        item_id = _item_id(process, number)
        state(_saved(finding, asked, process.trace_id, process.requested_us), f"saved:{number}", item_id, finding)
        conflicting = verdict is not None and other is not None and verdict.verdict == "conflict"
        if conflicting and verdict is not None and other is not None:
            fact = ConflictRecorded(
                first=other["id"],
                first_version=other["version"],
                second=item_id,
                second_version=1,
                reason=verdict.reason,
                extraction=process.id,
            )
            state(fact, f"conflict:{number}", _conflict_id(process, number), finding)
        became.append(Extracted(knowledge_id=item_id, action="conflict" if conflicting else "saved"))
    completed = ExtractionCompleted(items=became, usage=usage)
    return [*events, work.event(process, completed, "completed", expects=standing.last)]


def _saved(finding: Finding, asked: JsonObject, trace_id: str | None, requested_us: int) -> KnowledgeSaved:
    scopes: list[str] = asked["scopes"]
    if finding.type == PROFILE:  # of the person, and at most of the projects that this is about
        scopes = [asked["owner"], *(scope for scope in scopes if scope.startswith("project:"))]
    tags = {"category": finding.category, "domain": finding.domain.strip(), "message_ids": finding.message_ids}
    return KnowledgeSaved(
        types=[finding.type],
        task=finding.task,
        content=finding.content,
        tags={name: value for name, value in tags.items() if value},
        scopes=scopes,
        owner=asked["owner"],
        source=Source(
            category="exp",
            agent_id=asked.get("agent_id") or _agent(asked["owner"]),
            trace_id=trace_id,
            message_id=finding.message_ids[0] if finding.message_ids else None,
            timestamp=rfc3339(requested_us),
        ),
    )


def _agent(owner: str) -> str | None:
    """The agent that an owner is: a request of version 1 does not name the one that asks."""
    kind, _, name = owner.partition(":")
    return name if kind == "agent" else None


def _item_id(process: Process, number: int) -> str:
    """As a door makes one, but of the extraction: the same finding is the same item."""
    raw = uuid.uuid5(NAMESPACE, f"{_begun(process)}\n{number}").bytes[:5]
    day = datetime.fromtimestamp(process.requested_us / 1e6, UTC)
    return f"knowledge-{day:%Y%m%d}-{base64.b32encode(raw).decode().lower()}"


def _conflict_id(process: Process, number: int) -> str:
    return f"conflict-{uuid.uuid5(NAMESPACE, f'{_begun(process)} conflict {number}').hex[:16]}"


def _begun(process: Process) -> str:
    """What names an extraction and is known to nobody before it began: its microsecond by the broker's clock."""
    return f"{process.id} {process.requested_us}"

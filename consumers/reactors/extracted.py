"""Outcome of an extraction: pure functions from a model's answers to events of knowledge items."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, get_args

from consumers.reactors.work import NAMESPACE, ProcessState, Work
from consumers.structured import Structured
from kledger.contract.bounds import MOST_REASON, is_blank
from kledger.contract.knowledge import Case, Source
from kledger.contract.memory import Memory
from kledger.contract.scopes import PUBLIC
from ledger.event import Fact, JsonObject, NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.extraction import Extracted, ExtractionCompleted
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRevised, KnowledgeSaved
from ledger.events.statement import StatementHeld
from ledger.events.usage import Usage
from projections.similar.tombstones import SaidAgain
from projections.views.knowledge.ask import scopes_of
from projections.views.knowledge.memory_fields import is_short
from projections.views.processes.ask import Process
from projections.views.times import rfc3339

MOST_FINDINGS = 60
PROFILE = "user_profile"
PROFILE_CATEGORIES = ("preference", "background", "habit", "constraint")
OF_A_PERSON = (PROFILE, "preference", "mood")
"""Kinds that say how somebody is: the same words of somebody else are about somebody else."""
Passing = Literal["preference", "decision", "follow_up", "mood"]
"""What a session leaves for a while: a short memory of that kind."""
_PASSING: tuple[Passing, ...] = get_args(Passing)
_OF_A_SESSION = """
They were said in a session. Beside the kinds above, find what matters for the next days only, with one of these as its
`type`; its `content` says it in one sentence:
- preference: what the person has come to want otherwise than before.
- decision: what was decided for the work at hand, with the reason.
- follow_up: what somebody has yet to do, to answer or to come back to.
- mood: how the person feels about the work or the answers.
"""
_OF_A_VERDICT = """
What stands in <item> is known already, and the message after it judges it: find what the message adds to it.
"""


class Finding(Structured):
    """One piece of knowledge, as the model states it."""

    type: Literal["user_profile", "strategy", "tool", "usecase", "definition", "plan", Passing]
    task: str
    content: str
    category: str
    domain: str
    message_ids: list[str]


class Findings(Structured):
    """Everything that it found."""

    items: list[Finding]


class Verdict(Structured):
    """What a finding is beside what is known."""

    item: int
    verdict: Literal["new", "duplicate", "conflict"]
    known: str | None
    reason: str


class Judgement(Structured):
    """Of each finding."""

    verdicts: list[Verdict]


def material(requested: JsonObject, messages: Sequence[JsonObject]) -> str:
    """The prompt text with the messages to find knowledge in."""
    parts = [
        f'{_item(message)}<message id="{message.get("id", "")}" role="{message.get("role", "user")}">\n'
        f"{message.get('content', '')}\n</message>"
        for message in messages
    ]
    about = "" if requested["owner"].startswith("user:") else "\nNobody's profile is kept here: use another type.\n"
    about += _OF_A_SESSION if _session(requested) is not None else ""
    about += _OF_A_VERDICT if any(message.get("item") for message in messages) else ""
    return f"These messages are a {requested['kind']}.{about}\n\n" + "\n".join(parts)


def _item(message: JsonObject) -> str:
    """The item that a message judges, before the message."""
    item = message.get("item")
    return f'<item id="{item["id"]}">\n{item["task"]}\n{item["content"]}\n</item>\n' if item else ""


def _session(requested: JsonObject) -> str | None:
    """The session that the messages of a request are named in; None where they are not."""
    first = requested["messages"][0]
    session = first.get("session") if isinstance(first, dict) and "content" not in first else None
    return session if isinstance(session, str) else None


def usable_findings(answer: Findings, requested: JsonObject) -> list[Finding]:
    """The valid findings: not empty, no profile unless the owner is a user, nothing for a while unless of a session,
    with message ids of the request only."""
    known_ids = {message["id"] for message in requested["messages"] if isinstance(message, dict) and "id" in message}
    personal = requested["owner"].startswith("user:")
    findings = []
    for finding in answer.items[:MOST_FINDINGS]:
        if is_blank(finding.task) or is_blank(finding.content) or (finding.type == PROFILE and not personal):
            continue
        if finding.type in _PASSING and _session(requested) is None:
            continue
        ids = [each for each in dict.fromkeys(finding.message_ids) if each in known_ids]
        if not ids and len(known_ids) == 1:
            ids = list(known_ids)
        category = finding.category.strip()
        if finding.type == PROFILE and category not in PROFILE_CATEGORIES:
            category = "background"
        findings.append(finding.model_copy(update={"message_ids": ids, "category": category}))
    return findings


def pairs(findings: Sequence[Finding], known: Mapping[int, Sequence[JsonObject]]) -> str:
    """The prompt text with findings and the known items to compare them with."""
    parts = []
    for number, items in known.items():
        finding = findings[number]
        lines = [f'<new item="{number}">\n{finding.task}\n{finding.content}\n</new>']
        lines += [f'<known id="{item["id"]}">\n{item["task"]}\n{item["content"]}\n</known>' for item in items]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def events_of(
    work: Work,
    state: ProcessState,
    findings: Sequence[Finding],
    known: Mapping[int, Sequence[JsonObject]],
    judgement: Judgement,
    usage: Usage,
    held: Mapping[int, SaidAgain] = MappingProxyType({}),
    traces: Mapping[str, str] = MappingProxyType({}),
) -> list[NewEvent]:
    """One save, confirmation, revision or conflict for each finding, and the completion of the extraction.

    What contradicts a memory of the same owner is its next version, once in an extraction; what contradicts any other
    item, or one with readers who may not read the finding, is saved beside it, with a conflict for somebody to decide.
    A confirmation tells the words of a finding only to those who may read it. What stays is saved beside a short
    memory: it would be over with that. Findings that are `held` say what a person had retired or corrected: whatever
    the model says of them, they wait for a person, each once. `traces`: in which trace a message was said, by its id.
    """
    process, requested = state.process, state.process.requested
    verdicts = {verdict.item: verdict for verdict in judgement.verdicts}
    events: list[NewEvent] = []
    became: list[Extracted] = []
    confirmed: set[str] = set()
    revised: set[str] = set()

    def add(fact: Fact, part: str, about: str, finding: Finding) -> None:
        message = finding.message_ids[0] if finding.message_ids else None
        trace = traces.get(message or "")
        events.append(work.event(process, fact, part, entity_id=about, message_id=message, trace_id=trace))

    waiting: set[str] = set()
    for number, finding in enumerate(findings):
        if (again := held.get(number)) is not None:
            if again.standing is None and again.held_id not in waiting:
                saved = finding_saved(work, process, finding, traces)
                fact = StatementHeld.of([saved], _item_id(process, number), again.item_id, again.retired_at)
                add(fact, f"held:{number}", again.held_id, finding)
            waiting.add(again.held_id)
            became.append(Extracted(knowledge_id=again.held_id, action="held"))
            continue
        verdict = verdicts.get(number)
        others = {item["id"]: item for item in known.get(number, ())}
        other = others.get(verdict.known or "") if verdict is not None else None
        outlives = other is not None and is_short(other) and _short(finding, requested, work.lifetimes) is None
        if verdict is not None and other is not None and verdict.verdict == "duplicate" and not outlives:
            if other["id"] not in confirmed:
                case = Case()
                if _keeps_to(other, finding, requested):
                    case = Case(task=finding.task, outcome=finding.content, reason=verdict.reason)
                read = process.owner if process.owner in (other["owner"], *other["scopes"]) else PUBLIC
                add(KnowledgeConfirmed(case=case, through=read), f"confirmed:{number}", other["id"], finding)
                became.append(Extracted(knowledge_id=other["id"], action="confirmed"))
            confirmed.add(other["id"])
            continue
        conflicting = verdict is not None and verdict.verdict == "conflict"
        if (
            verdict is not None
            and other is not None
            and conflicting
            and not outlives
            and _is_revised(other, finding, requested, revised)
        ):
            revised.add(other["id"])
            revision = KnowledgeRevised(task=finding.task, content=finding.content, reason=verdict.reason[:MOST_REASON])
            add(revision, f"revised:{number}", other["id"], finding)
            became.append(Extracted(knowledge_id=other["id"], action="revised"))
            continue
        item_id = _item_id(process, number)
        add(finding_saved(work, process, finding, traces), f"saved:{number}", item_id, finding)
        conflicting = conflicting and other is not None
        if conflicting and verdict is not None and other is not None:
            recorded = ConflictRecorded(
                first=other["id"],
                first_version=other["version"],
                second=item_id,
                second_version=1,
                reason=verdict.reason,
                extraction=process.id,
            )
            add(recorded, f"conflict:{number}", _conflict_id(process, number), finding)
        became.append(Extracted(knowledge_id=item_id, action="conflict" if conflicting else "saved"))
    completed = ExtractionCompleted(items=became, usage=usage)
    return [*events, work.event(process, completed, "completed", expects=state.last)]


def finding_saved(
    work: Work, process: Process, finding: Finding, traces: Mapping[str, str] = MappingProxyType({})
) -> KnowledgeSaved:
    """The save of a finding."""
    memory = _short(finding, process.requested, work.lifetimes)
    # What came of a session names it as its trace: a recall there knows it, and finds what stands beside it. The trace
    # in which it was said is that of the event.
    said_in = next((traces[each] for each in finding.message_ids[:1] if each in traces), process.trace_id)
    trace_id = _session(process.requested) or said_in
    return _saved(finding, process.requested, trace_id, process.requested_us, memory)


def _is_revised(other: JsonObject, finding: Finding, requested: JsonObject, revised: Collection[str]) -> bool:
    """Whether a contradiction becomes the next version of the item: a memory of the same owner, not revised yet, that
    nobody reads who may not read the finding."""
    own = "memory" in other and other["owner"] == requested["owner"]
    return own and other["id"] not in revised and _keeps_to(other, finding, requested)


def _keeps_to(other: JsonObject, finding: Finding, requested: JsonObject) -> bool:
    """Whether all who read an item may read the finding as well: what one said alone is not told to a team."""
    allowed = {requested["owner"], *_scopes(finding, requested)}
    return PUBLIC in allowed or allowed.issuperset((other["owner"], *scopes_of(other)))


def _short(finding: Finding, requested: JsonObject, lifetimes: Mapping[str, int]) -> Memory | None:
    """What makes a finding a short memory; None where it is none."""
    session = _session(requested)
    if finding.type not in _PASSING or session is None:
        return None
    return Memory(layer="short", kind=finding.type, lifetime=lifetimes[finding.type], session=session)


def _scopes(finding: Finding, requested: JsonObject) -> list[str]:
    """Who may read a finding: those of the request, of a profile the person and at most the projects among them."""
    scopes: list[str] = requested["scopes"]
    if finding.type == PROFILE:
        return [requested["owner"], *(scope for scope in scopes if scope.startswith("project:"))]
    return scopes


def _saved(
    finding: Finding, requested: JsonObject, trace_id: str | None, requested_us: int, memory: Memory | None
) -> KnowledgeSaved:
    tags = {"category": finding.category, "domain": finding.domain.strip(), "message_ids": finding.message_ids}
    return KnowledgeSaved(
        types=[finding.type],
        task=finding.task,
        content=finding.content,
        tags={name: value for name, value in tags.items() if value},
        scopes=_scopes(finding, requested),
        owner=requested["owner"],
        memory=memory,
        source=Source(
            category="exp",
            agent_id=requested.get("agent_id") or _agent(requested["owner"]),
            trace_id=trace_id,
            message_id=finding.message_ids[0] if finding.message_ids else None,
            timestamp=rfc3339(requested_us),
        ),
    )


def _agent(owner: str) -> str | None:
    """The id of an owner that is an agent: a request of version 1 has no `agent_id`."""
    kind, _, name = owner.partition(":")
    return name if kind == "agent" else None


def _item_id(process: Process, number: int) -> str:
    """An id in the format of other new items, but derived from the extraction, so that a retry has the same id."""
    raw = uuid.uuid5(NAMESPACE, f"{_begun(process)}\n{number}").bytes[:5]
    day = datetime.fromtimestamp(process.requested_us / 1e6, UTC)
    return f"knowledge-{day:%Y%m%d}-{base64.b32encode(raw).decode().lower()}"


def _conflict_id(process: Process, number: int) -> str:
    return f"conflict-{uuid.uuid5(NAMESPACE, f'{_begun(process)} conflict {number}').hex[:16]}"


def _begun(process: Process) -> str:
    """A seed that nobody can know before the extraction began: it has the broker's time in microseconds."""
    return f"{process.id} {process.requested_us}"

"""Outcome of an extraction: pure functions from a model's answers to events of knowledge items."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from consumers.reactors.findings import PASSING, PROFILE, Finding, Judgement, Verdict, session_of
from consumers.reactors.work import NAMESPACE, ProcessState, Work
from kledger.contract.bounds import MOST_REASON
from kledger.contract.knowledge import Case, Source
from kledger.contract.memory import Memory
from kledger.contract.scopes import PUBLIC
from ledger.event import Fact, JsonObject, NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.extraction import Extracted, ExtractionCompleted
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRevised, KnowledgeSaved
from ledger.events.statement import StatementHeld
from ledger.events.usage import Usage
from ledger.privacy.personal import persons
from projections.similar.tombstones import SaidAgain
from projections.views.knowledge.ask import scopes_of
from projections.views.knowledge.memory_fields import is_short
from projections.views.processes.ask import Process
from projections.views.times import rfc3339


def events_of(
    work: Work,
    state: ProcessState,
    findings: Sequence[Finding],
    known: Mapping[int, Sequence[JsonObject]],
    judgement: Judgement,
    usage: Usage,
    held: Mapping[int, SaidAgain],
    traces: Mapping[str, str],
    unchanged: Mapping[str, int],
) -> list[NewEvent]:
    """One save, confirmation, revision or conflict for each finding, and the completion of the extraction.

    What contradicts a memory of the same owner is its next version, once in an extraction; what contradicts any other
    item, or one with readers who may not read the finding, is saved beside it, with a conflict for somebody to decide.
    A confirmation tells the words of a finding only to those who may read it. What stays is saved beside a short
    memory: it would be over with that. Findings that are `held` say what a person had retired or corrected: whatever
    the model says of them, they wait for a person, each once. `traces`: in which trace a message was said, by its id.
    `unchanged`: the last position of each memory that is as the model was given it; no other one is revised, as its
    owner's words are newer than the model's.
    """
    outcome = _Outcome(work, state.process, traces, unchanged)
    verdicts = {verdict.item: verdict for verdict in judgement.verdicts}
    for number, finding in enumerate(findings):
        if number in held:
            outcome.hold(number, finding, held[number])
            continue
        compared = _compared(verdicts.get(number), known.get(number, ()))
        action = outcome.action(finding, compared)
        if compared is None or action == "saved":
            outcome.save(number, finding)
        elif action == "confirmed":
            outcome.confirm(number, finding, compared)
        elif action == "revised":
            outcome.revise(number, finding, compared)
        else:
            outcome.save_beside(number, finding, compared)
    completed = ExtractionCompleted(items=outcome.became, usage=usage)
    return [*outcome.events, work.event(state.process, completed, "completed", expects=state.last)]


class _Compared(NamedTuple):
    """The known item that a finding was compared with, and what the model says of the two."""

    item: JsonObject
    verdict: Verdict


def _compared(verdict: Verdict | None, known: Sequence[JsonObject]) -> _Compared | None:
    """The verdict with the item that it names; None where it names none of those that were shown."""
    if verdict is None:
        return None
    item = next((item for item in known if item["id"] == verdict.known), None)
    return None if item is None else _Compared(item, verdict)


@dataclass(slots=True)
class _Outcome:
    """The events of an extraction, and what became of each finding, while they are gone through."""

    work: Work
    process: Process
    traces: Mapping[str, str]
    unchanged: Mapping[str, int]
    events: list[NewEvent] = field(default_factory=list)
    became: list[Extracted] = field(default_factory=list)
    _confirmed: set[str] = field(default_factory=set)
    _revised: set[str] = field(default_factory=set)
    _held: set[str] = field(default_factory=set)

    def action(
        self, finding: Finding, compared: _Compared | None
    ) -> Literal["saved", "confirmed", "revised", "conflict"]:
        """What becomes of a finding that is not held."""
        if compared is None:
            return "saved"
        other, verdict = compared
        requested = self.process.requested
        outlives = is_short(other) and _short(finding, requested, self.work.lifetimes) is None
        if verdict.verdict == "duplicate" and not outlives:
            return "confirmed"
        if verdict.verdict != "conflict":
            return "saved"
        own_memory = "memory" in other and other["owner"] == requested["owner"]
        as_given = other["id"] in self.unchanged and other["id"] not in self._revised
        if own_memory and as_given and not outlives and _keeps_to(other, finding, requested):
            return "revised"
        return "conflict"

    def hold(self, number: int, finding: Finding, again: SaidAgain) -> None:
        if again.standing is None and again.held_id not in self._held:
            saved = finding_saved(self.work, self.process, finding, self.traces)
            fact = StatementHeld.of([saved], _item_id(self.process, number), again.item_id, again.retired_at)
            self._add(fact, f"held:{number}", again.held_id, finding)
        self._held.add(again.held_id)
        self.became.append(Extracted(knowledge_id=again.held_id, action="held"))

    def confirm(self, number: int, finding: Finding, compared: _Compared) -> None:
        """Confirm the known item, once in an extraction."""
        other, verdict = compared
        if other["id"] in self._confirmed:
            return
        self._confirmed.add(other["id"])
        case = Case()
        if _keeps_to(other, finding, self.process.requested):
            case = Case(task=finding.task, outcome=finding.content, reason=verdict.reason)
        owner = self.process.owner
        read_through = owner if owner in (other["owner"], *other["scopes"]) else PUBLIC
        self._add(KnowledgeConfirmed(case=case, through=read_through), f"confirmed:{number}", other["id"], finding)
        self.became.append(Extracted(knowledge_id=other["id"], action="confirmed"))

    def revise(self, number: int, finding: Finding, compared: _Compared) -> None:
        other, verdict = compared
        self._revised.add(other["id"])
        revision = KnowledgeRevised(task=finding.task, content=finding.content, reason=verdict.reason[:MOST_REASON])
        # An event of the same item that is in this batch already says nothing of another one's position.
        first = all(event.entity_id != other["id"] for event in self.events)
        expects = self.unchanged[other["id"]] if first else None
        self._add(revision, f"revised:{number}", other["id"], finding, expects)
        self.became.append(Extracted(knowledge_id=other["id"], action="revised"))

    def save(self, number: int, finding: Finding) -> None:
        item_id = self._saved(number, finding)
        self.became.append(Extracted(knowledge_id=item_id, action="saved"))

    def save_beside(self, number: int, finding: Finding, compared: _Compared) -> None:
        """Save the finding, and record its conflict with the known item."""
        item_id = self._saved(number, finding)
        recorded = ConflictRecorded(
            first=compared.item["id"],
            first_version=compared.item["version"],
            second=item_id,
            second_version=1,
            reason=compared.verdict.reason,
            extraction=self.process.id,
        )
        self._add(recorded, f"conflict:{number}", _conflict_id(self.process, number), finding)
        self.became.append(Extracted(knowledge_id=item_id, action="conflict"))

    def _saved(self, number: int, finding: Finding) -> str:
        item_id = _item_id(self.process, number)
        fact = finding_saved(self.work, self.process, finding, self.traces)
        self._add(fact, f"saved:{number}", item_id, finding)
        return item_id

    def _add(self, fact: Fact, part: str, entity_id: str, finding: Finding, expects: int | None = None) -> None:
        message_id = finding.message_ids[0] if finding.message_ids else None
        said = {"message_id": message_id, "trace_id": self.traces.get(message_id or "")}
        self.events.append(self.work.event(self.process, fact, part, entity_id=entity_id, expects=expects, **said))


def finding_saved(work: Work, process: Process, finding: Finding, traces: Mapping[str, str]) -> KnowledgeSaved:
    """The save of a finding. `traces`: in which trace a message was said, by its id."""
    memory = _short(finding, process.requested, work.lifetimes)
    # What came of a session names it as its trace: a recall there knows it, and finds what stands beside it. The trace
    # in which it was said is that of the event.
    said_in = next((traces[each] for each in finding.message_ids[:1] if each in traces), process.trace_id)
    trace_id = session_of(process.requested) or said_in
    return _saved(finding, process.requested, trace_id, process.requested_us, memory)


def _keeps_to(other: JsonObject, finding: Finding, requested: JsonObject) -> bool:
    """Whether all who read an item may read the finding as well, and it is forgotten with whoever the finding is.

    What one said alone is not told to a team, nor written into what outlasts them.
    """
    owner, scopes = requested["owner"], _scopes(finding, requested)
    allowed = {owner, *scopes}
    if PUBLIC not in allowed and not allowed.issuperset((other["owner"], *scopes_of(other))):
        return False
    return {owner, *persons(other["owner"], other["scopes"])}.issuperset(persons(owner, scopes))


def _short(finding: Finding, requested: JsonObject, lifetimes: Mapping[str, int]) -> Memory | None:
    """What makes a finding a short memory; None where it is none."""
    session = session_of(requested)
    if finding.type not in PASSING or session is None:
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

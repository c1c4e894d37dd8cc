"""Findings of an extraction: what a model is asked, the shapes of its answers, and which of these are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from consumers.prompting import element
from consumers.structured import Structured
from kledger.contract.bounds import is_blank
from ledger.event import JsonObject

MOST_FINDINGS = 60
PROFILE = "user_profile"
PROFILE_CATEGORIES = ("preference", "background", "habit", "constraint")
OF_A_PERSON = (PROFILE, "preference", "mood")
"""Kinds that say how somebody is: the same words of somebody else are about somebody else."""
Passing = Literal["preference", "decision", "follow_up", "mood"]
"""What a session leaves for a while: a short memory of that kind."""
PASSING: tuple[Passing, ...] = get_args(Passing)
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


def material(requested: JsonObject, messages: Sequence[JsonObject], asked_at: str) -> str:
    """The prompt text with the messages to find knowledge in; `asked_at` is when those were said that tell no time."""
    parts = [
        _item(message) + element("message", message.get("content") or "", "item", **_who(message, asked_at))
        for message in messages
    ]
    about = "" if requested["owner"].startswith("user:") else "\nNobody's profile is kept here: use another type.\n"
    about += _OF_A_SESSION if session_of(requested) is not None else ""
    about += _OF_A_VERDICT if any(message.get("item") for message in messages) else ""
    return f"These messages are a {requested['kind']}.{about}\n\n" + "\n".join(parts)


def _who(message: JsonObject, asked_at: str) -> dict[str, str]:
    """Who says a message and when: its id and role, a name where it tells more than the role, and its time."""
    name = {"name": message["name"]} if message.get("name") else {}
    at = message.get("created_at") or asked_at
    return {"id": message.get("id", ""), "role": message.get("role", "user"), **name, "time": at}


def _item(message: JsonObject) -> str:
    """The item that a message judges, before the message."""
    item = message.get("item")
    return element("item", f"{item['task']}\n{item['content']}", "message", id=item["id"]) + "\n" if item else ""


def session_of(requested: JsonObject) -> str | None:
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
        if finding.type in PASSING and session_of(requested) is None:
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
        lines = [element("new", f"{finding.task}\n{finding.content}", "known", item=str(number))]
        lines += [element("known", f"{item['task']}\n{item['content']}", "new", id=item["id"]) for item in items]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)

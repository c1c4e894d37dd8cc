"""Events of a summary, in which a model sums up a part of a session. The entity id is the process'.

The text stands with the words of the session (ledger/sessions); that it is there is `session.summarised`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.bounds import ModelName
from kledger.contract.knowledge import Id
from kledger.contract.scopes import Entity
from kledger.contract.sessions import SessionId
from ledger.event import Example, Fact
from ledger.events.examples import SESSION, SUMMARY, USER
from ledger.events.process import CallStarted, Failed, ProcessFact
from ledger.events.session import SummaryLevel
from ledger.events.usage import EXAMPLE_USAGE, Usage

MessageNumber = Annotated[int, Field(ge=1, le=1_000_000_000)]


class SummaryRequested(ProcessFact):
    """The messages `first` to `last` of a session, by their numbers, are to be summed up; at level 3 in an overview."""

    name: ClassVar[str] = "summary.requested"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        SUMMARY, USER, session_id=SESSION, owner=USER, level=2, first=11, last=20, model="small-model"
    )

    session_id: SessionId
    owner: Entity
    level: SummaryLevel
    first: MessageNumber
    last: MessageNumber
    model: ModelName | None = None


class SummaryStarted(CallStarted):
    """A model is about to be asked."""

    name: ClassVar[str] = "summary.started"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    example: ClassVar[Example] = Example(SUMMARY, USER, call=f"{SUMMARY}:summarise", model="small-model")


class SummaryCompleted(ProcessFact):
    """It is with the words of the session, under the id `summary`."""

    name: ClassVar[str] = "summary.completed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(SUMMARY, USER, summary="summary-2-11-20", usage=EXAMPLE_USAGE)

    summary: Id
    usage: Usage


class SummaryFailed(Failed):
    """Nothing came of it: the window holds without it."""

    name: ClassVar[str] = "summary.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    example: ClassVar[Example] = Example(SUMMARY, USER, code="budget_spent", reason="the day's budget is spent")


FACTS: tuple[type[Fact], ...] = (SummaryRequested, SummaryStarted, SummaryCompleted, SummaryFailed)

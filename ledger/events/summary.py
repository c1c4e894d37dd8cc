"""Events in which a model sums up: a part of a session (summary), a document (abstract). The entity id is the process'.

The text of a summary stands with the words of the session (ledger/sessions); that it is there is `session.summarised`.
The text of an abstract stands in its last event.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from kledger.contract.bounds import ModelName
from kledger.contract.documents import MOST_SECTIONS, Heading, fault_of_id
from kledger.contract.documents import Summary as DocumentSummary
from kledger.contract.knowledge import Id, Scopes
from kledger.contract.scope_fields import Entity
from kledger.contract.sessions import SessionId
from ledger.event import Example, Fact
from ledger.events.examples import ABSTRACT, AUTHOR, DOCUMENT, SESSION, SUMMARY, USER
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


class AbstractRequested(ProcessFact):
    """A document of the actor, and its sections that have no summary of a model, are to be summed up."""

    name: ClassVar[str] = "abstract.requested"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(ABSTRACT, AUTHOR, document=DOCUMENT, model="small-model")

    document: Annotated[str, Field(min_length=1)]
    model: ModelName | None = None

    @model_validator(mode="after")
    def _check_document(self) -> Self:
        if fault := fault_of_id(self.document):
            raise ValueError(f"document {fault}")
        return self


class AbstractStarted(CallStarted):
    """A model is about to be asked."""

    name: ClassVar[str] = "abstract.started"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    example: ClassVar[Example] = Example(ABSTRACT, AUTHOR, call=f"{ABSTRACT}:summarise", model="small-model")


class AbstractCompleted(ProcessFact):
    """What a model says of the document as a whole, and of sections: those of before that stand as they did too.

    `digests`, separated by blanks, are of what the document says as a whole, and of what the section of each entry of
    `summaries` says: a summary is shown while the document says the same there.
    """

    name: ClassVar[str] = "abstract.completed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    personal: ClassVar[tuple[str, ...]] = ("summary", "summaries", "digests")
    example: ClassVar[Example] = Example(
        ABSTRACT,
        AUTHOR,
        summary="Two steps set the project up.",
        summaries=["The database is started first."],
        digests="9f86d081884c7d65 60303ae22b998861",
        scopes=["project:ledger", AUTHOR],
        owner=AUTHOR,
        usage=EXAMPLE_USAGE,
    )

    summary: DocumentSummary
    summaries: Annotated[list[Heading], Field(max_length=MOST_SECTIONS)]
    digests: Annotated[str, Field(max_length=64 * (MOST_SECTIONS + 1))]
    scopes: Scopes
    owner: Entity
    usage: Usage | None = None


class AbstractFailed(Failed):
    """Nothing came of it: the sentences of the document stand for it."""

    name: ClassVar[str] = "abstract.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    example: ClassVar[Example] = Example(ABSTRACT, AUTHOR, code="budget_spent", reason="the day's budget is spent")


FACTS: tuple[type[Fact], ...] = (
    *(SummaryRequested, SummaryStarted, SummaryCompleted, SummaryFailed),
    *(AbstractRequested, AbstractStarted, AbstractCompleted, AbstractFailed),
)

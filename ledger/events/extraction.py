"""Events of an extraction, in which a model finds knowledge in messages. The entity id is the extraction's.

The items themselves are saved, confirmed or recorded as conflicts by their own events, which have the extraction as
their correlation id and carry the ids of the messages they came from.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.bounds import Document, ModelName, Short
from kledger.contract.knowledge import Id, Scopes
from kledger.contract.part import Part
from kledger.contract.scope_fields import SeenEntity
from kledger.contract.words import ExtractionAction, ExtractionKind
from ledger.event import Example, Fact
from ledger.events.examples import EXTRACTION, MESSAGE, USER
from ledger.events.process import CallStarted, Failed, ProcessFact
from ledger.events.usage import EXAMPLE_USAGE, Usage


class Extracted(Part):
    """What became of one piece of knowledge that was found."""

    knowledge_id: Id
    action: ExtractionAction


class ExtractionRequested(ProcessFact):
    """Knowledge is to be drawn from messages: objects with `id`, `role` and `content`.

    `agent_id`, which version 2 has, is the agent that has it drawn: what is found names it in its source.
    """

    name: ClassVar[str] = "extraction.requested"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("agent_id",)
    personal: ClassVar[tuple[str, ...]] = ("messages",)
    example: ClassVar[Example] = Example(
        EXTRACTION,
        USER,
        kind="statement",
        messages=[{"id": MESSAGE, "role": "user", "content": "以后都用中文回答我"}],
        owner=USER,
        scopes=[USER],
        agent_id="research_agent",
    )

    kind: ExtractionKind
    messages: Annotated[list[Document], Field(min_length=1, max_length=1_000)]
    owner: SeenEntity
    scopes: Scopes
    model: ModelName | None = None
    agent_id: Annotated[Short | None, Field(exclude_if=lambda value: value is None)] = None


class ExtractionStarted(CallStarted):
    """A model is about to be asked."""

    name: ClassVar[str] = "extraction.started"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    example: ClassVar[Example] = Example(EXTRACTION, USER, call=f"{EXTRACTION}-1", model="small-model")


class ExtractionCompleted(ProcessFact):
    """What was found, and what became of it."""

    name: ClassVar[str] = "extraction.completed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        EXTRACTION, USER, items=[Extracted(knowledge_id="knowledge-20260305-c9d0", action="saved")], usage=EXAMPLE_USAGE
    )

    items: Annotated[list[Extracted], Field(max_length=1_000)]
    usage: Usage


class ExtractionFailed(Failed):
    """Nothing came of it."""

    name: ClassVar[str] = "extraction.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    example: ClassVar[Example] = Example(EXTRACTION, USER, code="budget_spent", reason="the day's budget is spent")


FACTS: tuple[type[Fact], ...] = (ExtractionRequested, ExtractionStarted, ExtractionCompleted, ExtractionFailed)

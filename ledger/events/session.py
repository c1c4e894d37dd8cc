"""Events of an agent's sessions: when each was opened, summed up, closed and removed; never what was said in it.

The words stand in a stream of their own (ledger/sessions), from which a session can be removed; the log keeps what is
true for good. The entity id is `{owner}/{session_id}`. Only the owner publishes these.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.knowledge import Count, Id
from kledger.contract.scope_fields import Entity, SeenEntity
from kledger.contract.sessions import MessageId, SessionId
from kledger.contract.words import SessionEnd, SessionRemoval
from ledger.event import Example, Fact
from ledger.events.examples import MESSAGE, SESSION, USER
from ledger.events.usage import EXAMPLE_USAGE, Usage

SummaryLevel = Annotated[int, Field(ge=2, le=3)]


def session_entity_id(owner: str, session_id: str) -> str:
    """The entity id of one session of one owner."""
    return f"{owner}/{session_id}"


class SessionFact(Fact):
    """What every event of a session says: which one it is, and whose."""

    personal: ClassVar[tuple[str, ...]] = ()

    session_id: SessionId
    owner: Entity

    def stated_id(self) -> str:
        """The entity id in the data, which the subject has to match."""
        return session_entity_id(self.owner, self.session_id)


class SessionOpened(SessionFact):
    """The first message comes, or the first one after it was closed."""

    name: ClassVar[str] = "session.opened"
    example: ClassVar[Example] = Example(session_entity_id(USER, SESSION), USER, session_id=SESSION, owner=USER)

    owner: SeenEntity


class SessionSummarised(SessionFact):
    """A model summed up a part of the session: `messages` of them, from `first` to `last`.

    At level 2 a segment of it, at level 3 everything up to `last` in one overview. The text of it is with the words.
    """

    name: ClassVar[str] = "session.summarised"
    example: ClassVar[Example] = Example(
        session_entity_id(USER, SESSION),
        USER,
        session_id=SESSION,
        owner=USER,
        level=2,
        summary="summary-2-11",
        first="msg-0033",
        last=MESSAGE,
        messages=10,
        usage=EXAMPLE_USAGE,
    )

    level: SummaryLevel
    summary: Id
    first: MessageId
    last: MessageId
    messages: Count
    usage: Usage


class SessionClosed(SessionFact):
    """It was closed with so many messages, by request or as nothing was said for long. It may be opened again."""

    name: ClassVar[str] = "session.closed"
    example: ClassVar[Example] = Example(
        session_entity_id(USER, SESSION), USER, session_id=SESSION, owner=USER, cause="idle", messages=42
    )

    cause: SessionEnd
    messages: Count


class SessionRemoved(SessionFact):
    """Its words were removed, by request or so many days after its last one; `messages` is how many there were."""

    name: ClassVar[str] = "session.removed"
    example: ClassVar[Example] = Example(
        session_entity_id(USER, SESSION), USER, session_id=SESSION, owner=USER, cause="expired", messages=42
    )

    cause: SessionRemoval
    messages: Count


FACTS: tuple[type[Fact], ...] = (SessionOpened, SessionSummarised, SessionClosed, SessionRemoved)

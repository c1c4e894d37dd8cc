"""Request body of a recall by a message."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.bounds import MAX_ID
from kledger.contract.language import Language
from kledger.contract.recall import MOST_RECALLED, Match
from kledger.contract.sessions import MOST_CONTENT, SessionId
from kledger.contract.words import MessageKind, RecallLayer
from kledger.requests.body import Asked

MOST_MESSAGE = MOST_CONTENT
"""Characters of what is recalled for, as of a message of a session; of a long one the parts are searched that
say what is asked."""
MOST_BUDGET = 1_000_000
Message = Annotated[str, Field(min_length=1, max_length=MOST_MESSAGE)]


class RecallRequest(Asked):
    """What to recall for a message: of one that has more than 4,000 characters its questions, beginning and end are
    searched.

    With a `session` of the caller's, what its context holds already is left out. `target_agent` asks across agents: the
    shared memory, and what that agent knows how to do. `layers` reads these alone. Left out is what matches the message
    less than `min_match`, or without one what answers nothing. `text` is cut to `budget_tokens`. `as_of` answers as it
    was then: a log position, or an RFC 3339 moment. The `kind` `page` is for a person who looks: it counts for nothing.
    """

    message: Message
    session: SessionId | None = None
    target_agent: Annotated[str, Field(min_length=1, max_length=MAX_ID)] | None = None
    layers: Annotated[list[RecallLayer], Field(min_length=1, max_length=8)] | None = None
    as_of: int | str | None = None
    top_k: Annotated[int, Field(ge=1, le=MOST_RECALLED)] = 5
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    min_match: Match | None = None
    budget_tokens: Annotated[int, Field(ge=1, le=MOST_BUDGET)] | None = None
    language: Language | None = None
    record: bool = True
    kind: MessageKind = "recall"

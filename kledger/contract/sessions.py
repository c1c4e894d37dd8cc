"""Shapes and bounds of a session's messages, shared by requests, answers and the store of words."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kledger.contract.bounds import MOST_REASON, Document, NewId, check_text

Role = Literal["system", "developer", "user", "assistant", "tool"]

MOST_MESSAGES = 1_000
"""Messages of one request."""
MOST_CONTENT = 1024 * 1024
"""Characters of one message's content."""
MOST_WORDS = 4 * 1024 * 1024
"""Bytes of one message: its content, calls and attachments as JSON."""
MOST_CALLS = 128
MOST_ATTACHMENTS = 64
MOST_STATED_TOKENS = 10_000_000

Content = Annotated[str, Field(max_length=MOST_CONTENT), AfterValidator(check_text)]
ToolCalls = Annotated[list[Document], Field(max_length=MOST_CALLS)]
"""As a model states them: objects with an `id`, by which the messages with their results name them."""
Attachments = Annotated[list[Document], Field(max_length=MOST_ATTACHMENTS)]
"""By reference: objects with a name, a type, a place."""
StatedTokens = Annotated[int, Field(ge=0, le=MOST_STATED_TOKENS)]
LEAST_WINDOW, MOST_WINDOW = 200, 100_000_000
"""Tokens of a model's window."""
Window = Annotated[int, Field(ge=LEAST_WINDOW, le=MOST_WINDOW)]
MOST_ENTRIES = 1_000
"""Entries of each list of a scratchpad."""
MOST_SCRATCHPAD = 256 * 1024
"""Bytes of a scratchpad as JSON."""
ScratchpadText = Annotated[str, Field(max_length=MOST_REASON), AfterValidator(check_text)]
ScratchpadList = Annotated[list[ScratchpadText], Field(max_length=MOST_ENTRIES)]
SessionId = NewId


def _not_of_a_summary(value: str) -> str:
    """Return the id of a message that no summary has; for pydantic."""
    if re.fullmatch(r"summary-\d+-\d+-\d+", value, re.ASCII):
        raise ValueError("is the form of the ids of summaries: choose another one")
    return value


MessageId = Annotated[NewId, AfterValidator(_not_of_a_summary)]

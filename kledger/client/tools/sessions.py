"""Tools for sessions: keep what is said, read what fits the window, expand a summary, note where the work stands."""

from __future__ import annotations

from dataclasses import replace

from kledger.answers.sessions import AppendedMessages, Expanded, SessionContext, SessionScratchpad
from kledger.client import sessions
from kledger.client.tools import arguments as given
from kledger.client.tools.hints import tool
from kledger.client.wire import Wire


@tool("Keep what is said", repeatable=True)
async def session_append(wire: Wire, session_id: given.SessionId, messages: given.Messages) -> AppendedMessages:
    """Keep messages of a conversation, in order: yours, your user's, and what tools answered.

    An id counts once in a session: what you send again after an error is there once, and other words need another id.
    """
    return await sessions.append(replace(wire, session_id=session_id), messages)


@tool("Read what fits the window", reads=True)
async def session_context(
    wire: Wire, session_id: given.SessionId, max_tokens: given.MaxTokens, model: given.ForModel = None
) -> SessionContext:
    """Read as much of a conversation as fits a model's window: prompts, the last question, results, then the rest.

    What is older comes as summaries where a model has made some; `left_out` says what is missing. session_expand gives
    back the words of what is shortened or summed up.
    """
    return await sessions.context(replace(wire, session_id=session_id), max_tokens, model=model)


@tool("Read the words behind a summary", reads=True)
async def session_expand(wire: Wire, session_id: given.SessionId, record_id: given.RecordId) -> Expanded:
    """Read a message whole that session_context shortened, such as a tool's output, or the messages that a summary
    stands for."""
    return await sessions.expand(replace(wire, session_id=session_id), record_id)


@tool("Note where the work stands", repeatable=True)
async def session_scratchpad(wire: Wire, session_id: given.SessionId, patch: given.Noted = None) -> SessionScratchpad:
    """Note your goal, steps, decisions and blockers while you work, and read them back when you go on.

    It belongs to the session and ends when nobody says or notes anything for half an hour.
    """
    return await sessions.scratchpad(replace(wire, session_id=session_id), patch)

"""Asking for summaries of a session, beside the request that found its context too large.

Segments that reach into the window are asked for, then some of what is older, and an overview of the summaries that are
there: a context never waits for one. Ids of the requests follow from the session and the segment: however often it is
asked, through whichever node, a model sums it up once. What failed is asked again later, a few times.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal

import structlog

from kledger.contract.errors import LedgerError, VersionConflict
from ledger.event import NewEvent
from ledger.events.summary import SummaryRequested
from ledger.named_ids import named_id
from ledger.sessions.context import Context, Conversation
from ledger.sessions.settings import SessionSettings
from ledger.sessions.subjects import SessionKey
from ledger.sessions.summaries import segments_wanted, summary_id
from producers.operations.available_models import is_set
from producers.operations.desk import Desk
from producers.operations.publish import publish
from producers.operations.sessions.whose import Found, now_us
from projections.views.processes import ask as processes

log = structlog.get_logger(__name__)

MOST_TRIES = 4
AGAIN_US = 600_000_000
"""After so long a summary that failed is asked for again."""
_NAMESPACE = uuid.UUID("a1f6d6de-5b7e-5c53-9a1e-0e9d4c3b2a10")


def may_summarise(desk: Desk) -> bool:
    """Whether a model is set for summaries."""
    return is_set(desk.models, "summarise")


Wanted = tuple[Literal[2, 3], int, int]
"""A summary that a context lacks: its level, and the first and last message that it stands for."""


def summaries_wanted(conversation: Conversation, cut: Context, settings: SessionSettings) -> list[Wanted]:
    """What the context lacks, the window's segments first; nothing while less than a segment is older than what stays.

    At level 3 fewer messages stay, so that a conversation of few and long messages is summed up too.
    """
    there = {each.first_number for each in conversation.summaries}
    first_seen = min((message.number for message in conversation.messages), default=1)
    kept = min(settings.kept_2, settings.kept_3) if cut.wanted == 3 else settings.kept_2
    segments = segments_wanted(conversation.total, kept, settings.segment, first_seen, there)
    if segments:
        return [(2, first, last) for first, last in segments]
    last_summed = max((each.last_number for each in conversation.summaries), default=0)
    overview = conversation.overview
    if cut.wanted == 3 and last_summed > (overview.last_number if overview is not None else 0):
        return [(3, 1, last_summed)]
    return []


async def ask_summaries(desk: Desk, session: Found, wanted: Sequence[Wanted]) -> None:
    """Ask for them. Raises nothing of ours: the next context asks again."""
    try:
        for level, first, last in wanted:
            await _ask(desk, session, level, first, last)
    except LedgerError as error:
        log.warning("summaries of a session are asked for later", code=error.code)


async def _ask(desk: Desk, session: Found, level: Literal[2, 3], first: int, last: int) -> None:
    key = session.key
    fact = SummaryRequested(session_id=key.session_id, owner=key.owner, level=level, first=first, last=last)
    for attempt in range(MOST_TRIES):
        own_id, name = _named(key, session.head.opened, summary_id(level, first, last), attempt)
        process = await desk.view.ask(processes.process, desk.org, "summary", name)
        if process is not None:
            if process.stage == "failed" and now_us() - process.updated_us > AGAIN_US:
                continue
            return
        event = NewEvent(fact, name, key.owner, desk.org, id=own_id, expects=0)
        try:
            await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            log.debug("a summary was asked for before", summary=name)
        return


def _named(key: SessionKey, opened: int, summary: str, attempt: int) -> tuple[str, str]:
    own_id = named_id(_NAMESPACE, "\n".join((key.name, str(opened), summary, str(attempt))))
    return own_id, f"summary-{uuid.UUID(own_id).hex[:16]}"

"""Answers an ingestion that was sent before under its Idempotency-Key, as it was answered then."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kledger.answers.documents import IngestedDocument
from kledger.contract.scopes import Caller
from producers.operations.desk import Desk
from producers.operations.documents.planning import Statement
from projections.similar.tombstones import Stated, said_again
from projections.views.documents import ask


async def repeated(
    desk: Desk,
    caller: Caller,
    actors: Collection[str],
    own_id: str,
    said: Sequence[Statement],
    now: ask.Standing | None,
) -> IngestedDocument | None:
    """The answer of the earlier request; None where there is none, or where it was not finished.

    A chunk without an item is held, or was left out by a crash: it is held where a person retired what it says.
    """
    made = await desk.view.ask(ask.made_by, desk.org, actors, own_id)
    if made is None:
        return None
    known = await desk.view.ask(ask.chunk_states, desk.org, made.chunks)
    missing = {
        number: Stated(each.task, each.content, made.owner, tuple(made.scopes))
        for number, (item_id, each) in enumerate(zip(made.chunks, said, strict=False))
        if item_id not in known
    }
    await desk.view.wait_for(desk.tally.corrected)
    again = await desk.view.ask(said_again, desk.org, caller, missing)
    if len(again) < len(missing) and now is not None and now.event_id == own_id:
        return None
    held = len(missing) + made.released
    return IngestedDocument(
        id=made.id,
        title=made.title,
        position=made.position,
        version=made.version,
        event_id=own_id,
        duplicate=True,
        sections=made.sections,
        saved=made.saved,
        held=held,
        unchanged=len(made.chunks) - made.saved - held,
        retired=len(set(made.before) - set(made.chunks)),
    )

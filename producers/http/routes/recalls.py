"""The routes of recalls that were recorded."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from kledger.answers.recalls import RecallList, RecallShown, RecallsOfItem
from kledger.contract.bounds import MAX_ID, MOST_SHORT
from kledger.contract.recall import MOST_RECALLS_LISTED
from kledger.contract.words import RecallKind
from producers.http.answers import ReadJson, documented
from producers.http.parameters import MAX_POSITION, Fresh, FreshQuery, ItemId, Own, RecallId, Who, entity_named
from producers.http.parameters import moment_or_position as moment
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.recall import recorded
from projections.fold_kit.page import Window
from projections.views.recalls.ask import Wanted

_BEFORE = "Recalls before this position: `next` of the page before"
_COUNTS = "true: those that count, without looks at pages; false: looks alone"
_MOMENT = "a log position, or an RFC 3339 moment"


class RecallsQuery(FreshQuery):
    """Which recalls."""

    trace: Annotated[str | None, Field(max_length=MOST_SHORT, description="Of this trace")] = None
    actor: Annotated[str | None, Field(description="Of this entity: `type:id`, or the mail address of a user")] = None
    kind: Annotated[RecallKind | None, Field(description="Of this kind; `page` is a person who looked")] = None
    item: Annotated[str | None, Field(max_length=MAX_ID, description="That served this item")] = None
    counts: Annotated[bool | None, Field(description=_COUNTS)] = None
    since: Annotated[str | None, Field(description=f"From then on: {_MOMENT}")] = None
    until: Annotated[str | None, Field(description=f"Before then: {_MOMENT}")] = None
    limit: Annotated[int, Field(ge=1, le=MOST_RECALLS_LISTED)] = 20
    before: Annotated[int | None, Field(ge=0, le=MAX_POSITION, description=_BEFORE)] = None

    def wanted(self) -> Wanted:
        """The recalls that are asked for. Raises InvalidPayload, IllegalScope."""
        return Wanted(
            trace=self.trace,
            actor=entity_named(self.actor),
            kind=self.kind,
            counts=self.counts,
            item=self.item,
            since=None if self.since is None else moment(self.since, "since"),
            until=None if self.until is None else moment(self.until, "until"),
        )


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("recall")

    @router.get("/api/knowledge/{item_id}/recalls", responses=documented(RecallsOfItem, 404))
    async def recalls_of_item(
        caller: Who,
        item_id: ItemId,
        fresh: Fresh,
        limit: Annotated[int, Query(ge=1, le=MOST_RECALLS_LISTED)] = 20,
        before: Annotated[int | None, Query(ge=0, le=MAX_POSITION, description=_BEFORE)] = None,
        counts: Annotated[bool | None, Query(description=_COUNTS)] = None,
    ) -> ReadJson:
        """The recalls of the caller that served an item, newest first; the operator's are all."""
        window = Window(limit, before=before)
        return ReadJson(await recorded.of_item(desk, caller, item_id, window, counts=counts, freshness=fresh), fresh)

    @router.get("/api/recalls", responses=documented(RecallList))
    async def list_recalls(caller: Who, own: Own, asked: Annotated[RecallsQuery, Query()]) -> ReadJson:
        """The recalls of the caller, newest first; the operator's are all."""
        fresh = asked.freshness(own)
        window = Window(asked.limit, before=asked.before)
        return ReadJson(await recorded.recalls(desk, caller, asked.wanted(), window, freshness=fresh), fresh)

    @router.get("/api/recalls/{recall_id}", responses=documented(RecallShown, 404, 410))
    async def recall_shown(caller: Who, recall_id: RecallId, fresh: Fresh) -> ReadJson:
        """What a recall of the caller's served, word for word, and which version holds now."""
        return ReadJson(await recorded.recall(desk, caller, recall_id, freshness=fresh), fresh)

    return [router]

"""The routes of knowledge and its lineage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.knowledge import (
    Changed,
    History,
    ItemList,
    RatedMany,
    SavedItem,
    SavedMany,
    SearchResults,
    WholeItem,
)
from kledger.answers.lineage import LineageOf, TraceList
from kledger.answers.models import Reverted
from kledger.answers.parts import Moved
from kledger.answers.sharing import Why
from kledger.contract.words import ItemSort
from kledger.requests.knowledge import FeedbackRequest, SaveManyRequest, SaveRequest, ShareRequest, UpdateRequest
from kledger.requests.models import RevertRequest
from producers.http.answers import PROPOSED, UNDER_WAY, Json, ReadJson, documented, saved_item
from producers.http.bodies import BatchRoute
from producers.http.filters import Filters, Searching
from producers.http.parameters import (
    MAX_POSITION,
    AsOf,
    Before,
    ExpectedVersion,
    Fresh,
    From,
    ItemId,
    Limit,
    Offset,
    Own,
    Patience,
    Read,
    Reason,
    Retry,
    Who,
    named_labels,
)
from producers.http.routing import router as new_router
from producers.operations import feedback
from producers.operations.bulk import importing
from producers.operations.desk import Desk
from producers.operations.knowledge import changes, reading, reverting, saving, sharing, verdicts
from producers.operations.models.processes import PATIENCE
from producers.operations.recall import search as recall
from projections.fold_kit.page import Window
from projections.views.knowledge.parts import Part

_LATEST = "The latest so many versions, and so many cases"
_EARLIER = "Versions and cases of earlier positions than this one"
_SHORTEN = "So many characters of each content; `length` then says how many the whole has"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_reads(desk), _writes(desk), _batches(desk)]


def _reads(desk: Desk) -> APIRouter:
    router = new_router("knowledge")

    @router.get("/api/knowledge/search", responses=documented(SearchResults))
    async def search(caller: Who, lineage: From, own: Own, asked: Searching) -> Json:
        """The items that fit best and that the caller may see; what is served is recorded."""
        fresh = asked.freshness(own)
        return ReadJson(
            await recall.search(
                desk,
                caller,
                lineage,
                asked.q,
                top_k=asked.top_k,
                min_score=asked.min_score,
                min_match=asked.min_match,
                types=asked.named_types() or None,
                owner=asked.owned_by(),
                visibility=named_labels(asked.visibility),
                among=asked.among(),
                as_of=asked.moment(),
                paths=asked.paths,
                record=asked.record,
                kind=asked.kind,
                route=asked.route,
                explain=asked.explain,
                freshness=fresh,
            ),
            fresh,
        )

    @router.get("/api/knowledge", responses=documented(ItemList))
    async def list_items(
        caller: Who,
        fresh: Fresh,
        as_of: AsOf,
        wanted: Filters,
        limit: Limit = 10,
        offset: Offset = 0,
        before: Before = None,
        sort: Annotated[ItemSort, Query(description="The order; in any but newest, `next` is an offset")] = "newest",
    ) -> Json:
        """The items that the caller may see, newest first or in another order."""
        window = Window(limit, offset, before)
        return ReadJson(
            await reading.list_items(desk, caller, wanted, window, sort=sort, as_of=as_of, freshness=fresh), fresh
        )

    @router.get("/api/knowledge/{item_id}/history", responses=documented(History, 404))
    async def history(
        caller: Who,
        item_id: ItemId,
        fresh: Fresh,
        limit: Annotated[int | None, Query(ge=1, le=1_000, description=_LATEST)] = None,
        before: Annotated[int | None, Query(ge=0, le=MAX_POSITION, description=_EARLIER)] = None,
        shorten: Annotated[int | None, Query(ge=0, le=2**31, description=_SHORTEN)] = None,
    ) -> Json:
        """The versions of an item that the caller may see, and the cases that judged it; all without a `limit`."""
        part = Part(limit, before, shorten)
        return ReadJson(await reading.history(desk, caller, item_id, part, freshness=fresh), fresh)

    @router.get("/api/knowledge/{item_id}/why", responses=documented(Why, 404))
    async def why(caller: Who, item_id: ItemId, fresh: Fresh) -> Json:
        """Why the caller may read an item, since which event, and who may change it."""
        return ReadJson(await sharing.why_visible(desk, caller, item_id, freshness=fresh), fresh)

    @router.get("/api/knowledge/{item_id}", responses=documented(WholeItem, 404))
    async def get(caller: Who, item_id: ItemId, own: Own, asked: Read) -> Json:
        """One item with its histories."""
        fresh = asked.freshness(own)
        return ReadJson(await reading.get(desk, caller, item_id, as_of=asked.moment(), freshness=fresh), fresh)

    @router.get("/api/lineage", responses=documented(LineageOf, 404, 410), tags=["lineage"])
    async def links(
        caller: Who,
        fresh: Fresh,
        ref: Annotated[
            str, Query(min_length=1, max_length=1_000, description="An item's id, trace:ID, message:ID or event:ID")
        ],
    ) -> Json:
        """Where something came from and what came of it."""
        return ReadJson(await reading.links(desk, caller, ref, freshness=fresh), fresh)

    @router.get("/api/traces", responses=documented(TraceList), tags=["lineage"])
    async def traces(
        caller: Who,
        fresh: Fresh,
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
        before: Annotated[
            int | None, Query(ge=0, le=MAX_POSITION, description="Traces that ended before: `next` of the page before")
        ] = None,
    ) -> Json:
        """The latest traces: how many events each caused, by whom, and when, as far as the caller may know of it."""
        return ReadJson(await reading.traces(desk, caller, limit=limit, before=before, freshness=fresh), fresh)

    return router


def _writes(desk: Desk) -> APIRouter:
    router = new_router("knowledge")

    @router.post(
        "/api/knowledge",
        status_code=201,
        responses=documented(SavedItem, 400, 403, 404, 409, 413, status=201, accepted=PROPOSED),
    )
    async def save(caller: Who, lineage: From, retry: Retry, body: SaveRequest) -> Json:
        """Keep a new item."""
        return saved_item(await saving.save(desk, caller, lineage, body, retry))

    @router.put(
        "/api/knowledge/{item_id}",
        responses=documented(Changed, 400, 403, 404, 409, 410, 413, 501, accepted=UNDER_WAY),
    )
    async def update(
        caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: UpdateRequest, wait: Patience = PATIENCE
    ) -> Json:
        """Judge an item; its owner and writers may state fields anew, or have a model rewrite it (202 meanwhile)."""
        done = await feedback.update(desk, caller, lineage, item_id, body, retry, wait=wait)
        return Json(done, 200 if done.get("done", True) else 202)

    @router.post("/api/knowledge/{item_id}/revert", responses=documented(Reverted, 400, 403, 404, 409, 410))
    async def revert(caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: RevertRequest) -> Json:
        """Make an item again what it was at an earlier version."""
        return Json(
            await reverting.revert(
                desk,
                caller,
                lineage,
                item_id,
                body.to_version,
                expected_version=body.expected_version,
                retry=retry,
            )
        )

    @router.put("/api/knowledge/{item_id}/acl", responses=documented(Moved, 400, 403, 404, 409))
    async def share(caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: ShareRequest) -> Json:
        """State who may read an item beside those in its scopes, and who may revise it; its owner's alone."""
        return Json(await sharing.share(desk, caller, lineage, item_id, body, retry))

    @router.delete("/api/knowledge/{item_id}", responses=documented(Moved, 403, 404, 409))
    async def retire(
        caller: Who,
        lineage: From,
        retry: Retry,
        item_id: ItemId,
        reason: Reason = None,
        expected_version: ExpectedVersion = None,
    ) -> Json:
        """Take an item out of recall; its history stays."""
        return Json(await changes.retire(desk, caller, lineage, item_id, reason, retry, expected_version))

    @router.post("/api/knowledge/{item_id}/restore", responses=documented(Moved, 403, 404, 409))
    async def restore(
        caller: Who,
        lineage: From,
        retry: Retry,
        item_id: ItemId,
        reason: Reason = None,
        expected_version: ExpectedVersion = None,
    ) -> Json:
        """Bring a retired item back."""
        return Json(await changes.restore(desk, caller, lineage, item_id, reason, retry, expected_version))

    return router


def _batches(desk: Desk) -> APIRouter:
    router = new_router("knowledge", route_class=BatchRoute)

    @router.post("/api/knowledge/batch", responses=documented(SavedMany, 400, 413))
    async def save_many(caller: Who, lineage: From, body: SaveManyRequest) -> Json:
        """Keep many new items, each judged on its own; sending the same again appends nothing."""
        return Json(await importing.save_many(desk, caller, lineage, body))

    @router.post("/api/knowledge/batch_update", responses=documented(RatedMany, 400, 413))
    async def rate_many(caller: Who, lineage: From, retry: Retry, body: FeedbackRequest) -> Json:
        """Keep many verdicts, each judged on its own."""
        return Json(await verdicts.rate_many(desk, caller, lineage, body, retry))

    return router

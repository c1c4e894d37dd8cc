"""The routes of memories: items with a layer."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import TypeAdapter

from kledger.answers.memory import (
    Cleaned,
    Confirmed,
    DecidedHeld,
    DecidedProposal,
    HeldList,
    MemoryHealth,
    MemoryList,
    OneMemory,
    Remembered,
)
from kledger.contract.words import HeldStatus, ItemFilter, MemoryConcern, MemoryLayer, ProjectRole
from kledger.requests.memory import CleanRequest, ConfirmRequest, DecideHeldRequest, DecideRequest, RememberRequest
from producers.http.answers import PROPOSED, Json, ReadJson, documented, saved_item
from producers.http.filters import TAGS
from producers.http.parameters import (
    AsOf,
    Fresh,
    From,
    ItemId,
    Limit,
    Offset,
    Own,
    Owner,
    Read,
    Retry,
    Who,
    moment_alone,
    named_ids,
    named_layers,
    named_types,
    named_words,
)
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.memory import approving, confirming, reading, releasing, saving
from producers.operations.memory import health as memory_health
from projections.fold_kit.page import Window
from projections.views.knowledge.memories import Wanted
from projections.views.tombstones.ask import Wanted as WantedHeld

_LAYER: TypeAdapter[MemoryLayer] = TypeAdapter(MemoryLayer)
_SEVERAL = "Any of these, separated by commas"


async def _since(
    since: Annotated[str | None, Query(description="Only what happened at or after this RFC 3339 moment")] = None,
) -> datetime | None:
    return moment_alone(since, "since")


async def _until(
    until: Annotated[str | None, Query(description="Only what happened before this RFC 3339 moment")] = None,
) -> datetime | None:
    return moment_alone(until, "until")


async def _layers(layer: Annotated[str | None, Query(description=_SEVERAL)] = None) -> list[MemoryLayer]:
    return named_layers(layer, _LAYER)


async def _kinds(kind: Annotated[str | None, Query(description=_SEVERAL)] = None) -> list[str]:
    return named_types(kind, field="kind")


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("memory")

    @router.get("/api/memory", responses=documented(MemoryList))
    async def timeline(
        caller: Who,
        fresh: Fresh,
        as_of: AsOf,
        layers: Annotated[list[MemoryLayer], Depends(_layers)],
        kinds: Annotated[list[str], Depends(_kinds)],
        since: Annotated[datetime | None, Depends(_since)],
        until: Annotated[datetime | None, Depends(_until)],
        owner: Owner,
        limit: Limit = 10,
        offset: Offset = 0,
        status: ItemFilter = "active",
        concern: Annotated[
            MemoryConcern | None, Query(description="Only these: in conflict, promoted, or never recalled")
        ] = None,
        role: Annotated[
            ProjectRole | None, Query(description="Of what a project shares, only what is meant for this role")
        ] = None,
        ids: Annotated[
            str | None, Query(alias="id", description="Only those of these items that are memories; " + _SEVERAL)
        ] = None,
        tags: Annotated[str | None, Query(description=TAGS)] = None,
    ) -> Json:
        """The memories that the caller may see, by when they happened, the latest first."""
        only = named_ids(ids, "id")
        wanted = Wanted(layers, kinds, owner, since, until, status, concern, role, only, named_words(tags, "tags"))
        window = Window(limit, offset)
        return ReadJson(await reading.timeline(desk, caller, wanted, window, as_of=as_of, freshness=fresh), fresh)

    @router.get("/api/memory/health", responses=documented(MemoryHealth))
    async def health(caller: Who, fresh: Fresh) -> Json:
        """How the memories are that the caller may see: numbers, each with the list of what it counts."""
        return ReadJson(await memory_health.health(desk, caller, freshness=fresh), fresh)

    @router.get("/api/memory/held", responses=documented(HeldList))
    async def held(
        caller: Who,
        fresh: Fresh,
        status: HeldStatus = "held",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """What was said again although a person had retired or corrected it, as far as it is the caller's to decide."""
        wanted = WantedHeld(status, None, limit, offset)
        return ReadJson(await releasing.held(desk, caller, wanted, freshness=fresh), fresh)

    @router.post("/api/memory/held/{held_id}/release", responses=documented(DecidedHeld, 400, 403, 404, 409, 410))
    async def release(caller: Who, lineage: From, retry: Retry, held_id: str, body: DecideHeldRequest) -> Json:
        """Save a held statement as it was stated, in its owner's name."""
        return Json(await releasing.release(desk, caller, lineage, held_id, body, retry))

    @router.post("/api/memory/held/{held_id}/drop", responses=documented(DecidedHeld, 400, 404, 409))
    async def drop(caller: Who, lineage: From, retry: Retry, held_id: str, body: DecideHeldRequest) -> Json:
        """Do not save a held statement; said again, it is not held once more."""
        return Json(await releasing.drop(desk, caller, lineage, held_id, body, retry))

    @router.get("/api/memory/{item_id}", responses=documented(OneMemory, 404, 410))
    async def get(caller: Who, item_id: ItemId, own: Own, asked: Read) -> Json:
        """One memory, with the fields of its layer and what follows from its cases."""
        fresh = asked.freshness(own)
        return ReadJson(await reading.get(desk, caller, item_id, as_of=asked.moment(), freshness=fresh), fresh)

    @router.post(
        "/api/memory",
        status_code=201,
        responses=documented(Remembered, 400, 403, 404, 409, 413, status=201, accepted=PROPOSED),
    )
    async def remember(caller: Who, lineage: From, retry: Retry, body: RememberRequest) -> Json:
        """Keep a new memory: an item with a layer. What a project is to share is proposed (202)."""
        return saved_item(await saving.remember(desk, caller, lineage, body, retry))

    @router.post("/api/memory/{item_id}/confirm", responses=documented(Confirmed, 400, 403, 404, 409, 410))
    async def confirm(caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: ConfirmRequest) -> Json:
        """Say that a memory holds: evidence for it, and a short one becomes a semantic one at once."""
        return Json(await confirming.confirm(desk, caller, lineage, item_id, body, retry))

    @router.post("/api/memory/{item_id}/approve", responses=documented(DecidedProposal, 400, 403, 404, 409))
    async def approve(caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: DecideRequest) -> Json:
        """Take a proposal into what its project shares; a coordinator of the project does."""
        return Json(await approving.approve(desk, caller, lineage, item_id, body, retry))

    @router.post("/api/memory/{item_id}/reject", responses=documented(DecidedProposal, 400, 403, 404, 409))
    async def reject(caller: Who, lineage: From, retry: Retry, item_id: ItemId, body: DecideRequest) -> Json:
        """Decline a proposal; a coordinator of its project does. A revision proposes it anew."""
        return Json(await approving.reject(desk, caller, lineage, item_id, body, retry))

    @router.post("/api/memory/clean", responses=documented(Cleaned, 403))
    async def clean(caller: Who, lineage: From, body: CleanRequest) -> Json:
        """Retire the caller's expired memories; a dry run, the default, only names them. Restoring brings one back."""
        return Json(await memory_health.clean(desk, caller, lineage, dry_run=body.dry_run))

    return [router]

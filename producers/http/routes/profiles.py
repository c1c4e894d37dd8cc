"""The routes of a user's profiles: the memories `user` and `work`."""

from __future__ import annotations

from fastapi import APIRouter

from kledger.answers.profiles import DisabledProfile, ProfileHistory, ProfilePrompt, Profiles
from kledger.contract.words import ProfileType
from kledger.requests.knowledge import ContentRequest
from producers.http.answers import Json, ReadJson, documented, in_headers
from producers.http.parameters import AsOf, BeforeVersion, Fresh, From, InLanguage, Reason, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import ANY, Desk, Freshness
from producers.operations.profiles import changes as profile_changes
from producers.operations.profiles import reading as profiles
from projections.views.profiles.content import CONTENTS

BASE = "/api/v1/memories"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_all(desk), _one(desk, "user"), _one(desk, "work")]


def _memories(found: profiles.Memories, fresh: Freshness = ANY) -> Json:
    body = {"user_memory": found.user_memory, "work_memory": found.work_memory}
    return Json(body, headers=in_headers(found.position, fresh.degraded))


def _memory(found: profiles.Memory, fresh: Freshness = ANY) -> Json:
    return Json(found.content, headers=in_headers(found.position, fresh.degraded))


def _all(desk: Desk) -> APIRouter:
    router = new_router("memories")

    @router.get(BASE + "/", responses=documented(Profiles), include_in_schema=False)
    @router.get(BASE, responses=documented(Profiles))
    async def both(caller: Who, fresh: Fresh, as_of: AsOf) -> Json:
        """Both memories of the user, with their defaults until something is stated; null for one that is disabled."""
        return _memories(await profiles.both(desk, caller, as_of=as_of, freshness=fresh), fresh)

    @router.post(BASE + "/", responses=documented(Profiles), include_in_schema=False)
    @router.post(BASE, responses=documented(Profiles))
    async def register(caller: Who, lineage: From) -> Json:
        """Create what the user has not yet, with default content."""
        return _memories(await profile_changes.register(desk, caller, lineage))

    return router


def _one(desk: Desk, memory_type: ProfileType) -> APIRouter:
    router = new_router("memories", f"{BASE}/{memory_type}")
    content = CONTENTS[memory_type]

    @router.get("", responses=documented(content | None), name=f"get_{memory_type}_memory")
    async def get(caller: Who, fresh: Fresh, as_of: AsOf) -> Json:
        """The memory, with its defaults until something is stated; null while it is disabled."""
        return _memory(await profiles.one(desk, caller, memory_type, as_of=as_of, freshness=fresh), fresh)

    @router.get("/prompt", responses=documented(ProfilePrompt), name=f"prompt_{memory_type}_memory")
    async def prompt(caller: Who, fresh: Fresh, as_of: AsOf, language: InLanguage) -> Json:
        """The memory as a section of a system prompt, between its markers."""
        found, position = await profiles.prompt(
            desk, caller, memory_type, as_of=as_of, language=language, freshness=fresh
        )
        return Json(found, headers=in_headers(position, fresh.degraded))

    @router.get("/history", responses=documented(ProfileHistory, 404), name=f"history_{memory_type}_memory")
    async def history(caller: Who, fresh: Fresh, before: BeforeVersion = None) -> Json:
        """Every version of the memory, oldest first; the latest, and `next`, where all are more than fit."""
        return ReadJson(await profiles.history(desk, caller, memory_type, before, freshness=fresh), fresh)

    @router.put("", responses=documented(content, 400, 413), name=f"replace_{memory_type}_memory")
    async def replace(caller: Who, lineage: From, retry: Retry, body: ContentRequest) -> Json:
        """State the memory anew, whole."""
        return _memory(await profile_changes.replace(desk, caller, lineage, memory_type, body.content, retry))

    @router.patch("", responses=documented(content, 400, 409, 413), name=f"patch_{memory_type}_memory")
    async def patch(caller: Who, lineage: From, retry: Retry, body: ContentRequest) -> Json:
        """State part of the memory anew: a JSON merge patch, RFC 7396."""
        return _memory(await profile_changes.patch(desk, caller, lineage, memory_type, body.content, retry))

    @router.delete("", responses=documented(DisabledProfile, 409), name=f"disable_{memory_type}_memory")
    async def disable(caller: Who, lineage: From, retry: Retry, reason: Reason = None) -> Json:
        """Take the memory out of use; its content and history stay."""
        return Json(await profile_changes.disable(desk, caller, lineage, memory_type, reason, retry))

    return router

"""Startup of an agent: the user's profile first, then related knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from kledger.contract.bounds import MOST_QUERY, is_blank
from kledger.contract.language import ENGLISH, Language
from kledger.contract.scopes import Caller
from kledger.contract.words import ProfileType
from ledger import one_answer
from ledger.event import JsonObject, Lineage, utc_now
from producers.operations.desk import ANY, Desk, Freshness, reach
from producers.operations.profiles import reading as profiles
from producers.operations.recall.later import with_later_first
from producers.operations.recall.search import search, searched
from producers.operations.recall.served import keep, recall_event
from producers.operations.recording import is_recorded
from projections.search.prompt.said_once import found_once, said_once
from projections.search.prompt.section import knowledge_section, profile_section
from projections.search.startup import best_items, profile_items


async def startup(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    query: str = "",
    *,
    top_k: int = 5,
    profile_k: int = 20,
    min_score: int = 3,
    min_match: float | None = None,
    types: Sequence[str] = (),
    record: bool = True,
    language: Language = ENGLISH,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The context of an agent at startup (Startup): its user_profile items by confidence and helpful, then `top_k`
    related items, matches of `query` or without one the best and latest used; each with its relevance. What matches the
    query less than `min_match` (None: what answers nothing) is left out.

    Recorded as one recall of the kind `startup`. Raises InvalidPayload (NUL in the query), ViewBehind.
    """
    query, of = (query[:MOST_QUERY], {}) if is_blank(query) else searched(query)
    await reach(desk, freshness)
    position = desk.view.position
    profile = said_once(await desk.view.ask(profile_items, desk.org, caller, limit=profile_k, min_score=min_score))
    related, searched_at = await _related(
        desk, caller, lineage, query, top_k, min_score, min_match, types, profile, freshness
    )
    position = position if searched_at is None else min(position, searched_at)
    memories = profiles.Memories(None, None, position)
    memory_texts: dict[ProfileType, str | None] = {"user": None, "work": None}
    if caller.person() is not None:
        memories = await profiles.both(desk, caller)
        memory_texts = await profiles.sections(desk, caller, memories, language)
    sections = {
        "user_memory": memory_texts["user"],
        "work_memory": memory_texts["work"],
        "profile": profile_section(profile, language, caller.person()) if profile else None,
        "knowledge": knowledge_section(related, language, caller.person()) if related else None,
    }
    served = [*profile, *related]
    recall_id = None
    if record and is_recorded(desk.recorded, caller):
        recall_id = await keep(
            desk, recall_event(desk, caller, lineage, "startup", query, served, position, language=language)
        )
    shown = one_answer.with_room(served)
    return {
        "user_memory": memories.user_memory,
        "work_memory": memories.work_memory,
        "profile": shown[: len(profile)],
        "results": shown[len(profile) :],
        "count": len(served),
        "sections": sections,
        "prompt": "\n\n".join(section for section in sections.values() if section),
        "position": position,
        "recall_id": recall_id,
        **of,
    }


async def _related(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    query: str,
    top_k: int,
    min_score: int,
    min_match: float | None,
    types: Sequence[str],
    profile: Sequence[JsonObject],
    freshness: Freshness,
) -> tuple[list[JsonObject], int | None]:
    """Related knowledge that is not in the profile: the `top_k` most relevant, in the order of the search.

    With the position of the search, None where the view alone answered.
    """
    if not top_k:
        return [], None

    async def found(most: int) -> tuple[list[JsonObject], int | None]:
        if is_blank(query):
            best = await desk.view.ask(
                best_items, desk.org, caller, limit=most, min_score=min_score, types=types, now=utc_now()
            )
            return best, None
        recalled = await search(
            desk,
            caller,
            lineage,
            query,
            top_k=most,
            min_score=min_score,
            min_match=min_match,
            types=types or None,
            record=False,
            as_ranked=True,
            freshness=freshness,
        )
        return recalled["results"], recalled["position"]

    related, searched_at = await found_once(found, top_k, told=profile)
    return await with_later_first(desk, related), searched_at

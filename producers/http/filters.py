"""Filters of a list of items: query parameters of the list, of its facets, and of whatever else asks of those items."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import TypeAdapter

from kledger.contract.knowledge import Score
from kledger.contract.recall import ItemLayer
from kledger.contract.scopes import check_entity
from kledger.contract.words import ItemFilter, MemoryConcern
from producers.http.parameters import (
    Labels,
    Owner,
    Scopes,
    Types,
    moment_alone,
    named_layers,
    named_words,
)
from projections.views.knowledge.listing import Wanted

_LAYER: TypeAdapter[ItemLayer] = TypeAdapter(ItemLayer)
_TAGS = "Any of these words among the tags, separated by commas: a name, or a text among its values"
_LAYERS = "Any of short, semantic, episodic, procedural, shared, document, plain, separated by commas"
_CONCERN = "Only what is in conflict, was promoted, or was never recalled"
_SINCE = "Only what changed last at or after this RFC 3339 moment; a verdict is a change"
_UNTIL = "Only what changed last before this RFC 3339 moment"


async def _wanted(
    types: Types,
    scopes: Scopes,
    owner: Owner,
    visibility: Labels,
    status: ItemFilter = "active",
    tags: Annotated[str | None, Query(description=_TAGS)] = None,
    layer: Annotated[str | None, Query(description=_LAYERS)] = None,
    min_score: Annotated[Score | None, Query(description="Only with this score or more")] = None,
    max_score: Annotated[Score | None, Query(description="Only with this score or less")] = None,
    since: Annotated[str | None, Query(description=_SINCE)] = None,
    until: Annotated[str | None, Query(description=_UNTIL)] = None,
    created_by: Annotated[
        str | None, Query(description="Only what this entity stated first, such as agent:web")
    ] = None,
    concern: Annotated[MemoryConcern | None, Query(description=_CONCERN)] = None,
) -> Wanted:
    return Wanted(
        types,
        scopes,
        owner,
        visibility,
        status,
        named_words(tags),
        named_layers(layer, _LAYER),
        min_score,
        max_score,
        moment_alone(since, "since"),
        moment_alone(until, "until"),
        None if created_by is None else check_entity(created_by),
        concern,
    )


Filters = Annotated[Wanted, Depends(_wanted)]

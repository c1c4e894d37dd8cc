"""Filters of a list of items: query parameters of the list, of its facets, and of whatever else asks of those items."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field, TypeAdapter

from kledger.contract.knowledge import Score
from kledger.contract.scopes import check_entity, check_scope
from kledger.contract.words import ItemFilter, ItemLayer, MemoryConcern
from producers.http.parameters import (
    Labels,
    Owner,
    Scopes,
    SearchQuery,
    Types,
    moment_alone,
    named_layers,
    named_words,
    told_of,
)
from projections.views.knowledge.listing import Wanted

_LAYER: TypeAdapter[ItemLayer] = TypeAdapter(ItemLayer)
TAGS = (
    "Any of these words among the tags, separated by commas: a name, a text among its values, or name=value, where the "
    "value may be a number"
)
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
    tags: Annotated[str | None, Query(description=TAGS)] = None,
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
        named_words(tags, "tags"),
        named_layers(layer, _LAYER),
        min_score,
        max_score,
        moment_alone(since, "since"),
        moment_alone(until, "until"),
        None if created_by is None else told_of("created_by", check_entity, created_by),
        concern,
    )


Filters = Annotated[Wanted, Depends(_wanted)]


class SearchAmong(SearchQuery):
    """A search, and filters of a list that narrow it further; what is found is active in any case."""

    scopes: Annotated[str | None, Field(description="Any of these, separated by commas")] = None
    tags: Annotated[str | None, Field(description=TAGS)] = None
    layer: Annotated[str | None, Field(description=_LAYERS)] = None
    since: Annotated[str | None, Field(description=_SINCE)] = None
    until: Annotated[str | None, Field(description=_UNTIL)] = None
    concern: Annotated[MemoryConcern | None, Field(description=_CONCERN)] = None

    def among(self) -> Wanted | None:
        """The filters; None where there is none. Raises InvalidPayload, IllegalScope."""
        wanted = Wanted(
            scopes=[told_of("scopes", check_scope, name) for name in named_words(self.scopes, "scopes")],
            tags=named_words(self.tags, "tags"),
            layers=named_layers(self.layer, _LAYER),
            since=moment_alone(self.since, "since"),
            until=moment_alone(self.until, "until"),
            concern=self.concern,
        )
        return None if wanted == Wanted(scopes=[], tags=[], layers=[]) else wanted


Searching = Annotated[SearchAmong, Query()]

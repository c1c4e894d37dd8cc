"""Iterators over whole lists: page after page is asked for, each from where the one before ended.

What is there from the first page to the last comes exactly once, whatever others write, change or withdraw meanwhile;
what they add meanwhile is newer than the first page and does not come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TypedDict, Unpack

from kledger.answers.knowledge import ListedItem
from kledger.answers.resources import ListedResource
from kledger.client.faces import AsyncFace, Endpoint, SyncFace
from kledger.client.knowledge import Moment, list_items
from kledger.client.resources import list_resources
from kledger.contract.words import ItemFilter, ResourceFilter

PAGE = 500


class ItemFilters(TypedDict, total=False):
    """Which items, as `list` takes it."""

    types: Sequence[str] | None
    scopes: Sequence[str] | None
    owner: str | None
    visibility: Sequence[str] | None
    status: ItemFilter
    as_of: Moment | None


class ResourceFilters(TypedDict, total=False):
    """Which resources, as `resources.list` takes it."""

    content_type: str | None
    status: ResourceFilter
    as_of: Moment | None


_ITEMS = Endpoint(list_items)
_RESOURCES = Endpoint(list_resources)


class AsyncItems(AsyncFace):
    """Every item that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ItemFilters]) -> AsyncIterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`."""
        ask, before = _ITEMS.__get__(self, type(self)), None
        while True:
            answer = await ask(limit=page, before=before, **filters)
            for item in answer["results"]:
                yield item
            if (before := answer["next"]) is None:
                return


class SyncItems(SyncFace):
    """Every item that the caller sees."""

    def iterate(self, *, page: int = PAGE, **filters: Unpack[ItemFilters]) -> Iterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`."""
        ask, before = _ITEMS.__get__(self, type(self)), None
        while True:
            answer = ask(limit=page, before=before, **filters)
            yield from answer["results"]
            if (before := answer["next"]) is None:
                return


class AsyncEveryResource(AsyncFace):
    """Every resource that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ResourceFilters]) -> AsyncIterator[ListedResource]:
        """Each resource once, newest first, asked for in pages of `page` (at most 1000), without its secret."""
        ask, before = _RESOURCES.__get__(self, type(self)), None
        while True:
            answer = await ask(limit=page, before=before, **filters)
            for resource in answer["results"]:
                yield resource
            if (before := answer["next"]) is None:
                return


class SyncEveryResource(SyncFace):
    """Every resource that the caller sees."""

    def iterate(self, *, page: int = PAGE, **filters: Unpack[ResourceFilters]) -> Iterator[ListedResource]:
        """Each resource once, newest first, asked for in pages of `page` (at most 1000), without its secret."""
        ask, before = _RESOURCES.__get__(self, type(self)), None
        while True:
            answer = ask(limit=page, before=before, **filters)
            yield from answer["results"]
            if (before := answer["next"]) is None:
                return

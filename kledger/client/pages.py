"""Iterators over whole lists: page after page is asked for, each from where the one before ended.

What is there from the first page to the last comes exactly once, whatever others write, change or withdraw meanwhile;
what they add meanwhile is newer than the first page and does not come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

from kledger.client.faces import AsyncFace, Endpoint, SyncFace
from kledger.client.knowledge import ItemFilters, Moment, list_items
from kledger.client.resources import list_resources
from kledger.contract.words import ItemSort, ResourceFilter

if TYPE_CHECKING:
    from kledger.answers.knowledge import ListedItem
    from kledger.answers.resources import ListedResource

PAGE = 500


class ListedBy(ItemFilters, total=False):
    """The same, in which order and when."""

    sort: ItemSort
    as_of: Moment | None


class ResourceFilters(TypedDict, total=False):
    """Which resources, as `resources.list` takes it."""

    content_type: str | None
    status: ResourceFilter
    as_of: Moment | None


_ITEMS = Endpoint(list_items)
_RESOURCES = Endpoint(list_resources)


def _require_whole(filters: Mapping[str, object]) -> None:
    """Raise TypeError for a part of a list, of which the parts are asked for here."""
    for name in ("limit", "before", "offset"):
        if name in filters:
            raise TypeError(
                f"iterate() reads a whole list and takes no {name!r}: itertools.islice takes some of it, "
                "list(limit=…) is one page; page=… is how many come with one request"
            )


class AsyncItems(AsyncFace):
    """Every item that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ListedBy]) -> AsyncIterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`.

        In another order it is the list as of the first page.
        """
        _require_whole(filters)
        ask, before, offset = _ITEMS.__get__(self, type(self)), None, 0
        while True:
            answer = await ask(limit=page, before=before, offset=offset, **filters)
            for item in answer["results"]:
                yield item
            if answer["next"] is None:
                return
            if filters.get("sort", "newest") == "newest":
                before = answer["next"]
            else:  # items change their places in it
                offset, filters["as_of"] = answer["next"], answer["position"]


class SyncItems(SyncFace):
    """Every item that the caller sees."""

    def iterate(self, *, page: int = PAGE, **filters: Unpack[ListedBy]) -> Iterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`.

        In another order it is the list as of the first page.
        """
        _require_whole(filters)
        ask, before, offset = _ITEMS.__get__(self, type(self)), None, 0
        while True:
            answer = ask(limit=page, before=before, offset=offset, **filters)
            yield from answer["results"]
            if answer["next"] is None:
                return
            if filters.get("sort", "newest") == "newest":
                before = answer["next"]
            else:  # items change their places in it
                offset, filters["as_of"] = answer["next"], answer["position"]


class AsyncEveryResource(AsyncFace):
    """Every resource that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ResourceFilters]) -> AsyncIterator[ListedResource]:
        """Each resource once, newest first, asked for in pages of `page` (at most 1000), without its secret."""
        _require_whole(filters)
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
        _require_whole(filters)
        ask, before = _RESOURCES.__get__(self, type(self)), None
        while True:
            answer = ask(limit=page, before=before, **filters)
            yield from answer["results"]
            if (before := answer["next"]) is None:
                return

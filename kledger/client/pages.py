"""Iterators over whole lists: page after page is asked for, each from where the one before ended.

What is there from the first page to the last comes exactly once, whatever others write, change or withdraw meanwhile;
what they add meanwhile is newer than the first page and does not come.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from kledger.client.arguments import require_number
from kledger.client.faces import AsyncFace, Endpoint, SyncFace
from kledger.client.knowledge import ItemFilters, Moment, list_items
from kledger.client.resources import list_resources
from kledger.client.slips.other_names import told_otherwise
from kledger.contract.words import ItemSort, ResourceFilter

if TYPE_CHECKING:
    from kledger.answers.knowledge import ItemList, ListedItem
    from kledger.answers.resources import ListedResource

PAGE = 500


class ListedBy(ItemFilters, total=False):
    """Which items, in which order, and as of when."""

    sort: ItemSort
    as_of: Moment | None


class ResourceFilters(TypedDict, total=False):
    """Which resources, as `resources.list` takes it."""

    content_type: str | None
    status: ResourceFilter
    as_of: Moment | None


_ITEMS = Endpoint(list_items)
_RESOURCES = Endpoint(list_resources)


def _require_whole(filters: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise TypeError for a part of a list, of which the parts are asked for here, and for what is no filter."""
    for name in filters:
        if name in ("limit", "before", "offset", "top_k"):
            raise TypeError(
                f"iterate() reads a whole list and takes no {name!r}: itertools.islice takes some of it, "
                "list(limit=…) is one page; page=… is how many come with one request"
            )
        if name not in known:
            raise told_otherwise(TypeError(f"got an unexpected keyword argument {name!r}"), "iterate", ("page", *known))


class _Walk:
    """A walk through a whole list: what is asked for next, and what of an answer was not given yet.

    In an order that changes, the pages are parts of the list as of the first one. The node shows of it what the caller
    may see *now*: an item before a page that is closed meanwhile moves all others up, past the beginning of that page.
    So a page begins with the last item of the one before; one without any item that was given is asked for earlier.
    """

    def __init__(self, page: int, filters: Mapping[str, Any]) -> None:
        require_number("page", page)
        self._filters, self._limit = {name: value for name, value in filters.items() if value is not None}, page
        self._by_position = self._filters.get("sort", "newest") == "newest"
        self._before: int | None = None
        self._offset = 0
        self._given: set[str] = set()
        self.goes_on = True

    def question(self) -> dict[str, Any]:
        """The arguments of the next request."""
        return {**self._filters, "limit": self._limit, "before": self._before, "offset": self._offset}

    def take(self, answer: ItemList) -> list[ListedItem]:
        """What is new in the answer to the question; the next question follows from it."""
        if self._by_position:
            self._before, self.goes_on = answer["next"], answer["next"] is not None
            return answer["results"]
        if self._offset and not any(item["id"] in self._given for item in answer["results"]):
            self._offset = max(0, self._offset - self._limit + 1)
            return []
        new = [item for item in answer["results"] if item["id"] not in self._given]
        self._given.update(item["id"] for item in new)
        if answer["next"] is None:
            self.goes_on = False
        else:
            self._offset, self._filters["as_of"] = answer["next"] - 1, answer["position"]
            self._limit = max(self._limit, 2)  # the first of them was given
        return new


class AsyncItems(AsyncFace):
    """Every item that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ListedBy]) -> AsyncIterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`.

        In another order it is the list as of the first page.
        """
        _require_whole(filters, ListedBy.__annotations__)
        ask, walk = _ITEMS.__get__(self, type(self)), _Walk(page, filters)
        while walk.goes_on:
            for item in walk.take(await ask(**walk.question())):
                yield item


class SyncItems(SyncFace):
    """Every item that the caller sees."""

    def iterate(self, *, page: int = PAGE, **filters: Unpack[ListedBy]) -> Iterator[ListedItem]:
        """Each item once, newest first, asked for in pages of `page` (at most 1000); filters are those of `list`.

        In another order it is the list as of the first page.
        """
        _require_whole(filters, ListedBy.__annotations__)
        ask, walk = _ITEMS.__get__(self, type(self)), _Walk(page, filters)
        while walk.goes_on:
            yield from walk.take(ask(**walk.question()))


class AsyncEveryResource(AsyncFace):
    """Every resource that the caller sees."""

    async def iterate(self, *, page: int = PAGE, **filters: Unpack[ResourceFilters]) -> AsyncIterator[ListedResource]:
        """Each resource once, newest first, asked for in pages of `page` (at most 1000), without its secret."""
        _require_whole(filters, ResourceFilters.__annotations__)
        require_number("page", page)
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
        _require_whole(filters, ResourceFilters.__annotations__)
        require_number("page", page)
        ask, before = _RESOURCES.__get__(self, type(self)), None
        while True:
            answer = ask(limit=page, before=before, **filters)
            yield from answer["results"]
            if (before := answer["next"]) is None:
                return

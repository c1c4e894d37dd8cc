"""Which knowledge a list shows: read from the address, asked of the node, and written into links.

Every state of a list is in its address, so that it can be kept, sent, and gone back to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import cast, get_args

from kledger.client.knowledge import ItemFilters
from kledger.contract.errors import InvalidPayload
from kledger.contract.lists import join_words
from kledger.contract.scopes import Visibility
from kledger.contract.words import ItemFilter, ItemLayer, ItemSort, MemoryConcern
from producers.web.rendering import with_query
from producers.web.visit import Visit

LAYERS: tuple[ItemLayer, ...] = get_args(ItemLayer)
STATUSES: tuple[ItemFilter, ...] = get_args(ItemFilter)
SORTS: tuple[ItemSort, ...] = get_args(ItemSort)
CONCERNS: tuple[MemoryConcern, ...] = get_args(MemoryConcern)
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
SCORES = ("2", "3", "4", "5")
SEVERAL = ("layer", "types", "tags", "scopes")
"""Parameters that may be there several times; each value is a chip of its own."""
MOST_VALUES = 50


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is asked of a list at `path`, by parameter; `within` are the filters that the path itself states."""

    path: str
    stated: Mapping[str, str | list[str]]
    within: ItemFilters

    @classmethod
    def of(cls, visit: Visit, path: str, within: ItemFilters | None = None) -> Narrowed:
        """What the address states. Raises InvalidPayload."""
        several = {name: visit.texts(name)[:MOST_VALUES] for name in SEVERAL}
        single = {
            "q": visit.text("q") or "",
            "owner": visit.text("owner") or "",
            "status": visit.one_of("status", STATUSES, ""),
            "concern": visit.one_of("concern", CONCERNS, ""),
            "visibility": visit.one_of("visibility", VISIBILITIES, ""),
            "min_score": visit.one_of("min_score", SCORES, ""),
            "since": _day(visit, "since"),
            "until": _day(visit, "until"),
            "sort": visit.one_of("sort", SORTS, ""),
            "view": visit.one_of("view", ("table",), ""),
        }
        several["layer"] = [each for each in several["layer"] if each in LAYERS]
        if within and "scopes" in within:  # any of several scopes would widen the list
            several["scopes"] = []
        return cls(path, {**single, **several}, within or {})

    def __getitem__(self, name: str) -> str:
        value = self.stated[name]
        return value if isinstance(value, str) else ""

    def values(self, name: str) -> list[str]:
        """The values of a parameter that may be there several times."""
        value = self.stated[name]
        return value if isinstance(value, list) else [value]

    @property
    def sort(self) -> ItemSort:
        """The order of the list."""
        return cast(ItemSort, self["sort"] or "newest")

    @property
    def layer(self) -> str | None:
        """The one layer that is shown; None where there are all or several."""
        layers = self.values("layer")
        return layers[0] if len(layers) == 1 else None

    def filters(self) -> ItemFilters:
        """The filters as the node takes them."""
        asked: ItemFilters = {
            "types": self.values("types") or None,
            "tags": self.values("tags") or None,
            "scopes": self.values("scopes") or None,
            "layers": cast(list[ItemLayer], self.values("layer")) or None,
            "owner": self["owner"] or None,
            "visibility": [self["visibility"]] if self["visibility"] else None,
            "status": cast(ItemFilter, self["status"] or "active"),
            "concern": cast(MemoryConcern, self["concern"]) if self["concern"] else None,
            "min_score": int(self["min_score"]) if self["min_score"] else None,
            "since": f"{self['since']}T00:00:00Z" if self["since"] else None,
            "until": f"{_after(self['until'])}T00:00:00Z" if self["until"] else None,
        }
        stated = {name: value for name, value in asked.items() if value is not None}
        return cast(ItemFilters, {**self.within, **stated})

    def link(self, **changed: object) -> str:
        """The address of the list with other parameters; a page of it is not taken along."""
        return with_query(self.path, self.in_address(changed))

    def in_address(self, changed: Mapping[str, object] | None = None) -> dict[str, object]:
        """The parameters of its address, some of them changed; what may be several as `visit.texts` reads it."""
        merged: dict[str, object] = {**self.stated, **(changed or {})}
        return {
            name: [join_words([each]) for each in value] if isinstance(value, list) else value
            for name, value in merged.items()
        }

    def toggled(self, name: str, value: str) -> str:
        """The address with a value added to a parameter, or taken away where it is there."""
        if name not in SEVERAL:
            return self.link(**{name: "" if self[name] == value else value})
        values = self.values(name)
        return self.link(**{name: [each for each in values if each != value] if value in values else [*values, value]})

    def has(self, name: str, value: str) -> bool:
        """Whether a parameter has this value."""
        return value in self.values(name)

    def chips(self) -> Sequence[tuple[str, str, str]]:
        """Each filter that is set: its parameter, its value, and the address without it."""
        single = ("owner", "visibility", "status", "concern", "min_score", "since", "until")
        return [
            *((name, value, self.toggled(name, value)) for name in SEVERAL for value in self.values(name)),
            *((name, self[name], self.link(**{name: ""})) for name in single if self[name]),
        ]

    def hidden(self) -> list[tuple[str, str]]:
        """Name and value of each filter, those of the path among them, for a form about all that the list has."""
        within = {"scopes": self.within.get("scopes") or (), "layer": self.within.get("layers") or ()}
        stated = {name: self.values(name) for name in self.stated if name not in ("q", "sort", "view")}
        return [
            (name, join_words([value]) if name in SEVERAL else value)
            for name, values in stated.items()
            for value in [*filter(None, values)] or within.get(name, ())
        ]


def _day(visit: Visit, name: str) -> str:
    """A day such as 2026-03-05; empty where none is stated. Raises InvalidPayload."""
    stated = visit.text(name)
    if stated is None:
        return ""
    try:
        return date.fromisoformat(stated).isoformat()
    except ValueError as error:
        raise InvalidPayload(
            f"{name} is {stated[:40]!r}: write a day, such as 2026-03-05",
            errors=[{"field": name, "reason": "is no day"}],
        ) from error


def _after(day: str) -> str:
    """The day after: `until` means the end of its day."""
    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    except OverflowError:
        return day

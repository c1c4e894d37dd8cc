"""What is known: a list or a search of items, narrowed by filters, as cards or as a table.

The addresses of a project show the same list, of what the project reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from kledger.answers.knowledge import Item
from kledger.answers.memory import MemoryHealth
from kledger.answers.overview import Facets
from kledger.answers.parts import Degraded
from kledger.client.knowledge import ItemFilters
from kledger.contract.projects import scope_of
from kledger.contract.recall import floor_of
from kledger.contract.words import ItemLayer
from producers.web.addresses import HOME, SOURCES
from producers.web.headers import OF_A_PAGE
from producers.web.narrowed import SCORES, SORTS, STATUSES, VISIBILITIES, Narrowed
from producers.web.rendering import page, segment, with_query
from producers.web.rights import may_retire, may_revise
from producers.web.site import Page, Site
from producers.web.visit import Visit
from projections.views.knowledge.layers import layer_of

PAGE_SIZE = 24
NEAREST = 3
"""Results of a search that are shown where fewer fit."""
MOST_FOUND = 96
"""Results of a search at most; a better question finds more."""
TABS = ("", "semantic", "episodic", "procedural", "short", "shared", "document", "plain")
MEMORY: tuple[ItemLayer, ...] = ("short", "semantic", "episodic", "procedural", "shared")
FACETS = (
    ("layer", "layers", "Layer"),
    ("types", "types", "Type"),
    ("tags", "tags", "Tag"),
    ("scopes", "scopes", "Scope"),
    ("owner", "owners", "Owner"),
)
"""Each facet: the parameter that it narrows, its name in the answer, and its heading."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of the list: the items from `first` on, and where the parts before and after it are."""

    items: Sequence[Item]
    total: int
    first: int
    newer: str | None
    older: str | None
    degraded: Sequence[Degraded]
    fitting: int | None = None
    """Of a search: how many of the items fit; the others, after them, are the nearest of the rest."""


async def knowledge(_: Site, visit: Visit) -> Response:
    """Everything that the person sees."""
    return await _list(visit, Narrowed.of(visit, f"{HOME}/knowledge"))


async def of_project(_: Site, visit: Visit) -> Response:
    """What a project reads; of it the memories alone, or everything."""
    org, project = visit.part("org"), visit.part("project")
    part = visit.request.scope["path"].rpartition("/")[2]
    within: ItemFilters = {"scopes": [scope_of(project)]}
    if part == "memory":
        within["layers"] = list(MEMORY)
    path = f"{SOURCES}/{segment(org)}/ws/{segment(project)}/{part}"
    return await _list(visit, Narrowed.of(visit, path, within), (org, project, part))


async def _list(visit: Visit, narrowed: Narrowed, place: tuple[str, str, str] | None = None) -> Response:
    query: bytes = visit.request.scope["query_string"]
    if b"=&" in query or query.endswith(b"="):  # a form sends its empty fields too
        kept = {name: visit.request.query_params.getlist(name) for name in visit.request.query_params}
        return RedirectResponse(with_query(narrowed.path, kept), 303, headers=OF_A_PAGE)
    filters = narrowed.filters()
    asked = _found(visit, narrowed, filters) if narrowed["q"] else _listed(visit, narrowed, filters)
    shown, facets, health = await asyncio.gather(asked, visit.ledger.facets(**filters), _health(visit, place))
    sources = await _sources(visit, shown.items)
    session = visit.session
    return page(
        visit,
        "knowledge.html",
        narrowed=narrowed,
        place=place,
        health=health,
        memories=urlencode([("layer", layer) for layer in MEMORY]),
        tabs=TABS,
        shown=shown,
        sources=sources,
        answers={"degraded": [*shown.degraded, *facets["degraded"]]},
        layers=[layer_of(item) for item in shown.items],
        retires=[may_retire(session, item) for item in shown.items],
        revises=[may_revise(session, item) for item in shown.items],
        facets=_facets(narrowed, facets),
        chosen=visit.one_of("chosen", ("page",), ""),
        choose_all=with_query(narrowed.path, {**visit.request.query_params, **narrowed.in_address()}, chosen="page"),
        statuses=STATUSES,
        visibilities=VISIBILITIES,
        scores=SCORES,
        sorts=SORTS,
    )


async def _health(visit: Visit, place: tuple[str, str, str] | None) -> MemoryHealth | None:
    """How the memories are that the person sees, which stands above those of a project; None on the other lists."""
    return await visit.ledger.memory_health() if place is not None and place[2] == "memory" else None


async def _sources(visit: Visit, items: Sequence[Item]) -> dict[str, int]:
    """How many conversations each of the memories among these items is from: its save and what confirmed it since."""
    ids = [item["id"] for item in items if "memory" in item]
    if not ids:
        return {}
    memories = await visit.ledger.memories(ids=ids, status="all", limit=len(ids))
    return {each["id"]: each["evidence_count"] for each in memories["results"]}


async def _listed(visit: Visit, narrowed: Narrowed, filters: ItemFilters) -> Shown:
    offset = visit.number("offset", 0, most=2**31)
    # Pages after the first are of the items that were there then, so that new ones move none to another page.
    then = visit.number("then", 0) if narrowed.sort == "newest" else 0
    listed = await visit.ledger.list(
        limit=PAGE_SIZE, offset=offset, before=then + 1 if then else None, sort=narrowed.sort, **filters
    )
    items, total = listed["results"], listed["total"]
    then = then or (listed["position"] if narrowed.sort == "newest" else 0)
    newer = max(0, offset - PAGE_SIZE)
    return Shown(
        items,
        total,
        offset,
        narrowed.link(offset=newer, then=then if newer else None) if offset else None,
        narrowed.link(offset=offset + len(items), then=then) if listed["next"] is not None else None,
        listed["degraded"],
    )


async def _found(visit: Visit, narrowed: Narrowed, filters: ItemFilters) -> Shown:
    """As agents search; that a person looked is recorded as what it is, and counts for nothing."""
    most = visit.number("most", PAGE_SIZE, PAGE_SIZE, MOST_FOUND)
    asked = visit.ledger.search(
        narrowed["q"],
        top_k=most,
        min_score=filters.get("min_score") or 1,
        types=filters.get("types"),
        owner=filters.get("owner"),
        visibility=filters.get("visibility"),
        scopes=filters.get("scopes"),
        tags=filters.get("tags"),
        layers=filters.get("layers"),
        since=filters.get("since"),
        until=filters.get("until"),
        concern=filters.get("concern"),
        record=not visit.from_elsewhere,
        kind="page",
    )
    found, everything = await asyncio.gather(asked, visit.ledger.list(limit=1))
    items = found["results"]
    least = floor_of(everything["total"])
    fitting = sum(1 for each in items if each.get("match", 1.0) >= least)
    more = fitting == most < MOST_FOUND
    older = narrowed.link(most=most * 2) if more else None
    items = sorted(items, key=lambda each: each.get("match", 1.0) < least)
    return Shown(items[: max(fitting, NEAREST)], fitting, 0, None, older, found["degraded"], fitting)


@dataclass(frozen=True, slots=True)
class Choice:
    """A value to narrow by: how many items have it, and the address of the list with or without it."""

    value: str
    count: int
    chosen: bool
    link: str


def _facets(narrowed: Narrowed, facets: Facets) -> list[tuple[str, str, list[Choice]]]:
    shown = []
    for parameter, name, heading in FACETS:
        if parameter == "scopes" and narrowed.within:
            continue
        values = facets[name]  # type: ignore[literal-required]  # the names stand above
        choices = [
            Choice(
                each["value"],
                each["count"],
                narrowed.has(parameter, each["value"]),
                narrowed.toggled(parameter, each["value"]),
            )
            for each in values
        ]
        if choices:
            shown.append((parameter, heading, choices))
    return shown


PAGES = (
    Page(f"{HOME}/knowledge", knowledge),
    Page(f"{SOURCES}/{{org}}/ws/{{project}}/memory", of_project),
    Page(f"{SOURCES}/{{org}}/ws/{{project}}/knowledge", of_project),
)

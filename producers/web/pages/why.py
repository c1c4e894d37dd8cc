"""Why this answer: what a search considered, what each factor added, and what was left out; also of a recall."""

from __future__ import annotations

from typing import cast, get_args

from starlette.responses import Response

from kledger.answers.knowledge import SearchResults
from kledger.answers.recall import Recalled
from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.words import RecallPath
from producers.web.addresses import HOME
from producers.web.figures.factors import FACTORS, factors, whole
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

MOST_SHOWN = 50
"""Candidates, and places of a path, on one page."""
MOST_RESULTS = 50
MOST_AT_FIRST = 10
"""Candidates beside the results that are shown at first: the next best ones tell most."""


async def why(_: Site, visit: Visit) -> Response:
    """The page; without a question its form alone."""
    tab = visit.one_of("tab", ("search", "message"), "search")
    stated = {name: visit.text(name) for name in ("q", "top_k", "min_score", "min_match", "path", "as_of")}
    stated |= {"types": ", ".join(visit.texts("types")) or None}
    searched: SearchResults | None = None
    recalled: Recalled | None = None
    error: LedgerError | None = None
    try:
        if (question := stated["q"]) and tab == "search":
            searched = await _searched(visit, question)
        elif question:
            recalled = await _recalled(visit, question)
    except InvalidPayload as refused:
        error = refused
    return page(
        visit, "why.html", 200 if error is None else 422, tab=tab, stated=stated, paths=get_args(RecallPath),
        searched=searched, recalled=recalled, error=error, most=MOST_SHOWN, rows=_rows(visit, searched),
        bar=_bar(visit, searched), total=_total(visit, recalled), factors=FACTORS, moved_by=_moved_by(recalled),
    )  # fmt: skip


async def _searched(visit: Visit, question: str) -> SearchResults:
    return await visit.ledger.search(
        question,
        top_k=visit.number("top_k", 5, 1, MOST_RESULTS),
        min_score=visit.number("min_score", 3, 1, 5),
        min_match=_share(visit),
        types=visit.texts("types") or None,
        as_of=visit.text("as_of"),
        path=cast(RecallPath, visit.one_of("path", get_args(RecallPath), "fused")),
        record=not visit.from_elsewhere,
        kind="page",
        explain=True,
    )


async def _recalled(visit: Visit, message: str) -> Recalled:
    return await visit.ledger.recall(
        message,
        top_k=visit.number("top_k", 5, 1, 20),
        min_score=visit.number("min_score", 3, 1, 5),
        min_match=_share(visit) if visit.text("min_match") else None,
        as_of=visit.text("as_of"),
        record=not visit.from_elsewhere,
        kind="page",
    )


def _share(visit: Visit) -> float:
    """The least match that was asked for. Raises InvalidPayload."""
    stated = visit.text("min_match")
    try:
        share = float(stated or 0)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidPayload("min_match is a share between 0 and 1, such as 0.3", errors=[])
    return share


def _rows(visit: Visit, searched: SearchResults | None) -> int:
    """How many candidates are shown: with `all=1` as many as a page has."""
    if visit.text("all") or searched is None:
        return MOST_SHOWN
    return min(MOST_SHOWN, searched["count"] + MOST_AT_FIRST)


def _total(visit: Visit, recalled: Recalled | None) -> object:
    """A function that draws the total of one result, at the scale of the best one."""
    totals = [] if recalled is None else [each["why"]["score"] for each in recalled["results"] if "why" in each]
    most, name = max(totals, default=0.0), visit.words("total")
    return lambda value: whole(value, most, f"{name} {value:.2f}")


def _moved_by(recalled: Recalled | None) -> set[str]:
    """The factors that any result tells."""
    return set() if recalled is None else {name for each in recalled["results"] for name in each.get("why", ())}


def _bar(visit: Visit, searched: SearchResults | None) -> object:
    """A function that draws the factors of one candidate, at the scale of the most relevant one."""
    candidates = [] if searched is None else searched["explained"]["candidates"]
    added = [cast("dict[str, float]", each["factors"]) for each in candidates]
    most = max((sum(max(0.0, each[name]) for name in FACTORS) for each in added), default=0.0)
    words = visit.words
    names = {
        "keyword": words("words"),
        "vector": words("sense"),
        "recency": words("freshness"),
        "lent": words("from its neighbour"),
    }
    return lambda parts: factors(parts, most, names)


PAGES = (Page(f"{HOME}/why", why),)

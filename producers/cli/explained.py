"""Why a search answered what it did, as a table: a line for each candidate, with what made its relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from producers.cli.screen import counted, plain, table, words

if TYPE_CHECKING:
    from kledger.answers.explained import ExplainedCandidate, SearchExplained

SAID = {
    "min_score": "its score is too low",
    "negative_quality": "it harmed more than it helped",
    "min_match": "covers too little of the query",
    "other_layer": "of another layer",
    "beyond_top_k": "others are better",
    "not_chosen": "a model chose others",
}
"""What is said of each reason to be left out."""
_NUMBERS = ("keyword", "+ vector", "+ recency", "+ lent", "= relevance", "× quality", "match")


def explanation(told: SearchExplained) -> RenderableType:
    """The candidates by worth, and the settings that ranked them."""
    rows = table("#", "id", *_NUMBERS, "scope", "left out", right=("#", *_NUMBERS))
    for each in told["candidates"]:
        rows.add_row(*_row(each))
    left = told["considered"] - len(told["candidates"])
    more = f" ({left:,} more are not shown)" if left else ""
    weights = told["weights"]
    said = (
        f"{counted(told['considered'], 'candidate')}{more}, by policy {plain(told['policy'])}: "
        f"vector weighs {weights['vector']:g}, recency {weights['recency']:g}, "
        f"quality moves by at most {weights['quality_sway']:.0%}"
    )
    return Group(words("why", "bold"), rows, said) if told["candidates"] else said


def _row(each: ExplainedCandidate) -> list[str]:
    factors, left_out = each["factors"], each["left_out"]
    return [
        "" if each["rank"] is None else str(each["rank"]),
        plain(each["id"]),
        *(f"{factors[name]:.3f}" for name in ("keyword", "vector", "recency", "lent")),
        f"{each['relevance']:.3f}",
        f"{factors['quality']:.3f}",
        f"{each['match']:.2f}",
        plain(each["scope"]),
        "" if left_out is None else SAID.get(left_out, plain(left_out)),
    ]

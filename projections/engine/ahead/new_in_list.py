"""A list with the items that are saved and not folded yet: the view's page, with rows made of their saves.

What is between the view and the position asked for is certain: new items, each by its save alone, and nothing else
about items (projections/engine/ahead/between.py). The rows of these are filtered as the list's own query filters, by
what a row tells, and come before all that the view has, as their positions are later. A filter or an order that a row
alone does not tell waits for the fold, unless no new item is in the list in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import ItemSort
from ledger import one_answer
from ledger.event import JsonObject
from projections.engine.ahead.just_saved import sees
from projections.engine.duckdb import checkpoint_of
from projections.fold_kit.page import Page, Window, one_state
from projections.views.knowledge.listing import Wanted, in_list, items_in
from projections.views.knowledge.lives import has_short
from projections.views.times import microseconds


@dataclass(frozen=True, slots=True)
class NewItems:
    """All that is between the view, which is at `folded` or later, and a position, as far as lists show it.

    `rows` are those of the new items, the oldest first; `recalled`: there are recalls as well, which a short memory
    may live of.
    """

    rows: Sequence[JsonObject]
    folded: int
    upto: int
    recalled: bool = False


def may_merge(wanted: Wanted, as_of: object) -> bool:
    """Whether a list may be made of the view and of what is new: of the present, and without a look at what else there
    is about an item."""
    return as_of is None and wanted.concern is None


def page_with(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    moment: datetime,
    sort: ItemSort,
    new: NewItems,
) -> tuple[Page, int] | None:
    """The page as it is at `new.upto`, and the position of the last new item in the list, 0 without one.

    None where the view has to say.
    """
    with one_state(cursor):
        folded, _ = checkpoint_of(cursor)
        if folded < new.folded or (new.recalled and has_short(cursor)):
            return None
        rows = [row for row in reversed(new.rows) if row["position"] > folded and _is_in(row, caller, wanted)]
        if rows and (sort != "newest" or wanted.tags):
            return None
        ahead = [row for row in rows if window.before is None or row["position"] < window.before]
        asked = ahead[window.offset : window.offset + window.limit]
        shown = one_answer.fitting(asked)
        most = window.limit - len(shown) if len(shown) == len(asked) else 0
        taken = sum(map(one_answer.size_of, shown))
        rest = Window(most, max(0, window.offset - len(ahead)), window.before, taken)
        page = items_in(cursor, org, caller, wanted, rest, None, moment, sort)
    following = page.next if rest.limit else shown[-1]["position"]
    results = [*(in_list(row, wanted) for row in shown), *page.results]
    return Page(results, page.total + len(rows), following), rows[0]["position"] if rows else 0


def _is_in(row: JsonObject, caller: Caller, wanted: Wanted) -> bool:
    """`selected` (projections/views/knowledge/listing.py), of the row of a new item; without its tags.

    A new item is no memory and no document, and who saved it owns it.
    """
    return (
        sees(caller, row)
        and _any_of(wanted.types, row["types"])
        and _any_of(wanted.scopes, row["scopes"])
        and _any_of(wanted.visibility, [row["visibility"]])
        and _any_of(wanted.layers, ["plain"])
        and wanted.owner in (None, row["owner"])
        and wanted.created_by in (None, row["owner"])
        and wanted.status in ("all", row["status"])
        and (wanted.min_score is None or row["score"] >= wanted.min_score)
        and (wanted.max_score is None or row["score"] <= wanted.max_score)
        and (wanted.since is None or row["updated_at"] >= microseconds(wanted.since))
        and (wanted.until is None or row["updated_at"] < microseconds(wanted.until))
    )


def _any_of(wanted: Sequence[str], has: Collection[str]) -> bool:
    return not wanted or not set(wanted).isdisjoint(has)

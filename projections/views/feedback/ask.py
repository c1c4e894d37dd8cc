"""Queries of an item's helpful and harmful cases, with the lineage of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import duckdb

from kledger.contract.scopes import Caller
from ledger import one_answer
from ledger.event import JsonObject
from ledger.one_answer import size_of
from projections.fold_kit.erased import NOTHING, places_of, within
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, bytes_of, fitting_rows
from projections.views.access import LISTED, listed, readable_by
from projections.views.knowledge import ask as knowledge
from projections.views.knowledge.parts import WHOLE, Part
from projections.views.times import with_times


def told_to(caller: Caller) -> tuple[str, list[str]]:
    """The predicate over `feedback AS f` of cases that are told to somebody who reads the item: those of versions that
    they may read, and their own; for the operator all."""
    if caller.is_operator:
        return "TRUE", []
    seen, values = readable_by(caller, "v.")
    own = caller.entities()
    return (
        f"""(list_contains([{", ".join("?" * len(own))}]::VARCHAR[], f.actor) OR EXISTS (
            FROM knowledge_versions AS v WHERE v.org = f.org AND v.id = f.knowledge_id
                AND v.valid_from <= f.position AND (v.valid_to IS NULL OR v.valid_to > f.position) AND {seen}))""",
        [*own, *values],
    )


def cases(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    item_id: str,
    as_of: int | None = None,
    part: Part = WHOLE,
    *,
    seeing: Caller | None = None,
) -> list[JsonObject]:
    """The cases of an item, oldest first. Does not check access to it: ask projections.views.knowledge first.

    `seeing` somebody, without the cases of versions that they may not read, but for their own: what was said of an item
    before it was opened to them was said among its readers of then. `timestamp` is the case's own, `time` the event's,
    `position` the event's in the log.
    """
    may, values = ("TRUE", []) if seeing is None else told_to(seeing)
    rows = named_rows(
        cursor,
        f"""SELECT verdict, task, query, outcome, reason, case_time AS timestamp, actor, trace_id, message_id, credit,
               event_id, position, epoch_us(time) AS time
           FROM feedback AS f WHERE org = ? AND knowledge_id = ? AND position <= ? AND {may}
           {part.narrowed("position")}""",
        [org, item_id, 2**63 - 1 if as_of is None else as_of, *values],
    )
    return [with_times(row, "time") for row in reversed(rows)]


def worded(cursor: duckdb.DuckDBPyConnection, org: str, actor: str, event_ids: Sequence[str]) -> dict[str, JsonObject]:
    """Verdicts of an actor out of these events, by event id, without those of which words were erased."""
    rows = named_rows(
        cursor,
        f"""SELECT event_id, position, knowledge_id, verdict, task, query, outcome, reason, trace_id
            FROM feedback WHERE org = ? AND actor = ? AND event_id IN ({LISTED})""",
        [org, actor, listed(event_ids)],
    )
    erased = places_of(cursor, [row["position"] for row in rows])
    return {row["event_id"]: row for row in rows if not within(erased.get(row["position"], NOTHING), "case")}


def histories(all_cases: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Cases as `helpful_history` and `harmful_history`."""
    judged = [({name: part for name, part in case.items() if name != "verdict"}, case["verdict"]) for case in all_cases]
    return [case for case, verdict in judged if verdict == "helpful"], [
        case for case, verdict in judged if verdict == "harmful"
    ]


def judged_item(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, as_of: int | None = None
) -> JsonObject | None:
    """One item with its histories under `eval`; None when there is none that the caller may read."""
    item = knowledge.item(cursor, org, caller, item_id, as_of)
    if item is not None:
        changed = item["position"] != item.pop("created_position")  # without a later event there are no cases
        found, more = latest_cases(cursor, org, caller, item_id, as_of, size_of(item)) if changed else ([], False)
        helpful, harmful = histories(found)
        item["eval"] |= {"helpful_history": helpful, "harmful_history": harmful} | ({"more": True} if more else {})
    return item


_FEW = 10
"""So few cases are read at once: they fit into any answer."""


def latest_cases(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, as_of: int | None, taken: int
) -> tuple[list[JsonObject], bool]:
    """The cases of an item that are told to the caller, oldest first: the latest of them where they are more than fit
    into an answer of which `taken` bytes are used already, and whether they are.
    """
    upto = Part(before=None if as_of is None else as_of + 1)
    few = cases(cursor, org, item_id, part=replace(upto, limit=_FEW), seeing=caller)
    if len(few) < _FEW:
        return few, False
    positions = [at for (at,) in cursor.execute(*_cases_of(org, caller, item_id, upto)).fetchall()]
    read = fitting_rows(cursor, Measured("feedback", _CASE_BYTES, "position"), positions, taken)
    part = replace(upto, since=read[-1]) if len(read) < len(positions) else upto
    found = one_answer.last_fitting(cases(cursor, org, item_id, part=part, seeing=caller), taken)
    return list(found), len(found) < len(positions)


def unjudged(item: JsonObject) -> JsonObject:
    """An item (`whole`) that nobody has judged, as `judged_item` returns it."""
    item["eval"] |= {"helpful_history": [], "harmful_history": []}
    return item


_CASE_BYTES = bytes_of(("task", "query", "outcome", "reason"))


def life(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, part: Part = WHOLE
) -> tuple[list[JsonObject], list[JsonObject], int | None] | None:
    """A part of an item's versions and of its cases, oldest first; None when there is none that the caller may read.

    Where they are more than fit into an answer, they are the latest that do, and the position before which it goes on.
    """
    if not knowledge.standings(cursor, org, caller, [item_id]):
        return None
    made, judged = (
        [at for (at,) in cursor.execute(*asked).fetchall()]
        for asked in (_versions_of(org, caller, item_id, part), _cases_of(org, caller, item_id, part))
    )
    all_of_them = sorted({*made, *judged}, reverse=True)
    version_bytes = bytes_of(name if name != "content" else part.shown() for name in knowledge.LONG)
    sizes = f"""(SELECT valid_from AS position, {version_bytes} AS bytes FROM knowledge_versions
        UNION ALL SELECT position, {_CASE_BYTES} FROM feedback)"""
    read = fitting_rows(cursor, Measured(sizes, "bytes", "position"), all_of_them)
    told = replace(part, since=read[-1]) if len(read) < len(all_of_them) else part
    versions = knowledge.versions(cursor, org, caller, item_id, told)
    found = cases(cursor, org, item_id, part=told, seeing=caller)
    entries = sorted([*_placed(versions, "valid_from"), *_placed(found, "position")], key=itemgetter(0), reverse=True)
    shown = one_answer.fitting(entries)
    if len(shown) == len(made) + len(judged):
        return versions, found, None
    # What a limit left out, of the one or the other, is earlier as well.
    at_limit = [each[-1] for each in (made, judged) if each and len(each) == part.limit]
    begins = max([shown[-1][0], *at_limit])
    return (
        [each for each in versions if each["valid_from"] >= begins],
        [each for each in found if each["position"] >= begins],
        begins,
    )


def _placed(entries: Sequence[JsonObject], position: str) -> list[tuple[int, JsonObject]]:
    return [(each[position], each) for each in entries]


def _versions_of(org: str, caller: Caller, item_id: str, part: Part) -> tuple[str, list[str]]:
    """The query of the positions of a part of an item's versions, and its values."""
    may, values = readable_by(caller, "v.")
    end = part.narrowed("valid_from")
    return f"SELECT valid_from FROM knowledge_versions AS v WHERE org = ? AND id = ? AND {may} {end}", [
        org,
        item_id,
        *values,
    ]


def _cases_of(org: str, caller: Caller, item_id: str, part: Part) -> tuple[str, list[str]]:
    """The same, of its cases."""
    may, values = told_to(caller)
    end = part.narrowed("position")
    return f"SELECT position FROM feedback AS f WHERE org = ? AND knowledge_id = ? AND {may} {end}", [
        org,
        item_id,
        *values,
    ]

"""Which views are there? One line each: its tables, its fold, what identifies a row, what a digest leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from projections.events import fold as events
from projections.feedback import fold as feedback
from projections.knowledge import fold as knowledge
from projections.knowledge import tables as knowledge_tables
from projections.lineage import fold as lineage
from projections.profiles import fold as profiles
from projections.recalls import fold as recalls
from projections.refused import fold as refused
from projections.workbench import Facts, Workbench

Fold = Callable[[Workbench, Facts], None]


@dataclass(frozen=True, slots=True)
class ViewOfLog:
    """A part of what follows from the log.

    `fold` reads the temporary tables `accepted` and `parsed_*` of one batch and changes the view's own tables,
    the same way for one event and for a million; it never learns whether it is live or rebuilding.
    `digested` are the relations that a digest compares, each with the columns that identify a row.
    """

    name: str
    tables: str
    fold: Fold | None
    digested: dict[str, tuple[str, ...]]


# `refused` is filled by the batch itself: what is refused never reaches a fold.
VIEWS: tuple[ViewOfLog, ...] = (
    ViewOfLog("events", events.TABLES, events.fold, {"events": ("position",), "event_keys": ("position",)}),
    ViewOfLog("feedback", feedback.TABLES, feedback.fold, {"feedback": ("position",)}),
    ViewOfLog(
        "knowledge",
        knowledge_tables.TABLES,
        knowledge.fold,
        {"knowledge_versions": ("valid_from",), "knowledge_state": ("org", "id")},
    ),
    ViewOfLog("lineage", lineage.TABLES, lineage.fold, {"lineage": ("position", "relation", "ref")}),
    ViewOfLog("profiles", profiles.TABLES, profiles.fold, {"profile_versions": ("valid_from",)}),
    ViewOfLog("recalls", recalls.TABLES, recalls.fold, {"recalls": ("position", "rank")}),
    ViewOfLog("refused_events", refused.TABLES, None, {"refused_events": ("position",)}),
)

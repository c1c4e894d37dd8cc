"""Registry of the views. One line each: its tables, its folds, the key of a row, the columns that a digest omits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb

from projections.fold_kit import erased
from projections.fold_kit.decisions import Counted
from projections.fold_kit.workbench import Facts, Workbench
from projections.views.documents import tables as documents
from projections.views.events import fold as events
from projections.views.events import keys as event_keys
from projections.views.feedback import fold as feedback
from projections.views.goals import fold as goals
from projections.views.knowledge import lives, memories
from projections.views.knowledge import tables as knowledge
from projections.views.lineage import fold as lineage
from projections.views.processes import fold as processes
from projections.views.processes import tables as processes_tables
from projections.views.profiles import fold as profiles
from projections.views.projects import fold as projects
from projections.views.recalls import fold as recalls
from projections.views.recalls import tables as recalls_tables
from projections.views.refused import fold as refused
from projections.views.resources import tables as resources
from projections.views.scope_types import fold as scope_types
from projections.views.sessions import fold as sessions
from projections.views.tombstones import fold as tombstones

Fold = Callable[[Workbench, Facts], None]
FoldFew = Callable[[duckdb.DuckDBPyConnection, list[Counted]], None]


@dataclass(frozen=True, slots=True)
class ViewOfLog:
    """One view: tables that follow from the log alone, and the folds that write them.

    `fold` takes a large batch: it reads the relations that the gate presents, and changes the view's own tables with
    set-based statements. `fold_few` takes a few events as the models decoded them. None of them knows whether it runs
    live or in a rebuild, and a law in the tests holds all to the same result.
    A fold in a `lane` may go beside those that are not in it, and beside the gate and the folds of later batches, on a
    connection of its own. It reads the batch's relations and what its lane has written; its tables are read elsewhere
    by `Workbench.rows_of_lane` alone, which waits for it, and no lane waits for one that is later in VIEWS.
    `digested` are the relations that a digest compares, each with the columns that identify a row. `added` are columns
    that a relation has had since a later version: a digest includes them only where they are not null, so that the
    digest of a log in which they are empty stays the same. `undigested` are columns that no digest includes, so that
    digests from before they existed stay the same; their values follow from the log and the vault like all others.
    `outdated` are queries of the keys of rows that disagree with what they are copied from: a digest tells these.
    `later` are relations since a later version: a digest leaves them out while they have no rows.
    """

    name: str
    tables: str
    fold: Fold | None
    fold_few: FoldFew | None
    digested: dict[str, tuple[str, ...]]
    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    undigested: dict[str, tuple[str, ...]] = field(default_factory=dict)
    outdated: dict[str, str] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    lane: str | None = None


# The batch itself writes `refused_events`, in the lane `log`, as no refused event reaches a fold, and `erased_texts`,
# before the folds.
VIEWS: tuple[ViewOfLog, ...] = (
    ViewOfLog("erased_texts", erased.TABLES, None, None, {}),
    # Before feedback: the credit of a verdict depends on the recalls. Before events and lineage, which show them too.
    ViewOfLog(
        "recalls",
        recalls_tables.TABLES,
        recalls.fold,
        recalls.fold_few,
        {"recalls": ("position", "rank")},
        {"recalls": ("match", "policy", "session", "language", "intent")},
        lane="recalls",
    ),
    ViewOfLog(
        "events",
        events.TABLES,
        events.fold,
        events.fold_few,
        {"events": ("position",)},
        lane="log",
    ),
    ViewOfLog("event_keys", event_keys.TABLES, event_keys.fold, event_keys.fold_few, {"event_keys": ("position",)}),
    ViewOfLog(
        "feedback", feedback.TABLES, feedback.fold, feedback.fold_few, {"feedback": ("position",)}, lane="recalls"
    ),
    ViewOfLog(
        "goals", goals.TABLES, goals.fold, goals.fold_few, {"goal_focuses": ("position", "rank")}, lane="recalls"
    ),
    ViewOfLog(
        "knowledge",
        knowledge.TABLES + lives.TABLES + lives.VIEWS + memories.TABLES,
        knowledge.VERSIONS.fold,
        knowledge.VERSIONS.fold_few,
        {
            "knowledge_versions": ("valid_from",),
            "knowledge_state": ("org", "id"),
            "memory_recalls": ("position", "org", "item_id"),
        },
        {"knowledge_versions": knowledge.VERSIONS.names(lambda column: column.added)},
        {
            "knowledge_versions": knowledge.VERSIONS.names(lambda column: column.undigested),
            "knowledge_state": tuple(column.name for column in knowledge.JUDGED_BY if column.name != "writers"),
        },
        {"knowledge_state": knowledge.OUTDATED},
        ("memory_recalls",),
        lane="knowledge",
    ),
    ViewOfLog(
        "lineage",
        lineage.TABLES,
        lineage.fold,
        lineage.fold_few,
        {"lineage": ("position", "relation", "ref")},
        lane="log",
    ),
    ViewOfLog(
        "processes",
        processes_tables.TABLES,
        processes.fold,
        processes.fold_few,
        {"processes": ("org", "kind", "id")},
    ),
    ViewOfLog("profiles", profiles.TABLES, profiles.fold, profiles.fold_few, {"profile_versions": ("valid_from",)}),
    ViewOfLog(
        "projects",
        projects.TABLES,
        projects.fold,
        projects.fold_few,
        {"project_members": ("org", "project", "member")},
        later=("project_members",),
    ),
    ViewOfLog(
        "resources",
        resources.TABLES,
        resources.VERSIONS.fold,
        resources.VERSIONS.fold_few,
        {"resource_versions": ("valid_from",)},
    ),
    ViewOfLog(
        "documents",
        documents.TABLES,
        documents.VERSIONS.fold,
        documents.VERSIONS.fold_few,
        {"document_versions": ("valid_from",)},
        later=("document_versions",),
    ),
    ViewOfLog(
        "scope_types", scope_types.TABLES, scope_types.fold, scope_types.fold_few, {"scope_types": ("org", "type")}
    ),
    ViewOfLog(
        "sessions",
        sessions.TABLES,
        sessions.fold,
        sessions.fold_few,
        {"session_events": ("position",)},
        later=("session_events",),
    ),
    # After knowledge, whose versions say what was retired or corrected.
    ViewOfLog(
        "tombstones",
        tombstones.TABLES,
        tombstones.fold,
        tombstones.fold_few,
        {"tombstones": ("position",)},
        later=("tombstones",),
        lane="knowledge",
    ),
    ViewOfLog("refused_events", refused.TABLES, None, None, {"refused_events": ("position",)}),
)

FOLDS = tuple(view.fold for view in VIEWS if view.fold is not None and view.lane is None)
LANES = {
    name: tuple(view.fold for view in VIEWS if view.fold is not None and view.lane == name)
    for name in dict.fromkeys(view.lane for view in VIEWS if view.lane is not None)
}
"""The folds of large batches, by lane."""

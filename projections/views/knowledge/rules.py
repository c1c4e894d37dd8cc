"""Rules of knowledge events: the decider that accepts or refuses an event, and applies it to its item's state.

The state is the narrow row of `knowledge_state`, which ratings change and which has all that the rules need. Batches of
saves, revisions and ratings are mostly judged as a set, by the same rules in SQL (fast_path.py beside this): a change
of one needs the same change of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import duckdb
import pyarrow as pa

from kledger.contract.errors import (
    IllegalState,
    KnowledgeExists,
    NotOwner,
    NotReader,
    UnknownKnowledge,
    VersionConflict,
)
from kledger.contract.projects import COORDINATOR, may_propose, projects_among, scope_of
from ledger.item_status import IN_FORCE_OR_ASKED, MAKES, STATES_ANEW, fault_of_status
from ledger.privacy.personal import NOBODY
from ledger.readers import may_judge, readers
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, literal, text
from projections.views.knowledge.memory_rules import Life, Lives, may_recall
from projections.views.knowledge.tables import STATE
from projections.views.projects.members import Members


@dataclass(slots=True)
class Item:
    """One item's row of `knowledge_state`, its columns first; times are microseconds since 1970 UTC."""

    org: str
    id: str
    owner: str
    version: int
    status: str
    helpful: int
    harmful: int
    created_position: int
    created_at: int
    version_position: int
    position: int
    updated_at: int
    supporting: int = 0
    opposing: int = 0
    writers: list[str] | None = None
    """Who may revise it beside its owner; None for nobody."""
    scopes: Sequence[str] = ()
    shared_with: Sequence[str] = ()
    shared_kind: str | None = None
    """Its kind, where a project has to approve it."""
    lifetime: int | None = None
    """The seconds that it lives, where it is a short memory."""
    changed_at: int = 0
    """When its version was made."""


_VALUES_OF = attrgetter(*(column.name for column in STATE))
_ARROW = {"VARCHAR": pa.string(), "INTEGER": pa.int32(), "VARCHAR[]": pa.list_(pa.string())}
_SCHEMA = pa.schema([(column.name, _ARROW.get(column.kind, pa.int64())) for column in STATE])
_STATE = f"SELECT {', '.join(column.read() for column in STATE)} FROM knowledge_state WHERE id IN ({{about}})"
_TIMES = ", ".join(
    f"make_timestamptz({column.name}) AS {column.name}" for column in STATE if column.kind == "TIMESTAMPTZ"
)
FEW = 256  # changed items that are named in a statement; more are joined
IN_PLACE = 2  # rows that are cheaper to update one by one than to replace together
_READERS = frozenset({"knowledge.rated", "knowledge.confirmed", "knowledge.scored"})
_WRITERS_TOO = frozenset({"knowledge.revised", "knowledge.evolved"})
_NODE = frozenset({"knowledge.promoted", "knowledge.expired"})  # but for a promotion by a confirmation
_COORDINATORS = frozenset({"knowledge.approved", "knowledge.rejected"})
_COORDINATORS_TOO = _WRITERS_TOO | {"knowledge.retired", "knowledge.restored", "knowledge.superseded"}


class KnowledgeRules(Rules):
    """The rules over the state of a batch's items."""

    def __init__(self, con: duckdb.DuckDBPyConnection, members: Members, *about: str) -> None:
        state = [row for ids in about for row in con.execute(_STATE.format(about=ids)).fetchall()]
        self._items = {(row[0], row[1]): Item(*row) for row in state}
        self._changed_items: dict[tuple[str, str], Item] = {}
        self._remade: set[tuple[str, str]] = set()
        self._held = frozenset(self._items)
        short = {
            key: Life(item.lifetime, item.changed_at) for key, item in self._items.items() if item.lifetime is not None
        }
        self._lives = Lives(con, short)
        self._members = members

    def decide(self, event: Candidate) -> Ruling:
        if event.served is not None:
            return self._recalled(event)
        key = (event.org, event.entity_id)
        item = self._items.get(key)
        kind = event.type
        if item is None:
            if kind != "knowledge.saved":
                return Ruling(
                    UnknownKnowledge.code, f"there is no item {event.entity_id} to be {kind.partition('.')[2]}"
                )
            return self._saved(key, event)
        if kind == "knowledge.saved":
            return Ruling(KnowledgeExists.code, f"{item.id} is there already; revise it instead")
        if kind in _READERS or event.cause == "confirmed":
            refusal = _reader_refusal(item, event) or _status_refusal(item, event)
        elif kind in _NODE:
            refusal = _node_refusal(item, event) or _status_refusal(item, event)
        else:
            refusal = self._owner_refusal(item, event)
        if refusal is None and kind in _NODE:
            refusal = self._lives.refusal(key, event)
        if refusal is not None:
            return refusal
        self._changed_items[key] = item
        item.position, item.updated_at = event.position, event.stored_us
        if kind == "knowledge.rated":
            item.helpful += event.helpful
            item.harmful += event.harmful
            return ACCEPTED
        if kind == "knowledge.confirmed":
            return ACCEPTED
        self._lives.changed(key, event)
        return self._changed(key, item, event)

    def _recalled(self, event: Candidate) -> Ruling:
        """Count a recall for each short memory that it served to somebody who reads it."""
        for name in dict.fromkeys(event.served or ()):
            item = self._items.get(key := (event.org, name))
            if item is None or item.status != "active" or self._lives.of(key) is None:
                continue
            if may_recall(event, _readers(item)):
                self._lives.recalled(key, event)
        return ACCEPTED

    def _saved(self, key: tuple[str, str], event: Candidate) -> Ruling:
        owner = event.owner or event.actor
        if owner != event.actor:
            return Ruling(NotOwner.code, f"{event.actor} may not save what {owner} is to own")
        at, moment = event.position, event.stored_us
        item = Item(*key, owner, 1, "", event.helpful, event.harmful, at, moment, at, at, moment)
        item.scopes, item.shared_kind = event.scopes or (), event.shared_kind
        item.lifetime, item.changed_at = event.lifetime, moment
        for project in _shared_in(item):
            if not may_propose(event.shared_kind or "", self._members.roles(event.org, project, event.actor)):
                reason = f"{event.actor} has a role in {scope_of(project)}, and none that proposes {event.shared_kind}"
                return Ruling(NotOwner.code, reason)
        item.status = self._status_after(item, event)
        self._items[key] = self._changed_items[key] = item
        if event.lifetime is not None:
            self._lives.begins(key, event)
        return Ruling(version=1, status=item.status)

    def _status_after(self, item: Item, event: Candidate) -> str:
        """The status that an event leaves, of an item that is otherwise as the event makes it."""
        status = MAKES.get(event.type, item.status)
        anew = event.type in STATES_ANEW and status in IN_FORCE_OR_ASKED
        begins = status == "active" and event.type in MAKES and event.type not in _COORDINATORS
        if not (anew or begins):
            return status
        if not _shared_in(item):
            return "active"
        # A coordinator's own words hold, and no words of others that they may not have read.
        theirs = event.type == "knowledge.saved" or (anew and item.status == "active")
        return "active" if theirs and self._coordinates(item, event.actor) else "proposed"

    def _coordinates(self, item: Item, actor: str) -> bool:
        """Whether the actor is a coordinator of each project that shares the item."""
        projects = _shared_in(item)
        return bool(projects) and all(COORDINATOR in self._members.roles(item.org, each, actor) for each in projects)

    def _owner_refusal(self, item: Item, event: Candidate) -> Ruling | None:
        """The refusal of an event of the item's owner, a writer or a coordinator, or None."""
        if event.type in _COORDINATORS:
            if not self._coordinates(item, event.actor):
                return Ruling(NotOwner.code, f"{item.id} is no proposal that {event.actor} decides on as coordinator")
        elif event.actor != item.owner and not _may_revise(item, event):
            theirs = event.type in _COORDINATORS_TOO and event.owner is None and event.scopes is None
            if not (theirs and self._coordinates(item, event.actor)):
                return Ruling(NotOwner.code, f"{item.id} is owned by {item.owner}, not by {event.actor}")
        if (refusal := _status_refusal(item, event)) is not None:
            return refusal
        if event.expected_version is not None and event.expected_version != item.version:
            return Ruling(
                VersionConflict.code,
                f"{item.id} is at version {item.version}, the event expected {event.expected_version}",
            )
        return None

    def _changed(self, key: tuple[str, str], item: Item, event: Candidate) -> Ruling:
        closes = item.version_position
        self._remade.add(key)
        item.version += 1
        item.version_position, item.changed_at = event.position, event.stored_us
        if event.type == "knowledge.promoted":
            item.lifetime = None
        if event.writers is not None:
            item.writers = event.writers or None
        if event.owner is not None:
            item.owner = event.owner
        if event.scopes is not None:
            item.scopes = event.scopes
        if event.readers is not None:
            item.shared_with = event.readers
        item.status = self._status_after(item, event)
        return Ruling(version=item.version, closes=closes, status=item.status)

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Replace the rows of the changed items, and append the recalls that count."""
        self._lives.write(con)
        if 0 < len(self._changed_items) <= FEW:
            self._write_few(con)
        elif self._changed_items:
            # Their types are known: `insert`, which looks at each value, takes twice as long for thousands of items.
            columns = zip(*map(_VALUES_OF, self._changed_items.values()), strict=True)
            arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
            con.register("touched", pa.table(arrays, schema=_SCHEMA))
            con.execute(
                "DELETE FROM knowledge_state USING touched t "
                "WHERE knowledge_state.id = t.id AND knowledge_state.org = t.org"
            )
            con.execute(f"INSERT INTO knowledge_state SELECT * REPLACE ({_TIMES}) FROM touched")
            con.unregister("touched")

    def _write_few(self, con: duckdb.DuckDBPyConnection) -> None:
        """Replace the rows of a few changed items.

        A new item has no row to replace, and a verdict or two change numbers in place.
        """
        changed = dict(self._changed_items)
        judged = [key for key in changed if key in self._held and key not in self._remade]
        if len(judged) <= IN_PLACE:
            for item in map(changed.pop, judged):
                con.execute(
                    f"UPDATE knowledge_state SET helpful = {item.helpful}, harmful = {item.harmful}, "
                    f"position = {item.position}, updated_at = {literal(Moment(item.updated_at))} "
                    f"WHERE id = {text(item.id)} AND org = {text(item.org)}"
                )
        if replaced := [key for key in changed if key in self._held]:
            con.execute(f"DELETE FROM knowledge_state WHERE (org, id) IN ({', '.join(map(_pair, replaced))})")
        rows = map(_VALUES_OF, changed.values())
        insert(
            con,
            "knowledge_state",
            [[column.value(value) for column, value in zip(STATE, row, strict=True)] for row in rows],
        )


def _readers(item: Item) -> list[str]:
    return readers(item.scopes, item.shared_with, item.owner)


def _shared_in(item: Item) -> list[str]:
    """The projects that have to approve what the item says; none where it is nothing that a project shares."""
    return [] if item.shared_kind is None else projects_among(_readers(item))


def _reader_refusal(item: Item, event: Candidate) -> Ruling | None:
    """The refusal of a verdict whose actor may not read the item, or None."""
    if may_judge(event.actor, event.through, _readers(item)):
        return None
    through = "" if event.through is None else f" through {event.through}"
    verb = event.type.partition(".")[2]
    return Ruling(NotReader.code, f"{item.id} is {verb} by those who read it, and {event.actor} does not{through}")


def _node_refusal(item: Item, event: Candidate) -> Ruling | None:
    """The refusal of an event that only a node may publish, or None."""
    if event.actor == NOBODY:
        return None
    verb = event.type.partition(".")[2]
    return Ruling(NotOwner.code, f"that {item.id} is {verb} is the node's to say, not {event.actor}'s")


def _status_refusal(item: Item, event: Candidate) -> Ruling | None:
    """The refusal of an event that the item's status does not allow, or None."""
    fault = fault_of_status(event.type, item.id, item.status)
    return None if fault is None else Ruling(IllegalState.code, fault)


def _may_revise(item: Item, event: Candidate) -> bool:
    """Whether the actor may publish this without being the owner: a writer may, but not change owner or scopes."""
    return (
        event.type in _WRITERS_TOO
        and event.actor in (item.writers or ())
        and event.owner is None
        and event.scopes is None
    )


def _pair(key: tuple[str, str]) -> str:
    return f"({text(key[0])}, {text(key[1])})"

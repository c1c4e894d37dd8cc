"""An item as its save alone makes it: the row that the fold is about to write, for a read that comes before it.

The event is decoded by the models, judged by the gate's rules and turned into a version as in the fold of a few events;
nothing is asked of the view. Only plain items are made here: one that refers to others, a memory, and a text whose
form in the view would be another one wait for the fold.
"""

from __future__ import annotations

import duckdb

from kledger.contract.documents import ITEM_TYPE
from kledger.contract.errors import LedgerError
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy import sealed_as_written
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import ERASED, may_be_sealed
from projections.engine.model_check import validated
from projections.engine.row_fold import candidate
from projections.fold_kit.decisions import Counted
from projections.fold_kit.documents import is_plain
from projections.fold_kit.sql_text import Json, Moment, Sql, Value
from projections.views.knowledge.evidence import confidence
from projections.views.knowledge.rules import KnowledgeRules
from projections.views.knowledge.tables import ITEM, VERSIONS
from projections.views.projects.members import Members

_NAMES = tuple(column.name for column in ITEM)


def row_of(con: duckdb.DuckDBPyConnection, keyring: Keyring, event: StoredEvent) -> JsonObject | None:
    """The row of ITEM_COLUMNS of an item that is new with this event; None where the view has to say.

    Its ids are new, and it is not parked. A sealed text is opened where its key is at hand.
    """
    if may_be_sealed(event.body):
        written = sealed_as_written.as_written(event)
        body = None if written is None else sealed_as_written.opened(written, keyring.known)
        if body is None:
            return None
        event = event._replace(body=body)
    try:
        envelope, fact = validated(event)
    except LedgerError:
        return None
    if not isinstance(fact, KnowledgeSaved) or not _is_plain(fact):
        return None
    stands = candidate(event, envelope, fact)
    ruling = KnowledgeRules(con, Members(con)).decide(stands)  # with no items to look up, it asks nothing
    if ruling.code is not None:
        return None
    counted = Counted(event, envelope, fact, stands.org, stands.entity_id, ruling.version, None, ruling.status)
    version = VERSIONS.version(counted, {})
    stated = confidence(fact.confidence, 0, 0)
    now: dict[str, Value] = {
        **version,
        **{"helpful": fact.helpful, "harmful": fact.harmful, "supporting": 0, "opposing": 0, "confidence": stated},
        **{"position": event.position, "version_position": event.position, "updated_at": Moment(counted.stored_us)},
    }
    for name, value in now.items():
        if not isinstance(value, tuple):  # most are not, and are read as they are written
            continue
        if isinstance(value, Sql) or (isinstance(value, Json) and not is_plain(value.text)):
            return None
        if isinstance(value, Moment | Json):
            (now[name],) = value
    return {name: now.get(name) for name in _NAMES}


def may_read(caller: Caller, row: JsonObject) -> bool:
    """Whether the caller may read this row by id: `readable_by` of an item without an ACL."""
    return caller.is_operator or sees(caller, row)


def sees(caller: Caller, row: JsonObject) -> bool:
    """Whether the caller sees this row in a list: `seen_by` of an item without an ACL."""
    if caller.reads_all:
        return True
    return not set(row["scopes"]).isdisjoint(caller.visible_scopes()) or row["owner"] in caller.reading_as()


def _is_plain(fact: KnowledgeSaved) -> bool:
    """Whether an item is told by its own save alone, and in words that the view keeps as they are."""
    refers = fact.resource_ids or fact.memory is not None or fact.supersedes is not None or ITEM_TYPE in fact.types
    return not refers and ERASED not in (fact.content, fact.task)

"""Narrow columns: one row for an event of any fact, with attributes, lineage, and the fields that the gate needs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product

import pyarrow as pa

from kledger.contract.projects import SHARED_KINDS
from ledger.event import FROM, Fact
from ledger.events import FACTS
from projections.fold_kit.recalls import counts
from projections.fold_kit.sql_text import among

USED_ATTRIBUTES = (
    "id",
    "source",
    "subject",
    "time",
    "actor",
    "traceparent",
    "traceid",
    "messageid",
    "causationid",
    "correlationid",
)
"""The envelope's attributes that differ between events of one fact; in SQL they are e_id and so on."""

READERS = "list_transform(d.acl, lambda x: x.entity)"
"""Every entity of an ACL."""
WRITERS = """list_transform(list_filter(d.acl, lambda x: x.permission = 'read_write'), lambda x: x.entity)"""
"""The entities of an ACL that may revise the item."""

SERVED = f"CASE WHEN {counts('d.')} THEN list_transform(d.items, lambda x: x.id) ELSE []::VARCHAR[] END"
"""The items that a recall served; none of one that does not count."""

_TRACE_FIELDS = {"trace_id": "traceid", "message_id": "messageid"}


def _lineage_of_data(fact: type[Fact], field: str) -> str:
    """The envelope's trace or message id, else the one in the data's origin, source or case."""
    return f"coalesce({', '.join([f'e_{_TRACE_FIELDS[field]}', *named_in(fact, field)])})"


def named_in(fact: type[Fact], field: str) -> list[str]:
    """The `trace_id` or `message_id` in each part of an event's data, as SQL; NULL where it is empty."""
    return [f"nullif(d.\"{part}\".{field}, '')" for part in FROM if part in fact.model_fields]


def _decoded(token: str) -> str:
    """ledger.wire.subjects.decode_token in SQL; a single = is the empty string."""
    return f"TRY(CASE {token} WHEN '=' THEN '' ELSE url_decode(replace({token}, '=', '%')) END)"


@cache
def envelope_columns(fact: type[Fact]) -> dict[str, str]:
    """The narrow columns: SQL over `position`, `stored_us`, `subject`, the attributes (e_id …) and d, its data."""
    fields = fact.model_fields
    return {
        "position": "position",
        "stored_us": "stored_us",
        "stream_time": "make_timestamptz(stored_us)",
        "type": f"'{fact.name}'",
        "version": written_version(fact),
        "event_id": "e_id",
        "key": "md5_number_lower(e_id)",
        "time": "TRY_CAST(e_time AS TIMESTAMPTZ)",
        "source": "e_source",
        "actor": "e_actor",
        "org": _decoded("split_part(subject, '.', 2)"),
        "entity": f"'{fact.entity()}'",
        "entity_id": f"substr(e_subject, {len(fact.entity()) + 2})",
        "trace_id": _lineage_of_data(fact, "trace_id"),
        "message_id": _lineage_of_data(fact, "message_id"),
        "causation_id": "e_causationid",
        "correlation_id": "e_correlationid",
        "traceparent": "e_traceparent",
        "owner": "d.owner" if "owner" in fields else "NULL::VARCHAR",
        "expected_version": f"d.{fact.builds_on}" if fact.builds_on in fields else "NULL::BIGINT",
        "helpful": _counts(fact, "helpful"),
        "harmful": _counts(fact, "harmful"),
        "scopes": "d.scopes" if "scopes" in fields else "NULL::VARCHAR[]",
        "readers": READERS if "acl" in fields else "NULL::VARCHAR[]",
        "writers": WRITERS if "acl" in fields else "NULL::VARCHAR[]",
        "through": "d.through" if "through" in fields else "NULL::VARCHAR",
        "lifetime": _lifetime(fact),
        "cause": "d.cause" if fact.name == "knowledge.promoted" else "NULL::VARCHAR",
        "served": SERVED if fact.name == "recall.served" else "NULL::VARCHAR[]",
        "visible": "d.visible_scopes" if "visible_scopes" in fields else "NULL::VARCHAR[]",
        "shared_kind": _shared_kind(fact),
        "member": "d.member" if "member" in fields else "NULL::VARCHAR",
        "roles": "d.roles" if "member" in fields else "NULL::VARCHAR[]",
    }


def written_version(fact: type[Fact]) -> str:
    """The version that an event is written in, as `Fact.stated_version` in SQL."""
    before = fact.version - len(fact.added)
    stated = [f"WHEN d.{name} IS NOT NULL THEN {before + n}" for n, name in enumerate(fact.added, 1)]
    return f"(CASE {' '.join(reversed(stated))} ELSE {before} END)::INTEGER" if stated else f"{before}::INTEGER"


def data_as_json(fact: type[Fact]) -> str:
    """An event's data as JSON, without the added fields that it does not state."""
    if not fact.added:
        return "to_json(d)"
    forms = []
    for stated in product((True, False), repeat=len(fact.added)):
        absent = {name for name, is_stated in zip(fact.added, stated, strict=True) if not is_stated}
        kept = ", ".join(f"'{name}': d.\"{name}\"" for name in fact.model_fields if name not in absent)
        holds = " AND ".join(
            f"d.{name} IS {'NOT ' if is_stated else ''}NULL" for name, is_stated in zip(fact.added, stated, strict=True)
        )
        forms.append(f"WHEN {holds} THEN {f'to_json({{{kept}}})' if absent else 'to_json(d)'}")
    return f"CASE {' '.join(forms)} END"


def narrow(tables: Iterable[pa.Table], *more: str) -> pa.Table:
    """The narrow columns, and `more`, of all the tables; nothing is copied."""
    return pa.concat_tables([table.select([*NARROW, *more]) for table in tables])


def _lifetime(fact: type[Fact]) -> str:
    """The lifetime that a save gives a short memory, or that is over."""
    if "memory" in fact.model_fields:
        return "CASE WHEN d.memory.layer = 'short' THEN d.memory.lifetime END"
    return "d.after" if fact.name == "knowledge.expired" else "NULL::BIGINT"


def _shared_kind(fact: type[Fact]) -> str:
    """The kind of a memory, where it is one that a project shares."""
    if "memory" not in fact.model_fields:
        return "NULL::VARCHAR"
    return f"CASE WHEN d.memory.kind IN ({among(SHARED_KINDS)}) THEN d.memory.kind END"


def _counts(fact: type[Fact], verdict: str) -> str:
    """How many helpful or harmful cases the event adds to its item."""
    if "verdict" in fact.model_fields:
        return f"(d.verdict = '{verdict}')::BIGINT"
    return f"d.{verdict}" if verdict in fact.model_fields else "0::BIGINT"


NARROW = tuple(envelope_columns(next(iter(FACTS.values()))))
"""The names of the narrow columns, the same for every fact."""

"""What is the same of every event? One narrow row each: attributes, lineage, and the few fields the gate decides by."""

from __future__ import annotations

from functools import cache

from ledger.event import Fact

NARROW = (
    "position",
    "stored_us",
    "stream_time",
    "type",
    "version",
    "event_id",
    "time",
    "source",
    "actor",
    "org",
    "entity",
    "entity_id",
    "trace_id",
    "message_id",
    "causation_id",
    "correlation_id",
    "traceparent",
    "owner",
    "expected_version",
    "helpful",
    "harmful",
)
_TRACE_FIELDS = {"trace_id": "traceid", "message_id": "messageid"}


def _lineage_of_data(fact: type[Fact], field: str) -> str:
    """The envelope's lineage, else what the data itself says of its source or case."""
    nested = [part for part in ("source", "case") if part in fact.model_fields]
    choices = [f"e.{_TRACE_FIELDS[field]}", *(f"nullif(e.data.\"{part}\".{field}, '')" for part in nested)]
    return f"coalesce({', '.join(choices)})"


@cache
def envelope_columns(fact: type[Fact]) -> dict[str, str]:
    """The columns of NARROW, each as SQL over `position`, `stored_us`, `subject` and the parsed event `e`."""
    said = fact.model_fields
    return {
        "position": "position",
        "stored_us": "stored_us",
        "stream_time": "make_timestamptz(stored_us)",
        "type": f"'{fact.name}'",
        "version": f"{fact.version}::INTEGER",
        "event_id": "e.id",
        "time": "TRY_CAST(e.time AS TIMESTAMPTZ)",
        "source": "e.source",
        "actor": "e.actor",
        "org": "TRY(url_decode(replace(split_part(subject, '.', 2), '=', '%')))",
        "entity": f"'{fact.entity()}'",
        "entity_id": f"substr(e.subject, {len(fact.entity()) + 2})",
        "trace_id": _lineage_of_data(fact, "trace_id"),
        "message_id": _lineage_of_data(fact, "message_id"),
        "causation_id": "e.causationid",
        "correlation_id": "e.correlationid",
        "traceparent": "e.traceparent",
        "owner": "e.data.owner" if "owner" in said else "NULL::VARCHAR",
        "expected_version": "e.data.expected_version" if "expected_version" in said else "NULL::BIGINT",
        "helpful": _counts(fact, "helpful"),
        "harmful": _counts(fact, "harmful"),
    }


def _counts(fact: type[Fact], verdict: str) -> str:
    """How many helpful or harmful cases the event adds to its item."""
    if "verdict" in fact.model_fields:
        return f"(e.data.verdict = '{verdict}')::BIGINT"
    return f"e.data.{verdict}" if verdict in fact.model_fields else "0::BIGINT"

"""What does a batch of raw events say? DuckDB parses them as columns; pydantic judges the doubtful ones.

An event whose bytes are exactly what our own encoder would write for its parsed fields, and whose values keep
the schema's constraints, fits: one comparison proves every type. Anything else (another client's spelling, an
earlier version, a malformed body) is judged one at a time by the models, and then either enters in canonical
form or is refused with its reason. Both roads give the same columns.

Fills the scratch tables `parsed_<fact>` (one for each fact in the batch) and `envelopes` (one narrow row an event
that fits).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
import pyarrow as pa

from ledger.envelope import Envelope, decode_envelope, decode_fact, schema_name
from ledger.errors import IllegalSubject, LedgerError
from ledger.event import Fact, StoredEvent
from ledger.events import FACTS
from ledger.subjects import parse_subject
from projections.schema_sql import entity_check, fits, json_structure
from projections.sql_text import text
from projections.workbench import Facts, Workbench, table_of

RAW_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("stored_us", pa.int64()),
        ("subject", pa.string()),
        ("name", pa.string()),
        ("body", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An event that is not folded, and why; the raw bytes stay readable in `refused_events`."""

    event: StoredEvent
    code: str
    reason: str


def decode(bench: Workbench, events: list[StoredEvent]) -> tuple[Facts, list[Refusal]]:
    """Parse a batch into the scratch tables named above.

    Returns the facts that occur in it (in the vocabulary's order) and what cannot be read as an event.
    """
    names = [_name_in(event.subject) for event in events]
    facts, doubtful = _parse(bench, events, names)
    refused: list[Refusal] = []
    accepted: list[StoredEvent] = []
    for event in doubtful:
        try:
            accepted.append(event._replace(body=_rewrite(*judged(event))))
        except LedgerError as error:
            refused.append(Refusal(event, error.code, error.message))
    if accepted:
        raw = _load(bench, accepted, [_name_in(event.subject) for event in accepted])
        for fact in facts:
            bench.fill(table_of(fact), _select(fact, "true", raw))
    return facts, refused


def _occurring(names: list[str]) -> Facts:
    there = set(names)
    return tuple(fact for fact in FACTS.values() if fact.name in there)


def _name_in(subject: str) -> str:
    """`knowledge.saved`, if the subject is the ledger's; anything that is no fact's name otherwise."""
    tokens = subject.split(".", 5)
    return f"{tokens[2]}.{tokens[4]}" if len(tokens) == 6 else ""


def _parse(bench: Workbench, events: list[StoredEvent], names: list[str]) -> tuple[Facts, list[StoredEvent]]:
    """Let DuckDB parse the batch; returns the facts that occur, and the events that SQL cannot vouch for."""
    doubtful = [event for event, name in zip(events, names, strict=True) if name not in FACTS]
    try:
        raw = _load(bench, events, names)
    except pa.ArrowInvalid:  # somewhere in it are bytes that are no text
        readable = [event for event in events if _is_text(event.body)]
        doubtful += [event for event in events if not _is_text(event.body) and _name_in(event.subject) in FACTS]
        raw = _load(bench, readable, [_name_in(event.subject) for event in readable])
    facts = _occurring(names)
    first = events[0].position
    for fact in facts:
        table = table_of(fact)
        bench.fill(table, _select(fact, _vouched(fact), raw))
        doubted = bench.rows(f"SELECT position FROM {table} WHERE NOT fits")
        if doubted:
            doubtful += [events[position - first] for (position,) in doubted]
            bench.run(f"DELETE FROM {table} WHERE NOT fits")
    return facts, doubtful


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _load(bench: Workbench, events: list[StoredEvent], names: list[str]) -> str:
    columns = (
        [event.position for event in events],
        [event.stored_ns // 1000 for event in events],
        [event.subject for event in events],
        names,
        pa.array([event.body for event in events], pa.binary()).cast(pa.string()),
    )
    return bench.load("raw", columns, RAW_SCHEMA)


@cache
def _vouched(fact: type[Fact]) -> str:
    """The predicate of rows that need no judge."""
    return f"coalesce({_canonical(fact)} = body AND {_envelope_fits()} AND {_named(fact)} AND {fits(fact)}, false)"


def _named(fact: type[Fact]) -> str:
    """The subject names this event letter by letter, without any encoding to undo."""
    return f"""starts_with(e.subject, '{fact.entity()}/') AND subject = concat(
        'ledger.', split_part(subject, '.', 2), '.', replace(e.subject, '/', '.'),
        '.{fact.verb()}.', replace(e.actor, ':', '.'))
        AND regexp_full_match(subject, '[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+){{6}}')"""


def _canonical(fact: type[Fact]) -> str:
    """The bytes that ledger.envelope.encode writes, said in SQL over the parsed event `e`."""
    optional = ("traceparent", "traceid", "messageid", "causationid", "correlationid")
    extensions = ", ".join(f"""',"{name}":"' || e.{name} || '"'""" for name in optional)
    return f"""concat('{{"specversion":"1.0","id":"', e.id, '","type":"{fact.name}","source":"', e.source,
        '","subject":"', e.subject, '","time":"', e.time,
        '","datacontenttype":"application/json","dataschema":"{schema_name(fact)}","actor":"', e.actor, '"',
        {extensions}, ',"data":', data, '}}')"""


def _envelope_fits() -> str:
    """Constraints of ledger.envelope.Envelope that the canonical form alone does not show."""
    short = ("id", "source", "traceparent", "traceid", "messageid", "causationid", "correlationid")
    lengths = " AND ".join(f"(e.{name} IS NULL OR length(e.{name}) BETWEEN 1 AND 512)" for name in short)
    return (
        f"e.id IS NOT NULL AND e.source IS NOT NULL AND {lengths} AND length(e.subject) BETWEEN 1 AND 1024 "
        f"AND {entity_check('e.actor')} "
        "AND regexp_full_match(e.time, '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,6})?(Z|[+-]\\d\\d:\\d\\d)') "
        "AND TRY_CAST(e.time AS TIMESTAMPTZ) IS NOT NULL"
    )


@cache
def _select(fact: type[Fact], fits_sql: str, raw: str) -> str:
    return f"""SELECT position, stored_us, subject, e, data, {fits_sql} AS fits FROM (
        SELECT *, to_json(e.data)::VARCHAR AS data FROM (
            SELECT position, stored_us, subject, body,
                CASE WHEN json_valid(body) THEN from_json(body, {text(json_structure(fact))}) END AS e
            FROM {raw} WHERE name = '{fact.name}'))"""


def judged(event: StoredEvent) -> tuple[Envelope, Fact]:
    """The event as the models read it. Raises a LedgerError that says what is wrong."""
    named = parse_subject(event.subject)
    envelope = decode_envelope(event.body)
    fact = decode_fact(envelope)
    entity, _, entity_id = envelope.subject.partition("/")
    if f"{named.entity}.{named.event}" != fact.name:
        raise IllegalSubject(
            f"the subject says {named.entity}.{named.event}, the event says {fact.name}: publish it to the "
            "subject of its type"
        )
    if (named.entity, named.entity_id) != (entity, entity_id):
        raise IllegalSubject(
            f"the subject is about {named.entity}/{named.entity_id}, the event about {envelope.subject}"
        )
    if fact.stated_id() not in (None, entity_id):
        raise IllegalSubject(f"the event is about {envelope.subject}, its data about {fact.stated_id()}")
    if named.actor != envelope.actor:
        raise IllegalSubject(f"the subject's actor is {named.actor}, the event names {envelope.actor}")
    return envelope, fact


def _rewrite(envelope: Envelope, fact: Fact) -> bytes:
    """The event as our own encoder would have written it."""
    attributes: dict[str, Any] = envelope.model_dump(exclude={"data", "dataschema", "time"}, exclude_none=True)
    attributes["time"] = envelope.time.isoformat()
    attributes["dataschema"] = schema_name(type(fact))
    attributes["data"] = orjson.Fragment(fact.__pydantic_serializer__.to_json(fact))
    return orjson.dumps(attributes)


_TRACE_FIELDS = {"trace_id": "traceid", "message_id": "messageid"}


def _lineage_of_data(fact: type[Fact], field: str) -> str:
    """The envelope's lineage, else what the data itself says of its source or case."""
    nested = [part for part in ("source", "case") if part in fact.model_fields]
    choices = [f"e.{_TRACE_FIELDS[field]}", *(f"nullif(e.data.\"{part}\".{field}, '')" for part in nested)]
    return f"coalesce({', '.join(choices)})"


def fill_envelopes(bench: Workbench, facts: Facts) -> None:
    """One narrow row an event: attributes, lineage, and the few data fields that the gate decides by."""
    bench.fill("envelopes", _envelopes(facts))


@cache
def _envelopes(facts: Facts) -> str:
    selects = []
    for fact in facts:
        said = fact.model_fields
        owner = "e.data.owner" if "owner" in said else "NULL::VARCHAR"
        expected = "e.data.expected_version" if "expected_version" in said else "NULL::BIGINT"
        selects.append(f"""SELECT position, stored_us, make_timestamptz(stored_us) AS stream_time,
            '{fact.name}' AS type, {fact.version}::INTEGER AS version, e.id AS event_id,
            e.time::TIMESTAMPTZ AS time, e.source AS source, e.actor AS actor,
            url_decode(replace(split_part(subject, '.', 2), '=', '%')) AS org,
            '{fact.entity()}' AS entity, substr(e.subject, {len(fact.entity()) + 2}) AS entity_id,
            {_lineage_of_data(fact, "trace_id")} AS trace_id, {_lineage_of_data(fact, "message_id")} AS message_id,
            e.causationid AS causation_id, e.correlationid AS correlation_id, e.traceparent AS traceparent,
            {owner} AS owner, {expected} AS expected_version,
            {_counts(fact, "helpful")} AS helpful, {_counts(fact, "harmful")} AS harmful
            FROM {table_of(fact)}""")
    return " UNION ALL ".join(selects)


def _counts(fact: type[Fact], verdict: str) -> str:
    """How many helpful or harmful cases the event adds to its item."""
    if "verdict" in fact.model_fields:
        return f"(e.data.verdict = '{verdict}')::BIGINT"
    return f"e.data.{verdict}" if verdict in fact.model_fields else "0::BIGINT"

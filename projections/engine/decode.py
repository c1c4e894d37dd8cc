"""Decoder of a batch of raw events: DuckDB parses them into columns; pydantic validates those that it cannot.

An event whose bytes are exactly what our own encoder would write for its parsed fields, and whose values satisfy the
schema's constraints, is accepted as parsed (projections/engine/canonical_check.py). Any other (another client's JSON
formatting, an earlier version, a malformed body) is validated by the models, one at a time: it is then either parsed
again in canonical form or refused with a reason. Both paths give the same columns.

Decoding does not touch the view: it runs in a small DuckDB of its own, so that the next batch can be decoded while
this one is folded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter

import pyarrow as pa

from kledger.contract.errors import LedgerError
from ledger.event import Fact, StoredEvent
from ledger.events import FACTS
from projections.engine.canonical_check import is_canonical
from projections.engine.model_check import canonical_body, validated
from projections.engine.unsealing import Opened
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import CANDIDATES, Candidate, Refusal, as_candidates
from projections.fold_kit.documents import is_plain
from projections.fold_kit.envelopes import NOTHING, USED_ATTRIBUTES, data_as_json, envelope_columns, narrow
from projections.fold_kit.parser import Parser
from projections.fold_kit.schema_sql import documents, flat, json_structure
from projections.fold_kit.sql_text import text
from projections.fold_kit.text_column import text_column
from projections.fold_kit.workbench import Facts
from projections.views.as_sets import sets_in
from projections.views.lineage.links import links

# The parser's memory is bounded, and a body is copied several times on its way into columns.
_PARSED_AT_ONCE = 16 * 1024 * 1024

_position = attrgetter("position")
_CHECKS = ["unproven", "documents"]
_RAW = ("position", "stored_us", "subject", "name", "body")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch as columns, and the events that are refused because they cannot be decoded.

    `parsed` has a table for each fact that occurs, in the vocabulary's order: the narrow columns of
    projections/fold_kit/envelopes.py, d (the data as a struct) and data (as JSON). `envelopes` are the narrow columns
    of all. `candidates` is the gate's input, in the order of the log; None where the gate can judge some of them as
    a set (projections/views/as_sets.py). `lineage` are the links in the events. All three are empty where no event is
    valid.
    """

    opened: Opened
    parsed: dict[type[Fact], pa.Table]
    refused: list[Refusal]
    envelopes: pa.Table | None = None
    candidates: Sequence[Candidate] | None = ()
    lineage: pa.Table | None = None


def decode(parser: Parser, opened: Opened) -> Decoded:
    """Parse a batch. An invalid event is refused in the result and raises nothing."""
    return completed(parser, opened, *parse(parser, opened.events))


def completed(parser: Parser, opened: Opened, parsed: dict[type[Fact], pa.Table], refused: list[Refusal]) -> Decoded:
    """A parsed batch with all that follows from its columns."""
    if not parsed:
        return Decoded(opened, {}, refused)
    envelopes = narrow(parsed.values())
    candidates = None if sets_in(parsed) else as_candidates(parser.rows(CANDIDATES, envelopes=envelopes))
    return Decoded(opened, parsed, refused, envelopes, candidates, links(parsed))


def parse(parser: Parser, events: Sequence[StoredEvent]) -> tuple[dict[type[Fact], pa.Table], list[Refusal]]:
    """The columns of each fact, in the vocabulary's order, of opened events; and those that are refused.

    What becomes of an event depends on nothing but its own content: the archive keeps these columns.
    """
    names = [_name_in(event.subject) for event in events]
    unproven: list[StoredEvent] = []
    tables: dict[type[Fact], list[pa.Table]] = {}
    for start, end in _pieces(events):
        rows, rest = _parse(parser, events[start:end], names[start:end])
        unproven += rest
        for fact, table in rows.items():
            tables.setdefault(fact, []).append(table)
    refused: list[Refusal] = []
    accepted: list[StoredEvent] = []
    for event in unproven:
        try:
            accepted.append(event._replace(body=canonical_body(*validated(event))))
        except LedgerError as error:
            refused.append(Refusal(event, error.code, error.message))
    for start, end in _pieces(accepted):
        accepted_names = [_name_in(event.subject) for event in accepted[start:end]]
        raw = _raw(accepted[start:end], accepted_names)
        with parser.over("raw", raw) as select:
            for fact in _occurring(accepted_names):
                rows = _whole(fact, select(_select(fact, "true")))
                tables.setdefault(fact, []).append(rows.drop_columns(_CHECKS))
    return {fact: pa.concat_tables(tables[fact]) for fact in FACTS.values() if fact in tables}, refused


def _pieces(events: Sequence[StoredEvent]) -> Iterator[tuple[int, int]]:
    """(start, end) of the pieces of a batch: each of at most _PARSED_AT_ONCE bytes, or a single event."""
    start = size = 0
    for at, event in enumerate(events):
        if at > start and size + len(event.body) > _PARSED_AT_ONCE:
            yield start, at
            start, size = at, 0
        size += len(event.body)
    if events:
        yield start, len(events)


def _occurring(names: list[str]) -> Facts:
    present = set(names)
    return tuple(fact for fact in FACTS.values() if fact.name in present)


def _name_in(subject: str) -> str:
    """The fact's name, such as `knowledge.saved`; for a foreign subject, a text that is no fact's name."""
    tokens = subject.split(".", 5)
    return f"{tokens[2]}.{tokens[4]}" if len(tokens) == 6 else ""


def _parse(
    parser: Parser, events: Sequence[StoredEvent], names: list[str]
) -> tuple[dict[type[Fact], pa.Table], list[StoredEvent]]:
    """Parse the batch in DuckDB: the canonical rows, by fact, and the events that the models have to validate."""
    unproven = [event for event, name in zip(events, names, strict=True) if name not in FACTS]
    facts = _occurring(names)
    try:
        raw = _raw(events, names)
    except pa.ArrowInvalid:  # a body is not UTF-8
        unproven += [event for event in events if not _is_text(event.body) and _name_in(event.subject) in FACTS]
        readable = [event for event in events if _is_text(event.body)]
        raw = _raw(readable, [_name_in(event.subject) for event in readable])
    parsed: dict[type[Fact], pa.Table] = {}
    with parser.over("raw", raw) as select:
        for fact in facts:
            rows = _whole(fact, select(_select(fact, is_canonical(fact))))
            positions = {*rows["unproven"].drop_null().to_pylist(), *_odd_documents(rows)}
            if positions:
                unproven += [events[bisect_left(events, at, key=_position)] for at in sorted(positions)]
                rows = rows.filter(pc.invert(pc.is_in(rows["position"], pa.array(positions, pa.int64()))))
            parsed[fact] = rows.drop_columns(_CHECKS)
    return parsed, unproven


def _odd_documents(rows: pa.Table) -> list[int]:
    """The positions of the rows that have a document to be looked at which is not plain."""
    if rows["documents"].null_count == len(rows):
        return []
    looked_at = rows.select(["position", "documents"]).filter(pc.is_valid(rows["documents"]))
    each = zip(looked_at["position"].to_pylist(), looked_at["documents"].to_pylist(), strict=True)
    return [at for at, documents in each if not all(is_plain(text) for text in documents if text is not None)]


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _raw(events: Sequence[StoredEvent], names: list[str]) -> pa.Table:
    """The events as columns. Raises ArrowInvalid when a body is not UTF-8."""
    return pa.table(
        [
            pa.array([event.position for event in events], pa.int64()),
            pa.array([event.stored_ns // 1000 for event in events], pa.int64()),
            pa.array([event.subject for event in events], pa.string()),
            pa.array(names, pa.string()),
            text_column([event.body for event in events]),
        ],
        names=_RAW,
    )


def _whole(fact: type[Fact], rows: pa.Table) -> pa.Table:
    """The rows with the columns that no event of the fact has, all null: a query would compute each of them."""
    for name, sql in envelope_columns(fact).items():
        if sql in NOTHING:
            rows = rows.append_column(name, pa.nulls(len(rows), NOTHING[sql]))
    return rows


@cache
def _select(fact: type[Fact], fits: str) -> str:
    """The query of one fact's rows; `unproven` is the position of each for which the predicate `fits` does not hold.

    `documents` are those of a row of which SQL cannot tell whether the models accept them, where they have not already.
    The inner SELECT extracts each attribute from the parsed struct once, before anything is computed from it.
    """
    columns = ", ".join(f"{sql} AS {name}" for name, sql in envelope_columns(fact).items() if sql not in NOTHING)
    attributes = ", ".join(f'e."{name}" AS e_{name}' for name in USED_ATTRIBUTES)
    texts = ", ".join(f"{path}::VARCHAR" for path in documents(fact))
    to_look_at = f"CASE WHEN NOT ({flat(fact)}) THEN [{texts}] END" if texts and fits != "true" else "NULL::VARCHAR[]"
    return f"""SELECT {columns}, d, data, CASE WHEN NOT {fits} THEN position END AS unproven,
        {to_look_at} AS documents FROM (
        SELECT *, {data_as_json(fact)} AS data FROM (
            SELECT position, stored_us, subject, body, {attributes}, e.data AS d FROM (
                SELECT position, stored_us, subject, body,
                    TRY(from_json(body, {text(json_structure(fact))})) AS e
                FROM raw WHERE name = '{fact.name}')))"""

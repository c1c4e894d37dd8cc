"""Fold of verdicts and confirmations: one row for each case, never changed.

A case that names a trace, or comes from one, earns credit only when the item was served to that trace before
(recalls, without looks at a page): only then it is added to the evidence in the item's narrow row.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from kledger.contract.knowledge import Case
from ledger.event import Fact
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRated
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.recalls import counts
from projections.fold_kit.sql_text import ALL_DIFFERENT, Moment, Value, among, literal
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.knowledge.evidence import OPPOSING, SUPPORTING, counted_as
from projections.views.recalls.tables import PACKED, of_recalls

TABLES = f"""
CREATE TABLE feedback (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, event_id VARCHAR {ALL_DIFFERENT} NOT NULL,
    org VARCHAR NOT NULL, knowledge_id VARCHAR {ALL_DIFFERENT} NOT NULL, verdict VARCHAR NOT NULL,
    task VARCHAR {ALL_DIFFERENT}, query VARCHAR {ALL_DIFFERENT}, outcome VARCHAR {ALL_DIFFERENT},
    reason VARCHAR {ALL_DIFFERENT}, case_time VARCHAR, actor VARCHAR NOT NULL,
    trace_id VARCHAR, message_id VARCHAR {ALL_DIFFERENT}, credit VARCHAR NOT NULL
);
COMMENT ON TABLE feedback IS 'Every case in which an item helped or harmed, or was confirmed';
COMMENT ON COLUMN feedback.time IS 'When the log kept it';
COMMENT ON COLUMN feedback.verdict IS 'helpful, harmful or confirmed';
COMMENT ON COLUMN feedback.case_time IS 'When the case happened, as the rater wrote it';
COMMENT ON COLUMN feedback.trace_id IS 'The case''s own; where it names none, the one that its event is of';
COMMENT ON COLUMN feedback.credit IS
    'served: to that trace, or the one that its event is of, before; not_served: it never was; untraced: there is none';
"""

_RATED = (KnowledgeRated, KnowledgeConfirmed)
IN_PLACE = 2
"""Cases that are cheaper to count one by one than together."""
_OF_EVENT = {
    "position": "position",
    "time": "stream_time",
    "event_id": "event_id",
    "org": "org",
    "knowledge_id": "entity_id",
    "actor": "actor",
}
_TRACED = ("position", "org", "knowledge_id", "trace_id")
_EVIDENCE = f"""
SELECT org, knowledge_id, ({SUPPORTING})::BIGINT AS supporting, ({OPPOSING})::BIGINT AS opposing
FROM {{cases}} GROUP BY org, knowledge_id
"""
_COUNT = """
UPDATE knowledge_state SET supporting = knowledge_state.supporting + f.supporting,
    opposing = knowledge_state.opposing + f.opposing
FROM (
    SELECT org, knowledge_id, sum(supporting)::BIGINT AS supporting, sum(opposing)::BIGINT AS opposing
    FROM {evidence} GROUP BY org, knowledge_id
) f WHERE knowledge_state.id = f.knowledge_id AND knowledge_state.org = f.org
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the cases of the batch, with their credit, and count them as evidence."""
    rated = [fact for fact in _RATED if fact in facts]
    if not rated:
        return
    cases = pa.concat_tables([_cases(fact, bench.presented(table_of(fact))) for fact in rated])
    credit = _credit(bench, cases)
    bench.present({"cases": cases.drop_columns("named").append_column("credit", credit)})
    bench.run("INSERT INTO feedback BY NAME FROM cases")
    if KnowledgeConfirmed in rated or pc.any(pc.not_equal(credit, "not_served")).as_py():
        evidence = bench.table(_EVIDENCE.format(cases="cases"))
        bench.run_later(_COUNT.format(evidence="evidence"), {"evidence": evidence})


def _cases(fact: type[Fact], events: pa.Table) -> pa.Table:
    """The columns of `feedback` but for the credit; and `named`, the trace that the event is of."""
    own = {name: pc.struct_field(events["d"], ["case", name]) for name in Case.model_fields}
    for name in ("trace_id", "message_id"):
        own[name] = pc.if_else(pc.fill_null(pc.not_equal(own[name], ""), False), own[name], events[name])
    # Of the type of a verdict, also where there is no event.
    confirmed = pa.repeat("confirmed", len(events))
    verdict = pc.struct_field(events["d"], ["verdict"]) if fact is KnowledgeRated else confirmed
    return pa.table(
        {
            **{name: events[column] for name, column in _OF_EVENT.items()},
            "verdict": verdict,
            **{"case_time" if name == "timestamp" else name: values for name, values in own.items()},
            "named": events["trace_id"],
        }
    )


def _credit(bench: Workbench, cases: pa.Table) -> pa.ChunkedArray:
    """Whether each case's item was served before to one of its traces."""
    traced = cases.filter(pc.is_valid(cases["named"]))
    if not len(traced):
        return pa.chunked_array([pa.repeat("untraced", len(cases))])
    others = traced.filter(pc.not_equal(traced["named"], traced["trace_id"]))
    both = [
        rows.select(("position", "org", "knowledge_id", trace))
        for rows, trace in ((traced, "named"), (others, "trace_id"))
    ]
    bench.present({"traced": pa.concat_tables([rows.rename_columns(_TRACED) for rows in both])})
    packed = bench.few_of(PACKED, "trace_id", "SELECT trace_id FROM traced")
    served = pa.array([at for (at,) in bench.rows(_query_of_served("FROM traced", packed))], pa.int64())
    credit = pc.if_else(pc.is_in(cases["position"], served), "served", "not_served")
    return pc.if_else(pc.is_valid(cases["named"]), credit, "untraced")


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append the cases of a few events."""
    rated = [(c, c.fact) for c in counted if isinstance(c.fact, _RATED)]
    if not rated:
        return
    served = _served(con, [c for c, _ in rated])
    verdicts = {c.position: fact.verdict if isinstance(fact, KnowledgeRated) else "confirmed" for c, fact in rated}
    credits = {
        c.position: "untraced" if not c.trace_id else "served" if c.position in served else "not_served"
        for c, _ in rated
    }
    insert(
        con,
        "feedback",
        (
            (
                *(c.position, Moment(c.stored_us), c.envelope.id, c.org, c.entity_id, verdicts[c.position]),
                *(fact.case.task, fact.case.query, fact.case.outcome, fact.case.reason, fact.case.timestamp),
                *(c.envelope.actor, fact.case.trace_id or c.trace_id, fact.case.message_id or c.message_id),
                credits[c.position],
            )
            for c, fact in rated
        ),
    )
    if len(rated) > IN_PLACE:
        cases = f"feedback WHERE position IN ({among(c.position for c, _ in rated)})"
        con.execute(_COUNT.format(evidence=f"({_EVIDENCE.format(cases=cases)})"))
        return
    for c, _ in rated:
        supporting, opposing = counted_as(verdicts[c.position], credits[c.position])
        if supporting or opposing:
            con.execute(
                f"UPDATE knowledge_state SET supporting = supporting + {supporting}, opposing = opposing + {opposing} "
                f"WHERE id = {literal(c.entity_id)} AND org = {literal(c.org)}"
            )


def _query_of_served(rated: str, packed: str = PACKED) -> str:
    """The positions of those of these cases (position, org, knowledge_id, trace_id) whose item was served before to
    that trace. Few recalls are of the trace: their items are looked at only then.
    """
    of_all = of_recalls("position, org, trace_id, d.kind AS kind, d.items AS items", packed)
    return f"""
        SELECT DISTINCT f.position FROM ({rated}) f(position, org, knowledge_id, trace_id)
        JOIN ({of_all}) r ON r.org = f.org AND r.trace_id = f.trace_id AND r.position < f.position AND {counts("r.")}
            AND list_contains(list_transform(r.items, lambda x: x.id), f.knowledge_id)
        UNION
        SELECT f.position FROM ({rated}) f(position, org, knowledge_id, trace_id)
        JOIN recall_remains r ON r.org = f.org AND r.trace_id = f.trace_id AND r.position < f.position
            AND {counts("r.")} AND list_contains(r.items, f.knowledge_id)
    """


def _served(con: duckdb.DuckDBPyConnection, rated: list[Counted]) -> set[int]:
    """The positions of those cases whose item was served before to one of their traces."""
    traced: list[tuple[Value, ...]] = [
        (c.position, c.org, c.entity_id, trace) for c in rated for trace in c.named("trace_id")
    ]
    if not traced:
        return set()
    values = ", ".join(f"({', '.join(map(literal, each))})" for each in traced)
    return {position for (position,) in con.execute(_query_of_served(f"VALUES {values}")).fetchall()}

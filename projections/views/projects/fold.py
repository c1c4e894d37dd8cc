"""Fold of rows of projects' members: one row for each member with a role, as it was stated last."""

from __future__ import annotations

import duckdb

from ledger.events.project import ProjectMemberAssigned
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, text
from projections.fold_kit.workbench import Facts, Workbench, table_of

TABLES = """
CREATE TABLE project_members (
    org VARCHAR NOT NULL, project VARCHAR NOT NULL, member VARCHAR NOT NULL, roles VARCHAR[] NOT NULL,
    actor VARCHAR NOT NULL, position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE project_members IS 'Who has which role in a project; a coordinator approves its shared memory';
COMMENT ON COLUMN project_members.project IS 'Its id: ledger for the scope project:ledger';
COMMENT ON COLUMN project_members.roles IS 'coordinator, architect, reviewer, tester, developer, operations';
COMMENT ON COLUMN project_members.actor IS 'Who said so: the operator (user:local), or a coordinator';
COMMENT ON COLUMN project_members.position IS 'Log position of the event that said so';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Keep what was stated last of each member."""
    if ProjectMemberAssigned not in facts:
        return
    rows = table_of(ProjectMemberAssigned)
    bench.run(f"""
        DELETE FROM project_members USING {rows} s
        WHERE project_members.org = s.org AND project_members.project = s.entity_id
            AND project_members.member = s.d.member
    """)
    bench.run(f"""
        INSERT INTO project_members
        SELECT org, entity_id, d.member, d.roles, actor, position, stream_time FROM (
            FROM {rows} QUALIFY row_number() OVER (PARTITION BY org, entity_id, d.member ORDER BY position DESC) = 1
        ) WHERE len(d.roles) > 0
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Keep what a few events state of members."""
    last = {
        (c.org, c.entity_id, c.fact.member): (c, c.fact) for c in counted if isinstance(c.fact, ProjectMemberAssigned)
    }
    if not last:
        return
    keys = ", ".join(f"({', '.join(map(text, key))})" for key in last)
    con.execute(f"DELETE FROM project_members WHERE (org, project, member) IN ({keys})")
    insert(
        con,
        "project_members",
        (
            (*key, fact.roles, c.envelope.actor, c.position, Moment(c.stored_us))
            for key, (c, fact) in last.items()
            if fact.roles
        ),
    )

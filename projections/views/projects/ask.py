"""Queries of the members of projects and their roles."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from kledger.contract.projects import COORDINATOR
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows


def members(cursor: duckdb.DuckDBPyConnection, org: str, project: str) -> list[JsonObject]:
    """The members of a project with their roles, by name."""
    return named_rows(
        cursor,
        """SELECT member, roles, actor, position FROM project_members
            WHERE org = ? AND project = ? ORDER BY member""",
        [org, project],
    )


def roles(cursor: duckdb.DuckDBPyConnection, org: str, member: str, projects: Sequence[str]) -> dict[str, list[str]]:
    """The roles of a member in those of these projects in which it has any."""
    rows = cursor.execute(
        "SELECT project, roles FROM project_members WHERE org = ? AND member = ? AND list_contains(?, project)",
        [org, member, list(projects)],
    )
    return dict(rows.fetchall())


def coordinators(cursor: duckdb.DuckDBPyConnection, org: str, projects: Sequence[str]) -> list[str]:
    """Who coordinates every one of these projects, by name; nobody where there is no project."""
    rows = cursor.execute(
        f"""SELECT member FROM project_members
            WHERE org = ? AND list_contains(?, project) AND list_contains(roles, '{COORDINATOR}')
            GROUP BY member HAVING count(*) = ? ORDER BY member""",
        [org, list(projects), len(projects)],
    )
    return [member for (member,) in rows.fetchall()]


def coordinators_of(cursor: duckdb.DuckDBPyConnection, org: str, projects: Sequence[str]) -> dict[str, list[str]]:
    """Who coordinates each of these projects, by name."""
    rows = cursor.execute(
        f"""SELECT project, list(member ORDER BY member) FROM project_members
            WHERE org = ? AND list_contains(?, project) AND list_contains(roles, '{COORDINATOR}') GROUP BY project""",
        [org, list(projects)],
    )
    found: dict[str, list[str]] = dict(rows.fetchall())
    return {project: found.get(project, []) for project in projects}


def coordinated(cursor: duckdb.DuckDBPyConnection, org: str, members: Sequence[str]) -> list[str]:
    """The projects that any of these members coordinates, by name."""
    rows = cursor.execute(
        f"""SELECT DISTINCT project FROM project_members
            WHERE org = ? AND list_contains(?, member) AND list_contains(roles, '{COORDINATOR}') ORDER BY project""",
        [org, list(members)],
    )
    return [project for (project,) in rows.fetchall()]

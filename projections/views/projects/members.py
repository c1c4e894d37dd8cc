"""Roles of members in projects, as the gate asks for them: those before a batch, and what the batch changes."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb


class Members:
    """The members of the projects that a batch's events are about; each project is looked up when it is asked for."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._projects: dict[tuple[str, str], dict[str, Sequence[str]]] = {}

    def roles(self, org: str, project: str, member: str) -> Sequence[str]:
        """The roles of a member in a project."""
        return self._of(org, project).get(member, ())

    def assign(self, org: str, project: str, member: str, roles: Sequence[str]) -> None:
        """State the roles of a member anew."""
        self._of(org, project)[member] = roles

    def _of(self, org: str, project: str) -> dict[str, Sequence[str]]:
        key = (org, project)
        if key not in self._projects:
            rows = self._con.execute(
                "SELECT member, roles FROM project_members WHERE org = ? AND project = ?", list(key)
            ).fetchall()
            self._projects[key] = dict(rows)
        return self._projects[key]

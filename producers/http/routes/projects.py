"""The routes of projects: who has which role in them, as far as shared memory asks."""

from __future__ import annotations

from fastapi import APIRouter

from kledger.answers.projects import AssignedMember, ProjectMembers
from kledger.requests.projects import CoordinatorRequest, MemberRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import Fresh, From, ProjectId, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.projects import members as project_members


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("projects")

    @router.get("/api/projects/{project_id}/members", responses=documented(ProjectMembers, 400, 403))
    async def members(caller: Who, fresh: Fresh, project_id: ProjectId) -> Json:
        """The members of a project that have a role; for those of the project and the operator."""
        return ReadJson(await project_members.listed(desk, caller, project_id, freshness=fresh), fresh)

    @router.post("/api/projects/{project_id}/members", responses=documented(AssignedMember, 400, 403, 409))
    async def assign(caller: Who, lineage: From, retry: Retry, project_id: ProjectId, body: MemberRequest) -> Json:
        """State all roles of a user or an agent in a project; the operator and its coordinators do."""
        return Json(await project_members.assign(desk, caller, lineage, project_id, body, retry))

    @router.post("/api/projects/{project_id}/coordinators", responses=documented(AssignedMember, 400, 403, 409))
    async def appoint(
        caller: Who, lineage: From, retry: Retry, project_id: ProjectId, body: CoordinatorRequest
    ) -> Json:
        """Make a user or an agent a coordinator of a project, beside the roles that it has."""
        return Json(await project_members.appoint(desk, caller, lineage, project_id, body.entity, retry))

    return [router]

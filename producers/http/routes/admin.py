"""The routes of the node's operator, and its health."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request

from kledger.answers.admin import (
    Attach,
    Certificates,
    Health,
    Job,
    Jobs,
    Live,
    NodeStatus,
    Proof,
    Ready,
    Relations,
    Table,
    WhoAmI,
)
from kledger.answers.models import ModelsOfNode
from kledger.requests.admin import (
    BackupRequest,
    ForgetRequest,
    ProveRequest,
    ReplayRequest,
    SqlRequest,
    VerifyRequest,
)
from producers.http.answers import Json, ReadJson, documented, shape
from producers.http.identity import who
from producers.http.parameters import Fresh, Who, moment_or_position
from producers.http.routing import router as new_router
from producers.operations.admin import jobs as admin
from producers.operations.admin import tiers
from producers.operations.desk import Desk


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_admin(desk), _health(desk), _who()]


def _who() -> APIRouter:
    router = new_router("admin")

    @router.get("/api/whoami", responses=documented(WhoAmI, 403))
    async def whoami(request: Request) -> Json:
        """As whom the node takes the caller, by the token and the headers of the request."""
        return Json(await who(request))

    return router


def _admin(desk: Desk) -> APIRouter:
    router = new_router("admin", "/api/admin")

    @router.get("/status", responses=documented(NodeStatus, 403))
    async def status(caller: Who) -> Json:
        """How the node stands: head, positions, lag, refused events, versions."""
        return Json(await admin.status(desk, caller))

    @router.post("/rebuild", status_code=202, responses=documented(Job, 403, status=202))
    async def rebuild(caller: Who) -> Json:
        """Fold the log again beside the live view, and swap."""
        return Json(await admin.start(desk, caller, "rebuild"), 202)

    @router.post("/verify", status_code=202, responses=documented(Job, 400, 403, status=202))
    async def verify(caller: Who, body: VerifyRequest | None = None) -> Json:
        """Fold the log from zero and compare with the live view."""
        return Json(await admin.start(desk, caller, "verify", from_log=bool(body and body.from_log)), 202)

    @router.post("/snapshot", status_code=202, responses=documented(Job, 403, status=202))
    async def snapshot(caller: Who) -> Json:
        """Publish a frozen copy of the live view."""
        return Json(await admin.start(desk, caller, "snapshot"), 202)

    @router.post("/replay", status_code=202, responses=documented(Job, 400, 403, status=202))
    async def replay(caller: Who, body: ReplayRequest) -> Json:
        """Fold the log up to a position or a moment into a new file of the node's machine."""
        to: int | datetime | None
        to = moment_or_position(body.to, "to") if isinstance(body.to, str) else body.to
        return Json(await admin.start(desk, caller, "replay", to=to, into=body.into), 202)

    @router.post("/backup", status_code=202, responses=documented(Job, 400, 403, status=202))
    async def backup(caller: Who, body: BackupRequest) -> Json:
        """Add what is new in the log to the backup in a directory of the node's machine, or at `s3://BUCKET/PREFIX`."""
        return Json(await admin.start(desk, caller, "backup", into=body.into, columns=body.columns), 202)

    @router.post("/audit", status_code=202, responses=documented(Job, 403, status=202))
    async def audit(caller: Who) -> Json:
        """Read the log from its start and compare it with what was signed."""
        return Json(await admin.start(desk, caller, "audit"), 202)

    @router.post("/prove", responses=documented(Proof, 403, 404, 409, 503))
    async def prove(caller: Who, body: ProveRequest, fresh: Fresh) -> Json:
        """A proof for every event behind an item, to be checked without the log."""
        return Json(await admin.prove(desk, caller, body.id, fresh))

    @router.post("/forget", status_code=202, responses=documented(Job, 400, 403, 422, status=202))
    async def forget(caller: Who, body: ForgetRequest) -> Json:
        """Forget a person for good: destroy their key, and make anew what was made of their words."""
        return Json(await admin.start(desk, caller, "forget", subject=body.subject), 202)

    @router.get("/jobs", responses=documented(Jobs, 403))
    async def jobs(caller: Who) -> Json:
        """The jobs of this node since its start, newest first."""
        return Json(await admin.jobs(desk, caller))

    @router.get("/certificates", responses=documented(Certificates, 403))
    async def certificates(caller: Who) -> Json:
        """The last signed checkpoints and certificates that the node keeps."""
        return Json(await admin.certificates(desk, caller))

    @router.get("/columns", responses=documented(Relations, 403))
    async def columns(caller: Who) -> Json:
        """What a statement of SQL can name: the documented tables and views with their columns."""
        return Json(await admin.columns(desk, caller))

    @router.get("/jobs/{job_id}", responses=documented(Job, 403, 404))
    async def job(caller: Who, job_id: str) -> Json:
        """How far a job is."""
        return Json(await admin.job(desk, caller, job_id))

    @router.post("/sql", responses=documented(Table, 400, 403, 503))
    async def sql(caller: Who, body: SqlRequest, fresh: Fresh) -> Json:
        """The rows of one SELECT over the live view."""
        return ReadJson(await admin.sql(desk, caller, body.query, fresh), fresh)

    @router.get("/models", responses=documented(ModelsOfNode, 403))
    async def models(caller: Who) -> Json:
        """Which model is set for which work, never with its key, and what works without it; none is called."""
        return Json(await tiers.models(desk, caller))

    @router.post("/models/try", responses=documented(ModelsOfNode, 403))
    async def try_models(caller: Who) -> Json:
        """Which model is set for which work, after one call of each, with its time or error; calls may be billed."""
        return Json(await tiers.models(desk, caller, call=True))

    @router.get("/attach", responses=documented(Attach, 403))
    async def attach(caller: Who) -> Json:
        """How to attach the live view from any DuckDB."""
        return Json(await admin.attach(desk, caller))

    return router


def _health(desk: Desk) -> APIRouter:
    router = new_router("health", route_class=APIRoute)

    @router.get("/health", responses=documented(Health) | {503: {"content": shape(Health)}})
    async def health() -> Json:
        """200 when the node does its work, else 503 with the reasons."""
        found = await desk.admin.health()
        status = "healthy" if found.healthy else "unhealthy"
        return Json({"status": status, "reasons": found.reasons}, 200 if found.healthy else 503)

    @router.get("/health/ready", responses=documented(Ready) | {503: {"content": shape(Ready)}})
    async def ready() -> Json:
        """200 when the node may be asked: ready, or degraded with the reasons; else 503 with what it waits for."""
        found = await desk.admin.health()
        if found.waits_for:
            return Json({"status": "not ready", "reasons": [*found.waits_for, *found.reasons]}, 503)
        return Json({"status": "ready" if found.healthy else "degraded", "reasons": found.reasons})

    @router.get("/health/live", responses=documented(Live))
    async def live() -> Json:
        """200 as long as the process answers."""
        return Json({"status": "live"})

    return router

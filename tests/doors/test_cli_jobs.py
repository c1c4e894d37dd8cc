"""`kledger jobs`: what an operator sees of the work of a node, running, done or failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.doors.test_cli_operating import kledger, said


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        monkeypatch.setenv("KLEDGER_URL", running.url)
        yield running


def job(number: int, state: str, **about: Any) -> dict[str, Any]:
    fields = {"done": 0, "total": 0, "rate": 0.0, "result": None, "error": None}
    return {"id": f"rebuild-{number}", "kind": "rebuild", "state": state, **fields, **about}


RUNNING = job(3, "running", done=1200, total=5000, rate=800.0)
FAILED = job(2, "failed", error={"code": "service_failed", "message": "the disk is full", "details": {}})
DONE = job(1, "done", done=5000, total=5000)


def test_every_job_is_told_with_how_far_it_is_and_what_it_failed_of(node: ScriptedNode) -> None:
    node.says("GET /api/admin/jobs", {"jobs": [RUNNING, FAILED, DONE]})
    ran = kledger("jobs")
    assert ran.exit_code == 0, ran.output
    for word in ("rebuild-3", "running", "1,200", "5,000", "the disk is full (service_failed)", "done", "3 jobs"):
        assert word in said(ran)
    assert said(ran).index("rebuild-3") < said(ran).index("rebuild-1")
    assert json.loads(kledger("jobs", "--json").stdout) == {"jobs": [RUNNING, FAILED, DONE]}


@pytest.mark.parametrize(("one", "ends"), [(RUNNING, 0), (FAILED, 1), (DONE, 0)])
def test_one_job_is_told_by_its_id_and_ends_with_1_where_it_failed(
    node: ScriptedNode, one: dict[str, Any], ends: int
) -> None:
    node.says(f"GET /api/admin/jobs/{one['id']}", one)
    ran = kledger("jobs", one["id"])
    assert (ran.exit_code, one["state"] in said(ran)) == (ends, True), ran.output
    assert json.loads(kledger("jobs", one["id"], "--json").stdout) == one


def test_a_job_that_nobody_knows_is_refused_with_the_words_of_the_node(node: ScriptedNode) -> None:
    node.refuses("GET /api/admin/jobs/rebuild-9", "unknown_reference", 404, "there is no job rebuild-9")
    ran = kledger("jobs", "rebuild-9")
    assert (ran.exit_code, "there is no job rebuild-9" in ran.stderr) == (1, True)

"""What do the operator's commands print, and when do they exit with 1?"""

from __future__ import annotations

import fcntl
import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode

STATUS: dict[str, Any] = {
    "healthy": True,
    "reasons": [],
    "stream": {"head": 1234, "time": "2026-03-05T12:00:00Z", "messages": 1234, "bytes": 99, "url": "nats://x:1"},
    "views": [
        {"name": "duckdb", "position": 1234, "lag_events": 0, "lag_seconds": 0.0},
        {"name": "vectors", "position": 1200, "lag_events": 34, "lag_seconds": 0.25},
    ],
    "refused": 2,
    "versions": {"product": "0.1.0", "duckdb": "1.5.5"},
    "uptime_seconds": 61.2,
    "quack": {},
}
REBUILT: dict[str, Any] = {
    "position": 1234,
    "events": 1234,
    "seconds": 0.5,
    "rate": 2468.0,
    "live": {"digest": "a1b2"},
    "rebuilt": {"digest": "a1b2"},
    "equal": True,
    "differences": [],
    "swapped": True,
}
VERIFIED: dict[str, Any] = {
    "equal": True,
    "position": 1234,
    "views": [{"view": "knowledge", "rows": 60, "live": "a1b2", "replayed": "a1b2", "equal": True}],
    "differences": [],
}


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def said(result: Result) -> str:
    return " ".join(result.stdout.split())


def runs(node: ScriptedNode, kind: str, result: dict[str, Any]) -> None:
    """The node does a job in three looks."""
    job = {"id": "j-1", "kind": kind, "total": 10, "rate": 5.0, "result": None, "error": None}
    node.says(f"POST /api/admin/{kind}", {**job, "state": "running", "done": 0, "total": 0}, 202)
    node.says("GET /api/admin/jobs/j-1", {**job, "state": "running", "done": 4})
    node.says("GET /api/admin/jobs/j-1", {**job, "state": "done", "done": 10, "result": result})


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_status_tells_what_wants_attention_and_ends_well(node: ScriptedNode, option: tuple[str, ...]) -> None:
    warning = "2 parked events wait for you (at 11, 12): kledger refused list"
    node.says("GET /api/admin/status", STATUS | {"warnings": [warning]})
    ran = kledger("status", *option)
    assert ran.exit_code == 0, ran.output
    assert warning in said(ran)
    assert ran.stderr == ""


def test_status_shows_head_views_lag_refused_and_versions(node: ScriptedNode) -> None:
    node.says("GET /api/admin/status", STATUS)
    ran = kledger("status")
    assert ran.exit_code == 0
    for part in ("healthy yes", "head 1,234", "duckdb 1,234 0 0.000", "vectors 1,200 34 0.250", "refused 2"):
        assert part in said(ran)
    assert "duckdb 1.5.5" in said(ran)


def test_status_of_a_node_that_is_not_healthy_says_why_and_exits_with_one(node: ScriptedNode) -> None:
    node.says("GET /api/admin/status", {**STATUS, "healthy": False, "reasons": ["the projector stands"]})
    ran = kledger("status")
    assert ran.exit_code == 1
    assert "healthy NO reason the projector stands" in said(ran)
    ran = kledger("status", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["healthy"]) == (1, False)


def work(name: str, model: str | None = None, **about: Any) -> dict[str, Any]:
    known = {"url": None, "trouble": None, "setting": f"KLEDGER_{name.upper()}", "without": f"no {name}", "tried": None}
    return {"work": name, "model": model, **known, **about}


def test_models_shows_what_is_set_whether_it_answers_and_what_works_without(node: ScriptedNode) -> None:
    found = [work("evolve", "big", tried={"seconds": 0.25, "error": None}), work("rerank")]
    node.says("POST /api/admin/models/try", {"models": found})
    ran = kledger("models")
    assert ran.exit_code == 0, ran.output
    assert "evolve big in 0.25 s KLEDGER_EVOLVE" in said(ran)
    assert "rerank none KLEDGER_RERANK" in said(ran)
    assert "rerank no rerank" in said(ran)
    assert "no evolve" not in said(ran)


def test_models_that_do_not_answer_are_named_and_exit_with_one(node: ScriptedNode) -> None:
    found = [work("evolve", "big", tried={"seconds": 0.25, "error": "big answered with status 401"})]
    node.says("POST /api/admin/models/try", {"models": found})
    ran = kledger("models")
    assert ran.exit_code == 1
    assert "big answered with status 401" in said(ran)
    node.says("POST /api/admin/models/try", {"models": found})
    ran = kledger("models", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (1, {"models": found})


def test_models_are_not_called_where_that_is_said(node: ScriptedNode) -> None:
    node.says("GET /api/admin/models", {"models": [work("evolve", "big")]})
    ran = kledger("models", "--no-try")
    assert ran.exit_code == 0
    assert "evolve big ? KLEDGER_EVOLVE" in said(ran)


def test_models_that_are_in_trouble_are_named_without_a_call(node: ScriptedNode) -> None:
    node.says("GET /api/admin/models", {"models": [work("rerank", "r", trouble="the reranker is late")]})
    ran = kledger("models", "--no-try")
    assert ran.exit_code == 1
    assert "the reranker is late" in said(ran)


def test_rebuild_waits_and_shows_equal_digests(node: ScriptedNode) -> None:
    runs(node, "rebuild", REBUILT)
    ran = kledger("rebuild")
    assert ran.exit_code == 0
    assert "digests equal" in said(ran)
    assert "live a1b2 rebuilt a1b2" in said(ran)
    assert "10 of 10" in ran.stderr
    assert node.asked[0].body == {}


def test_a_rebuild_that_differs_names_the_rows_and_exits_with_one(node: ScriptedNode) -> None:
    differences = [{"view": "knowledge", "key": "k-1", "what": "score 3 live, 4 rebuilt"}]
    told = {**REBUILT, "equal": False, "swapped": False, "rebuilt": {"digest": "ffff"}, "differences": differences}
    runs(node, "rebuild", told)
    ran = kledger("rebuild", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (1, told)
    runs(node, "rebuild", told)
    assert "knowledge k-1 score 3 live, 4 rebuilt" in said(kledger("rebuild"))


def test_verify_exits_with_one_when_a_view_differs(node: ScriptedNode) -> None:
    runs(node, "verify", VERIFIED)
    ran = kledger("verify")
    assert (ran.exit_code, "views equal" in said(ran)) == (0, True)


def test_verify_that_differs_exits_with_one(node: ScriptedNode) -> None:
    views = [{**VERIFIED["views"][0], "replayed": "ffff", "equal": False}]
    runs(node, "verify", {**VERIFIED, "equal": False, "views": views})
    ran = kledger("verify")
    assert ran.exit_code == 1
    assert "knowledge 60 a1b2 ffff DIFFERENT" in said(ran)


def test_verify_names_the_vectors_when_they_alone_differ(node: ScriptedNode) -> None:
    vectors = {"equal": False, "differences": ["the vectors hold 3 versions, the view 60"]}
    runs(node, "verify", {**VERIFIED, "equal": False, "vectors": vectors})
    ran = kledger("verify")
    assert ran.exit_code == 1
    assert "views equal vectors DIFFERENT found the vectors hold 3 versions, the view 60" in said(ran)
    found = json.loads(kledger("verify", "--json").stdout)["vectors"]
    assert found == vectors


def test_verify_says_that_the_vectors_are_equal_too(node: ScriptedNode) -> None:
    runs(node, "verify", {**VERIFIED, "vectors": {"equal": True, "differences": []}})
    assert "views equal vectors equal" in said(kledger("verify"))


def test_rebuild_says_what_became_of_vectors_that_differed(node: ScriptedNode) -> None:
    vectors = {"equal": False, "made_anew": True, "differences": ["k-1 is missing"]}
    runs(node, "rebuild", {**REBUILT, "vectors": vectors})
    ran = kledger("rebuild")
    assert (ran.exit_code, "vectors made anew found k-1 is missing" in said(ran)) == (0, True)


def test_replay_sends_an_absolute_file_and_the_moment(
    node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs(node, "replay", {"into": "x", "position": 5, "digest": "a1b2"})
    ran = kledger("replay", "--to", "5", "--into", "audit.duckdb")
    assert (ran.exit_code, "digest a1b2" in said(ran)) == (0, True)
    assert node.asked[0].body == {"to": 5, "into": str(tmp_path / "audit.duckdb")}


def test_replay_to_a_time_and_to_the_head(node: ScriptedNode) -> None:
    for stated, sent in (("2026-03-05T12:00:00Z", "2026-03-05T12:00:00Z"), (None, None)):
        runs(node, "replay", {"into": "x", "position": 5, "digest": "a1b2"})
        kledger("replay", "--into", "a.duckdb", *(["--to", stated] if stated else []))
        assert [asked for asked in node.asked if asked.method == "POST"][-1].body["to"] == sent


def test_snapshot_says_which_file(node: ScriptedNode) -> None:
    runs(node, "snapshot", {"file": "/data/view-5.duckdb", "position": 5, "bytes": 12345})
    assert "/data/view-5.duckdb" in said(kledger("snapshot"))


def test_a_path_that_a_job_names_is_one_line_on_any_screen(node: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = f"/{'a-long-name/' * 9}view-5"
    runs(node, "snapshot", {"file": path, "position": 5, "bytes": 12345})
    runs(node, "replay", {"into": path, "position": 5, "digest": "a1b2", "certificate": f"{path}.json"})
    for words in (["snapshot"], ["replay", "--into", "a.duckdb"]):
        lines = kledger(*words).stdout.splitlines()
        assert any(line.rstrip().endswith(path) for line in lines), lines


def test_a_job_that_fails_exits_with_one_and_its_error(node: ScriptedNode) -> None:
    job = {"id": "j-1", "kind": "verify", "total": 0, "rate": 0.0, "result": None, "done": 0}
    failure = {"code": "log_gap", "message": "positions 4 to 6 are missing", "details": {}}
    node.says("POST /api/admin/verify", {**job, "state": "running", "error": None}, 202)
    node.says("GET /api/admin/jobs/j-1", {**job, "state": "failed", "error": failure})
    ran = kledger("verify")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "positions 4 to 6 are missing (log_gap)" in ran.stderr


def test_sql_shows_the_rows_and_their_position(node: ScriptedNode) -> None:
    table = {"columns": ["owner", "n"], "types": ["VARCHAR", "BIGINT"], "rows": [["团队:网", 3], [None, 1]]}
    node.says("POST /api/admin/sql", {**table, "truncated": False, "position": 9})
    ran = kledger("sql", "SELECT 1")
    assert ran.exit_code == 0
    for part in ("owner n", "团队:网 3", "NULL 1", "2 rows, as of position 9"):
        assert part in said(ran)
    assert node.asked[0].body == {"query": "SELECT 1"}


@pytest.mark.parametrize("columns", ["80", "120"])
def test_rows_too_wide_for_the_screen_are_told_value_by_value(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    names = [f"column_{number:02}" for number in range(20)]
    rows = [[f"value {number} of the first row" for number in range(20)], [None] * 20]
    node.says(
        "POST /api/admin/sql",
        {"columns": names, "types": ["VARCHAR"] * 20, "rows": rows, "truncated": False, "position": 9},
    )
    ran = kledger("sql", "SELECT *")
    assert ran.exit_code == 0
    for part in ("row 1", "column_00 value 0 of the first row", "column_19 value 19 of the first row", "row 2"):
        assert part in said(ran)
    assert "column_19 NULL" in said(ran)
    assert "2 rows, as of position 9" in said(ran)


def test_a_query_that_is_refused_exits_with_one(node: ScriptedNode) -> None:
    node.refuses("POST /api/admin/sql", "illegal_query", 400, "one SELECT only")
    ran = kledger("sql", "DROP TABLE knowledge")
    assert (ran.exit_code, "illegal_query" in ran.stderr) == (1, True)


def test_sql_without_a_query_tells_how_to_attach(node: ScriptedNode) -> None:
    node.says("GET /api/admin/attach", {"statement": "ATTACH 'quack:localhost:1' AS ledger", "token": "t"})
    assert "ATTACH 'quack:localhost:1' AS ledger" in said(kledger("sql"))


def test_version_needs_no_node() -> None:
    ran = kledger("version", "--json", "--url", "http://127.0.0.1:9")
    assert (ran.exit_code, set(json.loads(ran.stdout))) == (0, {"product", "python"})


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ([], {}),
        (["--data", "here", "--http", "127.0.0.1:9"], {"data": Path("here"), "http": "127.0.0.1:9"}),
        (["--nats", "nats://a:1", "--qdrant", "http://b:2"], {"nats": "nats://a:1", "qdrant": "http://b:2"}),
        (["--quack", "9494"], {"quack": 9494}),
        (["--quack", "off"], {"quack": None}),
    ],
)
def test_up_runs_a_node_with_what_was_stated_and_exits_as_it_does(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], settings: dict[str, Any]
) -> None:
    ran_with: list[dict[str, Any]] = []

    def run(stated: dict[str, Any]) -> int:
        ran_with.append(stated)
        return 1

    monkeypatch.setitem(sys.modules, "producers.node.compose", SimpleNamespace(run=run))
    monkeypatch.setitem(sys.modules, "producers.node.start.foundation", SimpleNamespace(NodeSettings=dict))
    monkeypatch.setattr("producers.node.address.check_free", lambda *_: None)  # another node may run here
    assert kledger("up", *arguments).exit_code == 1
    assert ran_with == [settings]


def test_a_taken_port_and_directory_are_said_before_a_node_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "producers.node.compose", None)  # loading it raises
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = kledger("up", "--data", str(tmp_path / "new"), "--http", f"127.0.0.1:{port}")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"the node cannot listen on 127.0.0.1:{port} (Address already in use). Is another node" in ran.stderr
    assert "Choose another address with --http" in ran.stderr
    assert not (tmp_path / "new").exists()
    with (tmp_path / "node.lock").open("a+") as lock:
        lock.write("7\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = kledger("up", "--data", str(tmp_path), "--http", "127.0.0.1:0")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert (
        f"another node runs on {tmp_path} (process 7): stop it, or choose another directory with --data" in ran.stderr
    )

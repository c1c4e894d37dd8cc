"""The whole product as a person meets it: a real node, started by `kledger up`, and the commands beside it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner, Result

from kledger import LedgerClient
from producers.cli.main import app
from tests.journeys import running_node
from tests.journeys.running_node import ENVIRONMENT, KLEDGER, ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("producers.node.compose") is None, reason="this build has no node to run"
)


@dataclass(frozen=True)
class Node:
    """A running node, and the commands that talk to it."""

    url: str
    data: Path
    ready: str

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner(env={"KLEDGER_URL": self.url}).invoke(app, list(arguments), input=stdin)

    def ask(self, *arguments: str, stdin: str | None = None) -> Any:
        """What the command answers with --json; it has to exit with 0."""
        ran = self.run(*arguments, "--json", stdin=stdin)
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout)

    def head(self) -> int:
        return int(self.ask("status")["stream"]["head"])


@contextmanager
def running(data: Path) -> Iterator[Node]:
    """A node on `data`, as a person starts it, and the commands for it."""
    with running_node.running(data, cold=True) as started:
        yield Node(started.url, data, started.ready)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("journey") / "data") as started:
        yield started


def test_the_ready_line_names_the_address(node: Node) -> None:
    (address,) = re.findall(r"^kledger is ready: http://(127\.0\.0\.1:[1-9]\d*) ", node.ready)
    assert f" · page http://{address}/ui · " in node.ready
    with LedgerClient(f"http://{address}") as ledger:
        assert ledger.status()["healthy"]


def test_the_sample_is_imported_once_however_often_it_is_imported(node: Node) -> None:
    first = node.ask("import", "--sample")
    assert (first["refused"], first["saved"] + first["unchanged"]) == (0, 60)
    head = node.head()
    second = node.ask("import", "--sample")
    assert (second["saved"], second["unchanged"], node.head()) == (0, 60, head)


def test_what_was_saved_is_found_at_once_in_both_languages(node: Node) -> None:
    with LedgerClient(node.url) as ledger:
        mei = ledger.acting_as(user="mei").within(trace_id="trace-1", message_id="消息 1")
        for task in ("Water the office cactus every fortnight", "每两周给办公室的仙人掌浇水"):
            saved = mei.save(task, task, ["plan"], scopes=["public"])
            found = ledger.search(task, record=False)
            assert saved["id"] in [item["id"] for item in found["results"]]
            item = ledger.get(saved["id"])
            assert item["owner"] == "user:mei"
            edges = ledger.lineage("message:消息 1")["edges"]
            assert saved["id"] in [edge["entity_id"] for edge in edges]


def test_an_answer_as_of_a_moment_is_what_was_known_then(node: Node) -> None:
    fields = ("--types", "strategy", "--scopes", "public", "--user", "ana")
    saved = node.ask("save", "--id", "as-of", "--task", "Store bicycles", "--content", "In the cellar.", *fields)
    node.ask("revise", "as-of", "--content", "In the yard.", "--user", "ana", "--expected-version", "1")
    assert node.ask("show", "as-of")["content"] == "In the yard."
    assert node.ask("show", "as-of", "--as-of", str(saved["position"]))["content"] == "In the cellar."
    then = node.ask("search", "store bicycles", "--as-of", str(saved["position"]))
    assert {item["id"]: item["content"] for item in then["results"]}["as-of"] == "In the cellar."
    assert [version["version"] for version in node.ask("history", "as-of")["versions"]] == [1, 2]


def test_verdicts_keep_their_case_and_its_trace(node: Node) -> None:
    fields = ("--types", "tool", "--scopes", "public", "--user", "ana")
    node.ask("save", "--id", "rated", "--task", "Fold a map", "--content", "Twice, then in three.", *fields)
    node.ask("rate", "rated", "--helpful", "--outcome", "it fits", "--trace", "trace-map", "--agent", "scribe")
    node.ask("rate", "rated", "--harmful", "--reason", "it tore", "--user", "mei", "--score", "2")
    told = node.ask("show", "rated")["eval"]
    assert (told["score"], told["helpful"], told["harmful"]) == (2, 2, 1)
    assert [case["outcome"] for case in told["helpful_history"]] == ["it fits"]
    assert "rated" in [edge["entity_id"] for edge in node.ask("lineage", "trace:trace-map")["edges"]]


def test_a_retired_item_is_not_found_and_a_restored_one_is(node: Node) -> None:
    fields = ("--types", "tool", "--scopes", "public", "--user", "ana")
    node.ask("save", "--id", "retired", "--task", "Sharpen pencils", "--content", "With a knife.", *fields)
    node.ask("retire", "retired", "--reason", "we have none", "--user", "ana")
    assert "retired" not in [item["id"] for item in node.ask("search", "sharpen pencils")["results"]]
    assert node.ask("show", "retired")["status"] == "retired"
    node.ask("restore", "retired", "--user", "ana")
    assert "retired" in [item["id"] for item in node.ask("search", "sharpen pencils")["results"]]


def test_memories_begin_change_and_end(node: Node) -> None:
    mei = ("--user", "mei")
    node.ask("profile", "register", *mei)
    node.ask("profile", "patch", "user", '{"timezone": "Asia/Shanghai"}', *mei)
    assert node.ask("profile", "show", "user", *mei)["timezone"] == "Asia/Shanghai"
    node.ask("profile", "disable", "user", *mei)
    assert node.ask("profile", "show", "user", *mei) is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "no-such-item"), "unknown_knowledge"),
        (("show", "sample-mei-mornings", "--user", "jonas"), "unknown_knowledge"),
        (("revise", "sample-roll-back-first", "--content", "x", "--user", "jonas"), "not_owner"),
        (("save", "--task", "T", "--content", "C", "--types", "No Type"), "invalid_payload"),
        (("save", "--task", "T", "--content", "C", "--types", "tool", "--scope", "planet:mars"), "illegal_scope"),
        (("save", "--task", "T", "--content", "x" * 1_100_000, "--types", "tool"), "payload_too_large"),
        (("rate", "no-such-item", "--helpful"), "unknown_knowledge"),
        (("retire", "sample-roll-back-first", "--user", "jonas"), "not_owner"),
        (("restore", "sample-roll-back-first"), "illegal_state"),
        (("lineage", "trace:no-such-trace"), "unknown_reference"),
        (("list", "--as-of", "yesterday"), "invalid_payload"),
        (("sql", "DELETE FROM knowledge"), "illegal_query"),
        (("profile", "patch", "user", '{"no_such": 1}', "--user", "mei"), "invalid_payload"),
    ],
)
def test_what_is_wrong_is_refused_with_a_code_and_changes_nothing(
    node: Node, arguments: tuple[str, ...], code: str
) -> None:
    node.ask("import", "--sample")
    before = node.head()
    ran = node.run(*arguments, "--json")
    assert ran.exit_code == 1, ran.output
    assert json.loads(ran.stdout)["error"]["code"] == code
    assert node.head() == before


def test_an_import_says_of_each_bad_line_what_is_wrong_with_it(node: Node) -> None:
    good = {"id": "line-1", "task": "t", "content": "c", "types": ["tool"], "scopes": ["public"], "owner": "user:ana"}
    lines = [
        good,
        "{",
        {**good, "id": "line-3", "typs": ["tool"]},
        {**good, "content": "other"},
        {**good, "id": "line-5"},
    ]
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    ran = node.run("import", "-", "--json", stdin=text)
    told = json.loads(ran.stdout)
    assert ran.exit_code == 1
    assert told["saved"] == 2
    assert [(error["line"], error["code"]) for error in told["errors"]] == [
        (2, "bad_json"),
        (3, "invalid_payload"),
        (4, "knowledge_exists"),
    ]


def test_an_import_counts_what_waits_for_a_coordinator_once(node: Node) -> None:
    of = {"types": ["adr"], "scopes": ["project:twice"], "memory": {"layer": "semantic", "kind": "adr"}}
    proposal = {"id": "twice", "task": "One service", "content": "One service answers.", **of}
    text = "\n".join(json.dumps(each) for each in (proposal, proposal, {**proposal, "id": "other", "content": "Else."}))
    for kept in ((2, 1), (0, 3)):
        told = json.loads(node.run("import", "-", "--json", "--agent", "dev", stdin=text).stdout)
        assert ((told["saved"], told["unchanged"]), told["proposed"]) == (kept, 2)


def test_the_views_are_the_same_when_they_are_folded_again(node: Node) -> None:
    node.ask("import", "--sample")
    rebuilt = node.ask("rebuild")
    assert (rebuilt["equal"], rebuilt["swapped"], rebuilt["differences"]) == (True, True, [])
    assert rebuilt["live"]["digest"] == rebuilt["rebuilt"]["digest"]
    verified = node.ask("verify")
    assert (verified["equal"], verified["differences"]) == (True, [])
    status = node.ask("status")
    assert (status["healthy"], status["refused"]) == (True, 0)
    assert {view["name"]: view["lag_events"] for view in status["views"]}["duckdb"] == 0


def test_an_auditor_gets_the_state_of_any_moment_in_a_file(node: Node, tmp_path: Path) -> None:
    fields = ("--types", "tool", "--scopes", "public", "--user", "ana")
    saved = node.ask("save", "--id", "audited", "--task", "Audit", "--content", "before", *fields)
    node.ask("revise", "audited", "--content", "after", "--user", "ana")
    into = tmp_path / "audit.duckdb"
    told = node.ask("replay", "--to", str(saved["position"]), "--into", str(into))
    assert told["position"] == saved["position"]
    frozen = node.ask("snapshot")
    for file, content in ((into, "before"), (Path(frozen["file"]), "after")):
        with duckdb.connect(str(file), read_only=True) as found:
            rows = found.execute("SELECT content FROM knowledge WHERE id = 'audited'").fetchall()
        assert rows == [(content,)]


def test_analysts_ask_and_are_told_how_to_attach(node: Node) -> None:
    node.ask("import", "--sample")
    table = node.ask("sql", "SELECT count(*) AS n FROM knowledge WHERE id LIKE 'sample-%'")
    assert (table["columns"], table["rows"], table["truncated"]) == (["n"], [[60]], False)
    assert "ATTACH" in node.ask("sql")["statement"].upper()


def test_a_node_keeps_everything_over_a_restart_and_guards_its_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as first:
        first.ask("import", "--sample")
        second = subprocess.run(
            [*KLEDGER, "up", "--data", str(data), "--http", "127.0.0.1:0"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=ROOT,
            env=ENVIRONMENT,
        )
        assert second.returncode == 1
        assert re.search(r"another node runs on .* \(process \d+\)", second.stderr)
        head = first.head()
    with running(data) as again:
        assert again.head() == head
        assert again.ask("import", "--sample")["unchanged"] == 60
        assert again.ask("verify")["equal"] is True


def test_the_demonstration_keeps_every_promise() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "producers.cli.demo"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Every promise held" in ran.stdout


def test_places_of_the_node_s_machine_that_cannot_be_written_are_refused_and_left_as_they_are(
    node: Node, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept")
    for place in (tmp_path / "file" / "x", tmp_path / "missing" / "x", tmp_path / ("x" * 300), tmp_path / "file"):
        for words in (["replay", "--into", str(place)], ["backup", str(place)]):
            ran = node.run(*words)
            assert (ran.exit_code, str(place) in ran.stderr) == (1, True), ran.output
    beyond = node.run("replay", "--to", str(node.head() + 1000), "--into", str(tmp_path / "new.duckdb"))
    assert (beyond.exit_code, "beyond the head" in beyond.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"

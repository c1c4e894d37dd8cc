"""Knowledge as a tree of files, by the commands of a person, on a real node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from kledger import LedgerClient
from producers.cli.main import app
from tests.journeys.running_node import RunningNode, caught_up, head


def run(node: RunningNode, *arguments: str) -> Result:
    return CliRunner(env={"KLEDGER_URL": node.url}).invoke(app, list(arguments))


def test_a_person_takes_their_knowledge_out_as_files_edits_them_and_brings_them_back(
    shared_node: RunningNode, ledger: LedgerClient, tmp_path: Path
) -> None:
    wen = ledger.acting_as(user="Wen/1", agent="librarian")
    wen.save("编辑器", "喜欢深色主题", ["user_profile"], tags={"category": "preference"})
    kept = wen.save("整理书目", "先按作者, 再按年份", ["strategy"], owner="agent:librarian", scopes=["agent:librarian"])
    wen.retire(wen.save("旧方法", "卡片目录", ["plan"], scopes=["user:Wen/1"])["id"])
    wen.rate(kept["id"], "helpful", task="整理")
    caught_up(ledger)
    tree, who = tmp_path / "tree", ("--user", "Wen/1", "--agent", "librarian")
    ran = run(shared_node, "export-tree", str(tree), *who, "--json")
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert told["not_held"]["feedback_cases"] >= 1
    own = {name for name in told["files"] if not name.startswith("global/")}
    assert own >= {"agents/librarian/strategies.json", "users/%57en%2F1/preferences.json", "retired.json"}
    caught_up(ledger)
    before = head(ledger)
    again = run(shared_node, "import-tree", str(tree), *who, "--json")
    assert again.exit_code == 0, again.output
    brought = json.loads(again.stdout)
    assert (brought["saved"], brought["unchanged"]) == (0, told["items"])
    caught_up(ledger)
    assert head(ledger) == before, "importing again appends nothing"
    file = tree / "agents" / "librarian" / "strategies.json"
    entries: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps([*entries, {"task": "借书", "content": "先登记"}, {"task": "no content"}]))
    shown = run(shared_node, "import-tree", str(tree), *who)
    assert shown.exit_code == 1
    assert f"1 saved, {told['items']} unchanged, 1 refused" in shown.stdout
    assert "agents/librarian/strategies.json" in shown.stdout
    (found,) = [item for item in wen.list(limit=5)["results"] if item["task"] == "借书"]
    assert (found["owner"], found["types"]) == ("agent:librarian", ["strategy"])
    refused = run(shared_node, "export-tree", str(tmp_path), *who)
    assert (refused.exit_code, "is no export of before" in refused.stderr) == (1, True)

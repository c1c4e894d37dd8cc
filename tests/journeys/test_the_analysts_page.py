"""What the page for analysts says of a node: its queries, its table of messages, the comments that it promises."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from tests.house.project import ROOT, blocks
from tests.journeys.running_node import RunningNode, caught_up
from tests.journeys.test_analysts import answers

PAGE = ROOT / "docs" / "how-to" / "query-with-duckdb.md"
SHAPES = ROOT / "docs" / "how-to" / "rows-for-another-schema.md"
MESSAGES = re.findall(r"^\| `([^`|]+)` \| `([^`|]+)` \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)


def query_under(heading: str, page: Path = PAGE, number: int = 0) -> str:
    """The first SQL of a section, or a later one."""
    line = page.read_text().splitlines().index(f"## {heading}") + 1
    return [block.text for block in blocks(page) if block.language == "sql" and block.line > line][number]


def test_every_row_of_the_table_of_messages_is_what_an_analyst_gets(shared_node: RunningNode) -> None:
    assert len(MESSAGES) > 5
    told = answers(shared_node, [("client", statement) for statement, _ in MESSAGES])
    for (statement, message), answer in zip(MESSAGES, told, strict=True):
        assert message in str(answer.get("error")), f"{statement}: {answer}"


def test_an_analyst_is_told_what_each_relation_is_and_each_column_of_knowledge(shared_node: RunningNode) -> None:
    relations, columns = answers(
        shared_node,
        [
            ("server", "SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL"),
            ("server", "SELECT column_name FROM duckdb_columns() WHERE table_name = 'knowledge' AND comment IS NULL"),
        ],
    )
    assert (relations, columns) == ({"rows": []}, {"rows": []})


@pytest.mark.parametrize(
    ("heading", "expected"),
    [("Most helpful knowledge by domain", {"both", "helped", "turned"}), ("Knowledge that turned harmful", {"turned"})],
)
def test_queries_about_verdicts_count_those_that_somebody_gave(
    ledger: LedgerClient, heading: str, expected: set[str]
) -> None:
    ana, mark = ledger.acting_as(user="ana"), uuid.uuid4().hex
    given = {
        "silent": "",
        "both": "+-",
        "helped": "+",
        "harmed": "-",  # every item begins with a helpful count of 1: that is no verdict
        "turned": "+--",
    }
    for name, verdicts in given.items():
        item = f"{mark}-{name}"
        ana.save("Count what was said", f"{name}", ["tool"], id=item, scopes=["public"], tags={"domain": mark})
        for verdict in verdicts:
            ana.rate(item, "helpful" if verdict == "+" else "harmful", reason=f"{verdict} it is")
    caught_up(ledger)
    answer = ledger.sql(query_under(heading))
    column = answer["columns"].index("id")
    found = {str(row[column]).partition("-")[2] for row in answer["rows"] if str(row[column]).startswith(mark)}
    assert found == expected


OTHERS = {
    "Knowledge": "id type task tags scopes owner visibility content source eval created_at updated_at",
    "Memories of a user": "id owner_id memory_type content status created_at updated_at",
}
"""The columns of the tables that sources 000 and 003 draw, but for the vector."""


def test_the_tables_of_another_schema_are_queries_of_ours(ledger: LedgerClient) -> None:
    ana, name = ledger.acting_as(user="ana"), f"shape-{uuid.uuid4().hex}"
    ana.save(
        "煮鸡蛋", "五分钟。", ["plan", "tool"], id=name, scopes=["user:ana", "project:456"], tags={"domain": "kitchen"}
    )
    ana.rate(name, "harmful", task="早餐", reason="太软")
    ana.profiles.put("user", {"occupation": "厨师"})
    ana.remember("Reply briefly.", "semantic", kind="user_preference", scopes=["project:shapes"], id=f"{name}-shared")
    caught_up(ledger)
    rows: dict[Any, dict[str, Any]] = {}
    for heading, columns in OTHERS.items():
        answer = ledger.sql(query_under(heading, SHAPES))
        assert answer["columns"] == columns.split()
        rows |= {row[0]: dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]}
    item = rows[name]
    evaluated = json.loads(item["eval"])
    assert (item["type"], json.loads(item["scopes"])) == ("plan", ["user:ana", "project:456"])
    assert (evaluated["helpful"], evaluated["harmful"]) == (1, 1)
    assert [each["reason"] for each in evaluated["harmful_history"]] == ["太软"]
    assert evaluated["helpful_history"] == []
    (memory,) = [row for row in rows.values() if row.get("owner_id") == "ana" and row["memory_type"] == "user"]
    assert (memory["status"], json.loads(memory["content"])["occupation"]) == ("ACTIVE", "厨师")
    layered = "Memories with a layer, and those that a project shares"
    shared = ledger.sql(query_under(layered, SHAPES, 1))
    assert f"{name}-shared" in {row[0] for row in shared["rows"]}
    assert f"{name}-shared" not in {row[0] for row in ledger.sql(query_under(layered, SHAPES))["rows"]}, "a proposal"

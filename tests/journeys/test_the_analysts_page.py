"""What the page for analysts says of a node: its queries, its table of messages, the comments that it promises."""

from __future__ import annotations

import re
import uuid

import pytest

from kledger import LedgerClient
from tests.house.project import ROOT, blocks
from tests.journeys.running_node import RunningNode, caught_up
from tests.journeys.test_analysts import answers

PAGE = ROOT / "docs" / "how-to" / "query-with-duckdb.md"
MESSAGES = re.findall(r"^\| `([^`|]+)` \| `([^`|]+)` \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)


def query_under(heading: str) -> str:
    """The first SQL of a section."""
    line = PAGE.read_text().splitlines().index(f"## {heading}") + 1
    return next(block.text for block in blocks(PAGE) if block.language == "sql" and block.line > line)


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

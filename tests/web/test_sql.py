"""SQL on a page: the same guard as over the API, rows as a table, a chart and files, and nothing run by a link."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import httpx
import pyarrow.parquet as pq
import pytest

from kledger.contract.errors import LedgerError
from producers.web.figures.bars import bars
from producers.web.questions import QUESTIONS
from producers.web.sql_result import MOST_COLUMNS, MOST_ROWS
from producers.web.words import chinese
from tests.house.project import ROOT, blocks
from tests.journeys.running_node import RunningNode
from tests.web.visitor import Visitor, visitor, words

ROWS = "SELECT i, 'row ' || i AS named, i / 4 AS quarter, 1.25::DECIMAL(9, 2) AS price FROM range(3) r(i)"

FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
"""What a browser says of a link that was followed."""


@pytest.fixture
def operator(shared_node: RunningNode) -> Iterator[Visitor]:
    with visitor(shared_node.url) as person:
        person.get("/ui/sql")
        yield person


def run(person: Visitor, query: str, form: str = "table") -> httpx.Response:
    return person.post("/ui/sql", {"query": query, "as": form})


def test_a_link_shows_a_query_and_runs_nothing(operator: Visitor) -> None:
    answer = operator.get("/ui/sql", query="SELECT error('it ran')")
    assert answer.status_code == 200
    assert "SELECT error(&#39;it ran&#39;)" in answer.text
    assert "The rows" not in words(answer.text)


def test_the_rows_of_a_query_are_a_table_with_types_and_a_link_to_the_same_query(operator: Visitor) -> None:
    answer = run(operator, ROWS)
    assert answer.status_code == 200
    assert '<td class="number">0.25</td>' in answer.text
    assert "<td>row 2</td>" in answer.text
    said = words(answer.text)
    assert "named string quarter double price decimal128(9, 2)" in said
    assert "3 rows, as of position" in said
    address = str(answer.url)  # the rows have an address of their own
    assert address.endswith("&run=1")
    assert '<td class="number">0.25</td>' in operator.get(address).text


def test_a_link_of_another_site_runs_nothing(operator: Visitor) -> None:
    query = {"query": "SELECT error('it ran')", "run": "1"}
    for site, status in (("cross-site", 200), ("same-site", 200), ("same-origin", 400), ("none", 400)):
        answer = operator.http.get("/ui/sql", params=query, headers={"Sec-Fetch-Site": site, **FOLLOWED})
        assert answer.status_code == status
        assert ('role="alert"' in answer.text) is (status == 400)


def test_a_query_that_is_too_long_for_an_address_runs_all_the_same(operator: Visitor) -> None:
    for much in ("长" * 1_500, "x" * 5_000):
        answer = run(operator, f"SELECT 'yes' AS it_ran -- {much}")
        assert answer.url.path == "/ui/sql"
        assert "<td>yes</td>" in answer.text


def test_a_number_is_written_as_people_read_it_and_a_file_has_every_digit(operator: Visitor) -> None:
    query = "SELECT 2/3 AS a, 1234567.5::DOUBLE AS b, 0.00001::DOUBLE AS c, 0::DOUBLE AS d, 'nan'::DOUBLE AS e"
    page = run(operator, query).text
    assert re.findall(r'<td class="number">([^<]*)</td>', page)[:4] == ["0.6667", "1234567.5", "1e-05", "0"]
    assert "0.6666666666666666" in run(operator, query, "csv").text


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM events",
        "SELECT 1; SELECT 2",
        "SELECT nope FROM knowledge",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELEC",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "SELECT getenv('HOME')",
        "",
    ],
)
def test_what_the_api_refuses_the_page_refuses_in_the_same_words(
    operator: Visitor, shared_node: RunningNode, query: str
) -> None:
    with shared_node.client() as ledger, pytest.raises(LedgerError) as refused:
        ledger.sql(query)
    for form in ("table", "csv", "parquet"):
        answer = run(operator, query, form)
        assert answer.status_code == 400
        assert " ".join(refused.value.message.split()) in words(answer.text)
        assert 'id="sql-query"' in answer.text


def test_sql_is_for_nobody_who_is_not_the_operator_or_an_analyst(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="wilma") as wilma:
        for path in ("/ui/sql", "/ui/sql/columns", "/ui/sql/names.json"):
            assert wilma.get(path).status_code == 403
        wilma.get("/ui")
        answer = run(wilma, "SELECT 1")
        assert answer.status_code == 403
        assert "user:wilma" in words(answer.text)


def test_csv_and_parquet_hold_the_same_rows(operator: Visitor) -> None:
    text, packed = run(operator, ROWS, "csv"), run(operator, ROWS, "parquet")
    assert text.headers["Content-Disposition"] == 'attachment; filename="rows.csv"'
    assert packed.headers["Content-Disposition"] == 'attachment; filename="rows.parquet"'
    head, *lines = csv.reader(io.StringIO(text.text))
    table = pq.read_table(io.BytesIO(packed.content))
    assert table.column_names == head == ["i", "named", "quarter", "price"]
    assert [[str(value) for value in row.values()] for row in table.to_pylist()] == lines


def test_a_cell_that_a_spreadsheet_would_calculate_is_exact_in_the_file_and_the_page_says_so(operator: Visitor) -> None:
    query = "SELECT '=1+1' AS a, '@x' AS b, '-2' AS c, '+3' AS d"
    assert run(operator, query, "csv").text == "a,b,c,d\n=1+1,@x,-2,+3\n"
    assert "A spreadsheet may calculate a cell" in words(run(operator, query).text)


def test_hostile_values_are_text_in_the_table_the_heading_and_the_chart(operator: Visitor) -> None:
    hostile = "<script>alert(1)</script>\"'><img src=x>"
    quoted = hostile.replace("'", "''")
    answer = run(
        operator, f"SELECT '{quoted}' || i AS \"<b onclick=x>\", i, {{'k': '{quoted}'}} AS s FROM range(2) r(i)"
    )
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "<img src=x" not in answer.text
    assert "<b onclick" not in answer.text
    assert hostile in words(answer.text)
    assert 'class="bar"' in answer.text
    assert "<script>" not in str(bars(hostile, [(hostile, 1.0, hostile)]))


def test_large_results_are_shown_in_part_and_large_values_in_short(operator: Visitor) -> None:
    many = run(operator, f"SELECT i FROM range({MOST_ROWS + 100}) r(i)")
    assert many.text.count("<tr>") == MOST_ROWS + 1
    assert f"{MOST_ROWS + 100} rows" in words(many.text)
    assert f"the first {MOST_ROWS} rows and 1 columns are shown" in words(many.text)
    wide = run(operator, "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(MOST_COLUMNS + 5)))
    assert wide.text.count("<th ") == MOST_COLUMNS
    assert len(run(operator, "SELECT string_agg(i::VARCHAR, ' ') AS long FROM range(200000) r(i)").text) < 20_000


def test_the_first_numbers_beside_the_first_column_are_a_chart(operator: Visitor) -> None:
    answer = run(
        operator, "SELECT name, 'x' AS other, n FROM (VALUES ('up', 3), ('down', -1), ('none', NULL)) t(name, n)"
    )
    assert answer.text.count('class="bar"') == 2
    assert "<title>down: -1</title>" in answer.text
    for nothing_to_draw in (
        "SELECT 'a' AS a, 'b' AS b FROM range(2)",
        "SELECT 'a' AS a, 1 AS b",
        "SELECT NULL AS a, i FROM range(5) r(i)",
        "SELECT 'same' AS a, i FROM range(5) r(i)",
        "SELECT i::VARCHAR AS id, i, i, i, i, i, i FROM range(5) r(i)",
    ):
        assert 'class="bar"' not in run(operator, nothing_to_draw).text
    assert run(operator, "SELECT 'a' AS a, 'inf'::DOUBLE AS b").status_code == 200
    assert run(operator, "SELECT 1 AS a WHERE false").status_code == 200


def test_the_editor_completes_documented_views_and_columns_alone(operator: Visitor) -> None:
    names = operator.get("/ui/sql/names.json").json()
    reference = (ROOT / "docs" / "reference" / "views.md").read_text("utf-8")
    documented = set(re.findall(r"^## (\w+)$", reference, re.M))
    assert set(names) == documented
    assert {"id", "owner", "confidence"} <= set(names["knowledge"])
    page = words(operator.get("/ui/sql/columns").text)
    assert all(name in page for name in documented)


def test_the_questions_are_those_of_the_documentation_and_each_has_an_answer(operator: Visitor) -> None:
    page = ROOT / "docs" / "how-to" / "query-with-duckdb.md"
    documented = [block.text.strip() for block in blocks(page) if block.language == "sql"]
    assert [question.query for question in QUESTIONS] == documented
    assert {question.words for question in QUESTIONS} <= set(chinese())
    listed = operator.get("/ui/sql").text
    for question in QUESTIONS:
        assert run(operator, question.query).status_code == 200
        assert question.words.replace("'", "&#39;") in listed

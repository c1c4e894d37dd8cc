"""Whatever DuckDB can answer becomes plain values: moments beyond Python's calendar are their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from producers.operations.admin.table_files import FileForm, encoded
from projections.analysts.plain_rows import rows_of
from projections.analysts.told_rows import told_rows


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("'infinity'::TIMESTAMPTZ", "infinity"),
        ("'-infinity'::TIMESTAMPTZ", "-infinity"),
        ("'infinity'::TIMESTAMP", "infinity"),
        ("'infinity'::DATE", "infinity"),
        ("'-infinity'::DATE", "-infinity"),
        ("'0044-03-15 (BC)'::DATE", "-043-03-15"),
        ("'12000-01-01'::DATE", "12000-01-01"),
        ("'294246-01-01 00:00:00'::TIMESTAMP", "294246-01-01T00:00:00.000000"),
        ("'12000-01-01 00:00:00+00'::TIMESTAMPTZ", "12000-01-01T00:00:00.000000"),
        ("['infinity'::DATE, '2026-01-01'::DATE, NULL]", ["infinity", "2026-01-01", None]),
        ("{'a': ['infinity'::TIMESTAMP], 'b': 1}", {"a": ["infinity"], "b": 1}),
        ("MAP {'a': 'infinity'::DATE}", [["a", "infinity"]]),
    ],
)
def test_a_moment_beyond_the_calendar_is_told_as_text(said: str, value: Any) -> None:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    ((found, beside),) = rows_of(con.execute(f"SELECT {said} AS a, 7 AS a").to_arrow_table())
    plain = (
        [str(one) if one is not None and not isinstance(one, str) else one for one in found]
        if isinstance(found, list)
        else found
    )
    assert (plain if not said.startswith("MAP") else found) == value
    assert beside == 7


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("'nan'::DOUBLE", "nan"),
        ("'inf'::DOUBLE", "inf"),
        ("'-inf'::FLOAT", "-inf"),
        ("0.5::DOUBLE", 0.5),
        ("NULL::DOUBLE", None),
        ("'nan'::VARCHAR", "nan"),
        ("['nan'::DOUBLE, 1.5::DOUBLE, NULL]", ["nan", 1.5, None]),
        ("{'a': ['inf'::DOUBLE], 'b': {'c': '-inf'::DOUBLE}}", {"a": ["inf"], "b": {"c": "-inf"}}),
        ("MAP {'a': 'nan'::DOUBLE}", [["a", "nan"]]),
        ("[{'at': 'infinity'::DATE, 'as': 'inf'::DOUBLE}]", [{"at": "infinity", "as": "inf"}]),
    ],
)
def test_what_is_no_number_is_never_taken_for_null(said: str, value: Any) -> None:
    ((found, beside),) = told_rows(duckdb.connect().execute(f"SELECT {said} AS a, 7 AS b").to_arrow_table())
    assert (found, beside) == (value, 7)
    assert orjson.loads(orjson.dumps(found)) == value, "it is the same as JSON"


@pytest.mark.parametrize("form", FileForm)
def test_every_file_form_tells_null_apart_from_what_is_no_number_and_from_an_empty_text(
    form: FileForm, tmp_path: Path
) -> None:
    said = "SELECT * FROM (VALUES ('nan'::DOUBLE, ''), ('inf', 'a \"b\"'), ('-inf', 'c,d'), (NULL, NULL), (0.5, 'e'))"
    arrow = duckdb.connect().execute(f"SELECT * FROM ({said} AS t(x, y))").to_arrow_table()
    kinds = [str(field.type) for field in arrow.schema]
    result: Any = {"columns": arrow.column_names, "types": kinds, "rows": told_rows(arrow)}
    file = tmp_path / f"rows.{form.value}"
    file.write_bytes(encoded(result, form))
    if form is FileForm.JSON:
        found = [tuple(row) for row in orjson.loads(file.read_bytes())["rows"]]
        assert found == [("nan", ""), ("inf", 'a "b"'), ("-inf", "c,d"), (None, None), (0.5, "e")]
        return
    read = f"read_csv('{file}', allow_quoted_nulls = false)" if form is FileForm.CSV else f"'{file}'"
    back = duckdb.connect().execute(f"SELECT x::DOUBLE::VARCHAR, y FROM {read}").fetchall()
    assert back == [("nan", ""), ("inf", 'a "b"'), ("-inf", "c,d"), (None, None), ("0.5", "e")]


def test_an_answer_without_rows_has_none() -> None:
    assert rows_of(duckdb.connect().execute("SELECT 1 WHERE false").to_arrow_table()) == []

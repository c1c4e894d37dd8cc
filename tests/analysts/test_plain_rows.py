"""Whatever DuckDB can answer becomes plain values: moments beyond Python's calendar are their text."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from projections.fold_kit.plain_rows import rows_of


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


def test_an_answer_without_rows_has_none() -> None:
    assert rows_of(duckdb.connect().execute("SELECT 1 WHERE false").to_arrow_table()) == []

"""The parser of bodies answers alike over few rows and over many, and keeps none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

from projections.fold_kit import parser as parsers
from projections.fold_kit.parser import Parser

QUERY = "SELECT position, upper(body) AS said FROM raw WHERE position > 1"


@pytest.fixture
def parser() -> Iterator[Parser]:
    with closing(Parser()) as parser:
        yield parser


def rows(count: int, said: str = "a\0b 王") -> pa.Table:
    return pa.table(
        {"position": pa.array(range(count), pa.int64()), "body": pa.array([said] * count, pa.large_string())}
    )


def answered(parser: Parser, relation: pa.Table) -> pa.Table:
    with parser.over("raw", relation) as select:
        return select(QUERY)


FEW, MANY, LONG = rows(3), rows(parsers._FEW_ROWS + 1), rows(3, "x" * parsers._FEW_BYTES)


def test_whatever_came_before_a_query_answers_of_the_relation_at_hand(parser: Parser) -> None:
    # first one of which nothing is asked for: a plan that knew of it no more than that would leave out what comes
    for relation in (rows(1), FEW, MANY, FEW, LONG, FEW.slice(0, 0), MANY, FEW):
        read = answered(parser, relation)
        assert read["position"].to_pylist() == [at for at in relation["position"].to_pylist() if at > 1]
        assert set(read["said"].to_pylist()) == {said.upper() for said in relation["body"].to_pylist()[2:]}
        with parser._over({"raw": relation}):
            assert read.equals(parser.con.execute(QUERY).to_arrow_table())


def test_a_query_over_few_rows_is_planned_once(parser: Parser) -> None:
    for count in (2, 3, 4):
        answered(parser, rows(count))
    ((statements,),) = parser.con.execute("SELECT count(*) FROM duckdb_prepared_statements()").fetchall()
    assert statements == 1


@pytest.mark.parametrize("relation", [FEW, MANY, LONG], ids=["few", "many", "long"])
def test_nothing_that_was_read_stays_also_where_a_query_failed(parser: Parser, relation: pa.Table) -> None:
    with pytest.raises(duckdb.ConversionException), parser.over("raw", relation) as select:
        select("SELECT body::INTEGER FROM raw")
    tables = parser.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert [parser.con.execute(f"SELECT count(*) FROM {table}").fetchall() for (table,) in tables] == [
        [(0,)] for _ in tables
    ]
    assert parser.con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []
    assert answered(parser, FEW).num_rows == 1


def test_what_an_earlier_block_could_not_remove_is_not_read(parser: Parser) -> None:
    answered(parser, FEW)
    parser.con.execute("INSERT INTO raw VALUES (7, 'of another batch')")
    parser._left["raw"] = True  # as where there was no memory to remove it
    assert answered(parser, FEW)["position"].to_pylist() == [2]

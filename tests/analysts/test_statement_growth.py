"""What may multiply within one step of DuckDB is refused, as far as the text of a statement says; the rest is not."""

from __future__ import annotations

import duckdb
import pytest

from projections.analysts.statement_growth import GROWING, WITH_LAMBDA, lengthening_of
from projections.analysts.statement_guard import StatementGuard, build_guard

GUARD: StatementGuard = build_guard(duckdb.connect())

LARGE = "would make a value of more than"
REFUSED = {
    "ranges in a lambda": (
        "SELECT len(flatten(list_transform(range(20000), x -> range(5000))))",
        "range() within the lambda",
    ),
    "the other arrow": ("SELECT list_transform(l, lambda x: generate_series(1, x)) FROM t", "generate_series() within"),
    "a comprehension": ("SELECT [range(x) FOR x IN l] FROM t", "range() within the lambda"),
    "repeat in a filter": ("SELECT list_filter(l, x -> repeat(x, 99) = 'a') FROM t", "repeat() within the lambda"),
    "list_resize": ("SELECT apply(l, x -> list_resize([x], 9)) FROM t", "list_resize() within the lambda"),
    "lambda in lambda": ("SELECT list_transform(l, x -> list_transform(l, y -> x + y)) FROM t", "a lambda within"),
    "a comprehension in one": ("SELECT [[x + y FOR x IN a] FOR y IN b] FROM t", "a lambda within"),
    "a list from outside": ("SELECT flatten(list_transform(l, x -> l)) FROM (SELECT list(i) AS l FROM t)", "outside"),
    "a text from outside": ("SELECT list_transform(l, x -> x || s) FROM t", "'s' from outside"),
    "a table's column": ("SELECT list_transform(t.l, x -> t.s) FROM t", "'t' from outside"),
    "doubling in a reduce": ("SELECT list_reduce(range(60), (a, b) -> a || a)", "more than once"),
    "replacing in a reduce": ("SELECT list_reduce(l, (a, b) -> replace(a, 'x', 'xx')) FROM t", "replace() within"),
    "doubling by nesting": (
        "SELECT " + "flatten(list_transform(" * 24 + "[1]" + ", x -> [x, x]))" * 24,
        LARGE,
    ),
    "large in large": ("SELECT replace(repeat('x', 40000), 'x', repeat('y', 40000))", LARGE),
    "a long replacement": (f"SELECT replace(repeat('x', 90000), 'x', '{'y' * 90}')", LARGE),
    "a replacement from a column": ("SELECT replace(s, 'x', s) FROM t", "written in the statement"),
    "from a subquery": (
        "SELECT regexp_replace(s, 'x', (SELECT max(s) FROM t), 'g') FROM t",
        "written in the statement",
    ),
    "a long replacement by a pattern": (f"SELECT regexp_replace(repeat('x', 9000), '.', '{'y' * 900}', 'g')", LARGE),
    "replacements nested": ("SELECT " + "replace(" * 20 + "s" + ", 'x', 'xx')" * 20 + " FROM t", LARGE),
    "a format in pieces": ("SELECT printf('%' || '1000000000' || 'd', 1)", "written in the statement"),
    "a format from a subquery": ("SELECT format('{:>' || (SELECT '1000000000') || '}', s) FROM t", "written in the"),
    "a format from a column": ("SELECT printf(s, 1) FROM t", "written in the statement"),
    "a separator": ("SELECT array_to_string(range(90000), repeat('x', 90000))", LARGE),
    "a comparison of long texts": ("SELECT levenshtein(repeat('x', 90000), repeat('y', 90000))", LARGE),
    "a list of texts": ("SELECT list_transform(range(90000), x -> x) , repeat(repeat('x', 9000), 9000)", LARGE),
    "bits of bits": ("SELECT " + "bin(" * 7 + "s" + ")" * 7 + " FROM t", LARGE),
    "bits of bits by casts": ("SELECT " + "(" * 7 + "s" + "::BLOB::BIT::VARCHAR)" * 7 + " FROM t", LARGE),
    "digits of digits": ("SELECT " + "hex(" * 21 + "s" + ")" * 21 + " FROM t", LARGE),
    "what is escaped again": ("SELECT " + "regexp_escape(" * 21 + "s" + ")" * 21 + " FROM t", LARGE),
    "JSON in texts of JSON": ("SELECT " + "to_json(" * 11 + "s" + ")::VARCHAR" * 11 + " FROM t", LARGE),
    "lists in texts of lists": ("SELECT " + "[" * 21 + "s" + "]::VARCHAR" * 21 + " FROM t", LARGE),
    "one argument at many places": ("SELECT " + "format('{0}{0}{0}{0}', " * 11 + "s" + ")" * 11 + " FROM t", LARGE),
    "bits repeated": ("SELECT repeat(bin(bin(bin(bin(s)))), 1000) FROM t", LARGE),
    "unnested": ("SELECT unnest(range(2000000))", LARGE),
    "unnested in FROM": ("SELECT count(*) FROM unnest(range(2000000))", LARGE),
    "a number as a float": ("SELECT repeat('x', 2e9::BIGINT)", LARGE),
    "a number as a text": ("SELECT repeat('x', '2000000000'::BIGINT)", LARGE),
}
ADMITTED = [
    "SELECT count(*) FROM range(100000000)",
    "SELECT i, j FROM range(1000) a(i), generate_series(1, 100000) b(j)",
    "SELECT id, u.x FROM t, unnest(t.types) AS u(x)",
    "SELECT unnest(types), unnest(range(24)) FROM t",
    "SELECT list_transform(types, x -> upper(x)), list_filter(types, x -> x <> task), list_sort(types) FROM t",
    "SELECT list_filter(a, x -> list_contains(b, x)), list_reduce(l, (a, b) -> a + b) FROM t",
    "SELECT list_transform(acl, lambda x: x.entity), [x * 2 FOR x IN l], [x FOR x IN l IF x > 1] FROM t",
    "SELECT array_to_string(list_transform(types, x -> '[' || x || ']'), ', ') FROM t",
    "SELECT list_transform(types, x -> replace(x, '_', ' ')) FROM t",
    "SELECT list_transform(split(s, ','), x -> trim(x)), tags->'$.a', list_filter(tags->'$.l[*]', x -> x = '1') FROM t",
    "SELECT replace(replace(replace(s, '&', '&amp;'), '<', '&lt;'), chr(10), '<br>'), replace(s, a, chr(32)) FROM t",
    "SELECT regexp_replace(content, '\\s+', ' ', 'g'), regexp_extract_all(content, '[0-9]+') FROM t",
    "SELECT lpad(a, 20) || lpad(b, 20) || lpad(c, 20) || lpad(d, 20) || lpad(e, 20) FROM t",
    "SELECT bar(n, 0, 1000, 50), bar(m, 0, 1000, 50), repeat('#', n::INT) FROM t",
    "SELECT levenshtein(a, b), jaro_winkler_similarity(a, b), list_zip(l, range(100)) FROM t",
    "SELECT hex(md5(content)), url_encode(task), to_json({'a': types, 'b': {'c': [task]}})::VARCHAR, bin(n) FROM t",
    "SELECT format('{} {} {:>10}', a, b, c), printf('%s %05d', a, n), a LIKE '%50%100%' FROM t",
    "SELECT flatten(list(types)), histogram(x), list(id ORDER BY id)[1:10] FROM t",
]


@pytest.mark.parametrize(("statement", "part"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_may_multiply_within_one_step_is_refused_with_the_reason(statement: str, part: str) -> None:
    reason = GUARD.refusal(statement)
    assert reason is not None
    assert part in reason


@pytest.mark.parametrize("statement", ADMITTED)
def test_ordinary_work_with_lists_and_texts_is_admitted(statement: str) -> None:
    assert GUARD.refusal(statement) is None


def test_each_function_of_this_duckdb_that_takes_a_lambda_is_known() -> None:
    found = duckdb.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() "
        "WHERE list_contains(parameter_types::VARCHAR[], 'LAMBDA')"
    ).fetchall()
    assert {name for (name,) in found} == WITH_LAMBDA


TEXTS = [letter * 64 for letter in "a漢é\"'\\%.{ ß\ufdfa1"]


def longest(connection: duckdb.DuckDBPyConnection, call: str) -> float:
    """How many times as long one of the texts becomes by a call of it as `t`; 0 where it takes no text."""
    try:
        rows = connection.execute(f"SELECT t, TRY({call}) FROM (SELECT unnest($1) AS t)", [TEXTS]).fetchall()
    except (duckdb.Error, UnicodeError, ValueError):
        return 0.0
    made = [(value.encode() if isinstance(value, str) else value, text.encode()) for text, value in rows]
    return max(((len(value) - 32) / len(text) for value, text in made if isinstance(value, bytes)), default=0.0)


def test_each_function_that_is_admitted_and_makes_a_text_longer_is_counted() -> None:
    connection = duckdb.connect()
    found = connection.execute(
        "SELECT DISTINCT lower(function_name), parameter_types[2]::VARCHAR FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'macro') AND coalesce(len(parameter_types), 0) < 3 "
        "AND coalesce(parameter_types[1], 'ANY') IN ('VARCHAR', 'BLOB', 'JSON', 'ANY', 'T')"
    ).fetchall()
    missing = {}
    for name, second in found:
        if name in GUARD.functions and name not in GROWING:
            others = {None: "", "BIGINT": ", 1"}.get(second, ", 'a'")
            times = longest(connection, f'"{name}"(t{others})')
            if times > max(1.2, lengthening_of({"class": "FUNCTION", "function_name": name})):
                missing[name] = times
    assert missing == {}

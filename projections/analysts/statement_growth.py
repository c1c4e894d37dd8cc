"""Static check of a statement: whether it could make one value grow without limit, judged by its text alone.

DuckDB checks for an interrupt only between two steps, and one step makes whole values of up to 2,048 rows. So the
growth of a value is bounded: the literal numbers in functions that make values of that size, the ratio of a
replacement, what a function or a cast makes of each character (eight of `bin`), and the lists and lambdas around them
are multiplied along their nesting. A lambda runs within one step for each element of a list, so it may contain no
second lambda and nothing that grows by a number; one that makes values may use its own parameters only, and one that
reduces a list may use its accumulator once. Values of a column or a subquery are of unknown size and are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

LARGEST = 1_000_000
"""The largest growth in characters or elements, by the text of the statement."""

GROWING = frozenset(
    (
        *("repeat", "lpad", "rpad", "list_resize", "array_resize", "range", "generate_series", "bitstring", "bar"),
        *("printf", "format"),
    )
)
_FORMATTING = frozenset(("printf", "format"))
_REPLACING = frozenset(("replace", "regexp_replace"))
_REDUCING = frozenset(("list_reduce", "array_reduce", "reduce"))
_FILTERING = frozenset(("list_filter", "array_filter", "filter"))
WITH_LAMBDA = (
    frozenset(("list_transform", "array_transform", "list_apply", "array_apply", "apply")) | _REDUCING | _FILTERING
)
# They take as long as the product of two lengths.
_COMPARING = frozenset(
    ("levenshtein", "editdist3", "damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity", "jaccard")
)
LENGTHENING = {
    **dict.fromkeys(("bin", "to_binary"), 8),
    **dict.fromkeys(("hex", "to_hex", "regexp_escape", "to_base64", "base64", "upper", "ucase"), 2),
    **dict.fromkeys(("url_encode", "parse_path", "parse_dirpath"), 3),
    **dict.fromkeys(("to_json", "json_quote", "json_array", "json_object", "row_to_json", "array_to_json"), 2),
    **dict.fromkeys(("json_serialize_sql", "variant_to_parquet_variant"), 5),
    **dict.fromkeys(("json_group_array", "json_group_object", "json_group_structure"), 2),
    **dict.fromkeys(("string_split", "str_split", "split", "string_to_array", "regexp_extract_all"), 6),
    **dict.fromkeys(("string_split_regex", "str_split_regex", "regexp_split_to_array"), 6),
    **dict.fromkeys(("icu_sort_key", "cast_to_type"), 32),
}
"""How many times as long as its argument what a function answers may be, in characters."""
_COLLATING, _COLLATED = "icu_collate_", 32
_LENGTHENED_BY_CAST = {"BIT": 8, "VARCHAR": 2}
"""How many times as long as its argument a cast may be: each byte is eight bits, and a quote in the text
of a list is two characters."""
_MULTIPLYING = _REPLACING | WITH_LAMBDA | _COMPARING | {"array_to_string"}

_WIDTH = re.compile(r"[0-9]{1,18}")
_UNNEST = "unnest the list instead (SELECT ... FROM t, unnest(t.list) AS u(x))"


def growth_refusal(tree: dict[str, Any]) -> str | None:
    """Why a statement may make a value that is too large, or None."""
    nodes = list(nodes_of(tree))
    for node in nodes:
        name = function_of(node)
        reason = None
        if name in WITH_LAMBDA:
            reason = _lambda_refusal(name, node)
        elif name in _REPLACING:
            reason = _replacement_refusal(name, node)
        elif name in _FORMATTING:
            reason = _format_refusal(name, node)
        if reason is not None:
            return reason
    return _size_refusal(nodes)


def nodes_of(tree: object) -> Iterator[dict[str, Any]]:
    """Every object of the tree, parents before children, without recursion: depth is the caller's choice."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def function_of(node: dict[str, Any]) -> str:
    """The function that a node calls, in lower case; empty for another node."""
    name = node.get("function_name")
    return name.lower() if isinstance(name, str) else ""


def _arguments(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [child for child in call.get("children") or [] if isinstance(child, dict)]


def _lambdas(call: dict[str, Any]) -> list[tuple[list[str], object]]:
    """Names of the parameters, and the body. A first argument with an arrow reads JSON."""
    return [
        (_columns(argument.get("lhs")), argument.get("expr"))
        for argument in _arguments(call)[1:]
        if argument.get("class") == "LAMBDA"
    ]


def _columns(tree: object) -> list[str]:
    """The first part of each column name, once for each use, in the order of a row."""
    names = [
        str(node["column_names"][0]).lower()
        for node in nodes_of(tree)
        if node.get("class") == "COLUMN_REF" and node.get("column_names")
    ]
    return names[::-1]


def _lambda_refusal(name: str, call: dict[str, Any]) -> str | None:
    for parameters, body in _lambdas(call):
        called = {function_of(node) for node in nodes_of(body)}
        if called & WITH_LAMBDA:
            return f"a lambda within the lambda of {name}() is not admitted: {_UNNEST}"
        grows = called & (GROWING | _REPLACING if name in _REDUCING else GROWING)
        if grows:
            return f"{min(grows)}() within the lambda of {name}() is not admitted: {_UNNEST}"
        used = _columns(body)
        if name not in _FILTERING and (outside := set(used) - set(parameters)):
            return f"the lambda of {name}() reads {min(outside)!r} from outside of it, which is not admitted: {_UNNEST}"
        if name in _REDUCING and parameters and used.count(parameters[0]) > 1:
            return f"the lambda of {name}() uses {parameters[0]!r}, what it has so far, more than once"
    return None


def _replacement_refusal(name: str, call: dict[str, Any]) -> str | None:
    for node in nodes_of(_arguments(call)[2:3]):
        if node.get("class") in {"COLUMN_REF", "SUBQUERY", "STAR"}:
            return f"the replacement of {name}() has to be written in the statement"
    return None


def _format_refusal(name: str, call: dict[str, Any]) -> str | None:
    """The widths in a format that is put together are nowhere in the statement."""
    if all(argument.get("class") == "CONSTANT" for argument in _arguments(call)[:1]):
        return None
    return f"the format of {name}() has to be written in the statement, as one text"


def _size_refusal(nodes: list[dict[str, Any]]) -> str | None:
    """Sizes from the leaves to the root. `number` is the product of all that is written below a node."""
    number: dict[int, int] = {}
    size: dict[int, int] = {}
    for node in reversed(nodes):
        below = [child for value in node.values() for child in (value if isinstance(value, list) else [value])]
        below = [child for child in below if isinstance(child, dict)]
        name = function_of(node)
        lengthens = lengthening_of(node)
        factor = lengthens * _factor(name, node)
        number[id(node)] = _product([factor * _written(node), *(number[id(child)] for child in below)])
        sizes = [size[id(child)] for child in below]
        if name in GROWING:
            size[id(node)] = number[id(node)]
        elif name in _MULTIPLYING:
            size[id(node)] = _product([factor, *sizes])
        else:
            size[id(node)] = _product([lengthens, max(sizes, default=1)])
        if (name in GROWING | _MULTIPLYING or lengthens > 1) and size[id(node)] > LARGEST:
            what = f"{name}()" if name else "a cast"
            return f"{what} would make a value of more than {LARGEST} characters or elements"
    return None


def lengthening_of(node: dict[str, Any]) -> int:
    """How many times as long as its argument the value of a call or a cast may be, by what it is."""
    if node.get("class") == "CAST":
        kind = node.get("cast_type")
        return _LENGTHENED_BY_CAST.get(str(kind.get("id")), 1) if isinstance(kind, dict) else 1
    name = function_of(node)
    return _COLLATED if name.startswith(_COLLATING) else LENGTHENING.get(name, 1)


def _factor(name: str, call: dict[str, Any]) -> int:
    """The factor by which a call makes its first argument larger."""
    if name in _REPLACING:
        letters = [_letters(argument) for argument in _arguments(call)[1:3]]
        if len(letters) < 2:
            return 1
        replaced, replacement = letters
        return max(1, replacement if name == "regexp_replace" else -(-replacement // max(1, replaced)))
    if name in WITH_LAMBDA:
        return max((len(_columns(body)) for _, body in _lambdas(call)), default=1) or 1
    return 1


def _letters(tree: object) -> int:
    """The number of characters in the string literals below."""
    texts = [_value(node) for node in nodes_of(tree) if node.get("class") == "CONSTANT"]
    return sum(len(text) for text in texts if isinstance(text, str))


def _written(node: dict[str, Any]) -> int:
    """The number in a literal: its value, places times width of a format, or a string that is cast to a number."""
    if node.get("class") == "CAST":
        child = node.get("child")
        value = _value(child) if isinstance(child, dict) and child.get("class") == "CONSTANT" else None
        return _number(value) if isinstance(value, str) else 1
    if node.get("class") != "CONSTANT":
        return 1
    value = _value(node)
    if isinstance(value, str):  # a string that is not a format does not count
        places = value.count("%") + value.count("{")  # each may name the same argument
        return places * max((1, *map(int, _WIDTH.findall(value)))) if places else 1
    return _number(value)


def _value(constant: dict[str, Any]) -> object:
    value = constant.get("value")
    return value.get("value") if isinstance(value, dict) else None


def _number(value: object) -> int:
    if not isinstance(value, int | float | str):
        return 1
    try:
        return int(max(1.0, min(abs(float(value)), 1e18)))
    except ValueError:
        return 1


def _product(factors: list[int]) -> int:
    """The product, capped just above the limit."""
    product = 1
    for factor in factors:
        product = min(product * max(1, factor), 10**18)
    return product

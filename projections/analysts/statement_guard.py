"""Statement guard: admits one SELECT that changes nothing and reads nothing but the view.

The statement is parsed by DuckDB itself, in an empty instance of its own, into the syntax tree of `json_serialize_sql`,
which exists for SELECT only: every other statement (INSERT, DDL, COPY, ATTACH, SET, PRAGMA, CALL, EXPLAIN ANALYZE,
BEGIN ...) is refused by that alone. A SELECT can still do harm through the functions that it calls: `nextval`,
`enable_logging`, `quack_serve`, `quack_stop` and `checkpoint` have effects, `current_setting` shows the cloud keys in
the node's environment, `read_text` reads the host. So every function in the tree has to be on an allow-list. The lists
were made from a fresh DuckDB: what a newer version adds and marks volatile, or reads FROM, is refused until it has been
reviewed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

import duckdb

from projections.analysts.statement_growth import growth_refusal, nodes_of

LONGEST_STATEMENT = 256 * 1024
"""Characters. Parsing costs time before anything else can refuse."""

_ADMITTED_TABLE_FUNCTIONS = frozenset(
    (
        *("unnest", "range", "generate_series", "json_each", "json_tree"),
        *("duckdb_columns", "duckdb_constraints", "duckdb_databases", "duckdb_dependencies"),
        *("duckdb_functions", "duckdb_indexes", "duckdb_keywords", "duckdb_schemas", "duckdb_sequences"),
        *("duckdb_tables", "duckdb_types", "duckdb_views"),
        *("pragma_collations", "pragma_database_size", "pragma_platform", "pragma_show"),
        *("pragma_storage_info", "pragma_table_info", "pragma_version"),
        *("icu_calendar_names", "pg_timezone_names"),
    )
)

# The binder knows these itself; no catalog lists them.
_ADMITTED_UNLISTED = frozenset(("unnest", "grouping", "grouping_id"))

# Volatile, that is: their answer differs from call to call; these act on nothing but their own answer.
_ADMITTED_VOLATILE = frozenset(("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "error"))

# Not volatile, yet no business of an analyst: settings hold keys taken from the environment
# (s3_secret_access_key), a plan binds (and so opens) what its text names, a serialized statement is
# one the walk below cannot see into.
_REFUSED_FUNCTIONS = frozenset(("current_setting", "json_serialize_plan", "json_execute_serialized_sql"))
_REFUSED_PREFIXES = ("__internal_", "quack_", "kledger_")

_QUERY_NODES = frozenset(("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"))
_one_at_a_time = threading.Lock()

_PIVOT = re.compile(r"\b(UN)?PIVOT\b", re.IGNORECASE)

_FILE_MARKS = frozenset("./\\:*?")

_NEAR = 0.75

_ATTACHED = "kl"  # what the pages attach it as
_HOW_ELSE = "To change knowledge, go through the ledger: HTTP, the SDK or the kledger command."
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|;)*([A-Za-z_]+)", re.DOTALL)


@dataclass(frozen=True)
class StatementGuard:
    """Admits or refuses single statements; thread-safe.

    `functions` are the scalar and aggregate functions and scalar macros a statement may call,
    `table_functions` what it may read FROM, `refused_relations` the built-in views it may not name,
    `known` what DuckDB has of functions, admitted or not. All in lower case.
    """

    functions: frozenset[str]
    table_functions: frozenset[str]
    refused_relations: frozenset[str]
    known: frozenset[str]

    def refusal(self, statement: str) -> str | None:
        """Why `statement` may not run and what to do instead; None when it may run."""
        if len(statement) > LONGEST_STATEMENT:
            return _refuse(f"the statement has {len(statement)} characters, {LONGEST_STATEMENT} are admitted")
        if "\x00" in statement or not _is_utf8(statement):
            return _refuse("the statement holds a NUL character or is not Unicode")
        try:
            tree = _syntax_tree(statement)
        except RecursionError:  # of the JSON parser
            return _refuse("the statement is nested too deeply")
        if tree.get("error"):
            if tree.get("error_type") == "not implemented":
                return _refuse_kind(statement)
            return f"The statement does not parse: {tree.get('error_message')}."
        count = len(tree["statements"])
        if count != 1:
            return _refuse(f"{count} statements came at once; send one")
        return self._refusal_in(tree["statements"][0])

    def _refusal_in(self, tree: dict[str, Any]) -> str | None:
        for node in nodes_of(tree):
            if (unknown := self._unknown_in(node)) is not None:
                return unknown
            if (fault := self._fault_of(node)) is not None:
                return _refuse(fault)
        grows = growth_refusal(tree)
        return _refuse(grows) if grows is not None else None

    def _unknown_in(self, node: dict[str, Any]) -> str | None:
        """That there is nothing of the name which is used: a slip, another database's, or an attached ledger's."""
        if (attached := _as_attached(node)) is not None:
            return attached
        reads = node.get("type") == "TABLE_FUNCTION"
        named = node.get("function") if reads else node
        admitted = self.table_functions if reads else self.functions
        if not isinstance(named, dict) or named.get("function_name") is None:
            return None
        name = _name_in(named, "function_name")
        if name in admitted or name in self.known or name.startswith(_REFUSED_PREFIXES):
            return None
        near = get_close_matches(name, sorted(admitted), n=1, cutoff=_NEAR)
        meant = f": is {near[0]}() meant?" if near else "."
        return f"The statement does not run: there is no function {name}() here{meant}"

    def _fault_of(self, node: dict[str, Any]) -> str | None:
        """What is not admitted of one node of the syntax tree; None where it is."""
        kind = node.get("type")
        if "cte_map" in node and kind not in _QUERY_NODES:
            return f"a {kind} is no SELECT"
        if kind == "TABLE_FUNCTION":
            name = _name_in(node.get("function"), "function_name")
            if name not in self.table_functions:
                return f"reading FROM {name}() is not admitted"
            # Its arguments are checked like every other node; its own name is not that of a scalar function.
            node["function"] = {**node["function"], "function_name": None}
        if kind == "BASE_TABLE":
            name = _name_in(node, "table_name")
            if name in self.refused_relations:
                return f"the view {name} is not admitted"
            if _FILE_MARKS.intersection(name):
                return f"{name} looks like a file, not like a table of the view"
        if kind == "SHOW_REF" and (name := _name_in(node, "table_name")).strip('"') in self.refused_relations:
            return f"the view {name} is not admitted"
        if node.get("function_name") is not None and (name := _name_in(node, "function_name")) not in self.functions:
            return f"the function {name}() is not admitted"
        return None


def build_guard(connection: duckdb.DuckDBPyConnection) -> StatementGuard:
    """The guard for the database of `connection`, whose present macros are admitted too."""
    return guard_later(connection)()


def guard_later(connection: duckdb.DuckDBPyConnection) -> Callable[[], StatementGuard]:
    """A guard that is built with the first statement, as it asks an instance of its own and most nodes are asked
    nothing in SQL. The macros are those of this moment.
    """
    own = connection.execute(
        """
        SELECT DISTINCT lower(function_name), function_type = 'table_macro'
        FROM duckdb_functions()
        WHERE NOT internal AND function_type IN ('macro', 'table_macro')
        """
    ).fetchall()

    @cache
    def built() -> StatementGuard:
        builtin = _admitted_builtins()
        return StatementGuard(
            functions=builtin.functions | {name for name, reads in own if not reads},
            table_functions=builtin.table_functions | {name for name, reads in own if reads},
            refused_relations=builtin.refused_relations,
            known=builtin.known | {name for name, _ in own},
        )

    return built


@cache
def _empty_instance() -> duckdb.DuckDBPyConnection:
    """The empty instance of this process; its users have to hold `_one_at_a_time`."""
    return duckdb.connect(
        ":memory:",
        config={
            "threads": 1,
            "enable_external_access": "false",
            "lock_configuration": "true",
            "temp_directory": "",
        },
    )


@cache
def _admitted_builtins() -> StatementGuard:
    """What is admitted of an instance with nothing of ours in it.

    A built-in macro or view is admitted when everything it expands to is (so pg_sleep falls with sleep_ms
    and pg_settings with duckdb_settings), hence the repetition until nothing falls any more.
    """
    with _one_at_a_time:
        pristine = _empty_instance().cursor()
    rows = pristine.execute(
        """
        SELECT lower(function_name),
               bool_or(coalesce(has_side_effects, false) OR coalesce(stability = 'VOLATILE', false))
        FROM duckdb_functions()
        WHERE function_type IN ('scalar', 'aggregate', 'macro')
        GROUP BY ALL
        """
    ).fetchall()
    functions = {
        name
        for name, volatile in rows
        if (not volatile or name in _ADMITTED_VOLATILE)
        and name not in _REFUSED_FUNCTIONS
        and not name.startswith(_REFUSED_PREFIXES)
    } | _ADMITTED_UNLISTED
    macros = pristine.execute(
        "SELECT lower(function_name), macro_definition FROM duckdb_functions() WHERE function_type = 'macro'"
    ).fetchall()
    listed = pristine.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    known = _ADMITTED_UNLISTED | {name for (name,) in listed}
    views = pristine.execute("SELECT lower(view_name), sql FROM duckdb_views() WHERE internal").fetchall()
    while True:
        guard = StatementGuard(frozenset(functions), _ADMITTED_TABLE_FUNCTIONS, frozenset(), known)
        fallen = {name for name, body in macros if name in functions and guard.refusal(f"SELECT {body}") is not None}
        if not fallen:
            break
        functions -= fallen
    refused_views = {name for name, sql in views if guard.refusal(sql.partition(" AS ")[2].rstrip(";\n ")) is not None}
    return StatementGuard(frozenset(functions), _ADMITTED_TABLE_FUNCTIONS, frozenset(refused_views), known)


def _syntax_tree(statement: str) -> dict[str, Any]:
    with _one_at_a_time:
        rows = _empty_instance().execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    tree: dict[str, Any] = json.loads(rows[0][0])
    return tree


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name_in(node: object, key: str) -> str:
    name = node.get(key) if isinstance(node, dict) else None
    return name.lower() if isinstance(name, str) else ""


def _as_attached(node: dict[str, Any]) -> str | None:
    """What to write in place of a name that the pages use where the ledger is attached, which this is no place of."""
    if node.get("type") == "BASE_TABLE":
        qualifiers, name = ("catalog_name", "schema_name"), _name_in(node, "table_name")
    elif node.get("type") == "TABLE_FUNCTION" and isinstance(node.get("function"), dict):
        node = node["function"]
        qualifiers, name = ("catalog", "schema"), f"{_name_in(node, 'function_name')}(…)"
    else:
        return None
    if _ATTACHED not in [_name_in(node, each) for each in qualifiers]:
        return None
    instead = "send what stands in its $$ … $$ alone" if name == "query(…)" else f"write {name} alone"
    return f"The statement does not run: {_ATTACHED} is the ledger's name in the DuckDB that attached it; {instead}."


def _refuse(reason: str) -> str:
    return f"This ledger view is read-only: {reason}. {_HOW_ELSE}"


def _refuse_kind(statement: str) -> str:
    match = _FIRST_WORD.match(statement)
    word = match.group(1).upper() if match else "this statement"
    if word in {"BEGIN", "START", "COMMIT", "ROLLBACK", "END", "ABORT"}:
        return _refuse(f"{word} is not admitted, and not needed: each SELECT reads one consistent state")
    if _PIVOT.search(statement):
        return _refuse(
            "this PIVOT would first create a type; list its values (PIVOT ... ON column IN (...)), or pivot "
            "on your own side of the attached view"
        )
    if word in {"SELECT", "FROM", "WITH", "VALUES", "TABLE"}:
        return _refuse("one of several statements is no SELECT; send one SELECT")
    return _refuse(
        f"{word} is not admitted; send one SELECT (FROM, VALUES, WITH, DESCRIBE, SHOW and SUMMARIZE count as one)"
    )

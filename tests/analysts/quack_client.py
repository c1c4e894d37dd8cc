"""An analyst's DuckDB in a process of its own: attaches, then does what its orders on standard input say.

Orders are one JSON object: `attach` (the statement), `mode` and, for mode `statements`, a list of
[where, sql]: "server" sends the text over the wire as it is, "client" runs it against the attached
catalog `kl`. Answers are JSON lines on standard output. Mode `count` counts `kl.events` without a pause
and prints each new count, until it reads the number `until`.
"""

from __future__ import annotations

import json
import sys

import duckdb

from projections.analysts.quack import load_extensions


def main() -> None:
    orders = json.loads(sys.stdin.readline())
    connection = duckdb.connect()
    load_extensions(connection)
    try:
        connection.execute(orders["attach"])
    except duckdb.Error as error:
        tell({"error": str(error)})
        return
    if orders["mode"] == "count":
        count_until(connection, orders["until"])
        return
    for where, sql in orders["statements"]:
        if where == "server":
            sql = "FROM kl.query('" + sql.replace("'", "''") + "')"
        try:
            answer: dict[str, object] = {"rows": connection.execute(sql).fetchall()}
        except Exception as error:  # whatever it is, it is what the analyst sees
            answer = {"error": str(error)}
        tell(answer)


def tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer, default=str) + "\n")
    sys.stdout.flush()


def count_until(connection: duckdb.DuckDBPyConnection, until: int) -> None:
    last = -1
    while last < until:
        row = connection.execute("SELECT count(*), coalesce(max(position), 0) FROM kl.events").fetchone()
        assert row is not None
        if row[0] != last:
            last = row[0]
            tell(row)


if __name__ == "__main__":
    main()

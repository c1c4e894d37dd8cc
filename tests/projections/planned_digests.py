"""Digests of views that a test looks at again and again: to plan the queries takes three quarters of their time."""

from __future__ import annotations

import duckdb

from projections.engine.digest import RELATIONS, RelationDigest, digest_query, digests_of

# A plan that is kept must hold for whatever rows come later, so it is made without a look at those that are there.
_OF_ROWS_NOW = "statistics_propagation,compressed_materialization"


def digests(con: duckdb.DuckDBPyConnection) -> dict[str, RelationDigest]:
    """What `projections.engine.digest.digests` answers, from queries that are planned once a connection."""
    try:
        return _answered(con)
    except duckdb.BinderException:  # there is no such plan
        con.execute(f"SET disabled_optimizers = '{_OF_ROWS_NOW}'")
        for relation in RELATIONS:
            con.execute(f"PREPARE digest_of_{relation} AS {digest_query(con, relation)}")
        con.execute("RESET disabled_optimizers")
        return _answered(con)


def _answered(con: duckdb.DuckDBPyConnection) -> dict[str, RelationDigest]:
    return digests_of({each: con.execute(f"EXECUTE digest_of_{each}").fetchone() for each in RELATIONS})

"""What helps with this query? The paths' candidates, what the view says of them, and the ranking (K8, R1)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb
import orjson

from ledger.event import JsonObject
from projections.knowledge.ask import ITEM_COLUMNS, item_of
from projections.search.ranking import Candidate, Standing, freshness, rank
from projections.vectors.feed import VectorFeed
from projections.vectors.port import Found
from projections.view import View

# The sources ask for ten a path and twice as many as results; more lose nothing and let quality choose among more.
LEAST_CANDIDATES = 50
RECENT = 5


class Searcher:
    """Searches one node's knowledge: candidates from the vector process, everything else from the view."""

    def __init__(self, view: View, feed: VectorFeed) -> None:
        self._view = view
        self._feed = feed

    async def search(
        self,
        *,
        org: str,
        query: str,
        visible: Sequence[str],
        top_k: int = 5,
        min_score: int = 3,
        types: Sequence[str] | None = None,
        as_of: int | datetime | None = None,
        paths: str = "fused",
    ) -> list[JsonObject]:
        """Up to `top_k` active items that share a scope with `visible`, best first.

        `as_of` is a log position; `paths` is fused, keyword, vector or recency. Items scored below `min_score`
        or harmed more than they helped are left out. Raises VectorProcessGone, EmbeddingFailed.
        """
        if isinstance(as_of, datetime):
            raise TypeError("as_of is a position here: turn the moment into one first")
        wanted = list(types or [])
        found: list[Found] = []
        if paths != "recency":
            found = await self._feed.search(
                query,
                list(visible),
                types=wanted,
                limit=max(LEAST_CANDIDATES, 2 * top_k),
                as_of=as_of,
                paths=paths,  # type: ignore[arg-type]  # the doors admit only these words
            )
        recent = max(RECENT, top_k) if paths == "recency" else 0
        rows = await self._view.ask(
            candidates, org, list(visible), wanted, [each.valid_from for each in found], as_of, recent
        )
        now = datetime.now(UTC)
        scores = {each.valid_from: (each.keyword, each.vector) for each in found}
        given = [
            Candidate(row["id"], at, *scores.get(at, (None, None)), freshness(changed, now))
            for row, at, changed in sorted(rows, key=lambda told: -(scores.get(told[1], (0, 0))[0] or 0))
        ]
        by_id = {row["id"]: (row, changed) for row, _, changed in rows}
        ranked = rank(
            given,
            {item_id: _standing(row, changed) for item_id, (row, changed) in by_id.items()},
            visible,
            top_k=top_k,
            min_score=min_score,
            vector_weight=self._feed.vector_weight,
        )
        return [
            {**by_id[each.item_id][0], "quality_score": each.quality, "relevance": round(each.relevance, 6)}
            for each in ranked
        ]

    async def wait_for(self, position: int, timeout: float) -> None:
        """Return once a search finds what `position` said. Raises ViewBehind."""
        await self._feed.wait_for(position, timeout)


def _standing(row: JsonObject, changed: datetime) -> Standing:
    told = row["eval"]
    return Standing(row["id"], told["score"], told["helpful"], told["harmful"], row["scopes"], changed)


def candidates(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    visible: list[str],
    types: list[str],
    version_positions: list[int],
    as_of: int | None,
    recent: int,
) -> list[tuple[JsonObject, int, datetime]]:
    """What the view says of these versions, if they hold and are seen, and of the `recent` latest items.

    A version that the vectors still show although the view has moved on is left out.
    """
    source = "knowledge" if as_of is None else f"knowledge_as_of({int(as_of)})"
    columns = f"{ITEM_COLUMNS}, version_position, epoch_us(updated_at)"
    # One bound value: the driver takes about 0.1 ms for each.
    asked = orjson.dumps({"tenant": org, "visible": visible, "wanted": types}).decode()
    where = """org = asked.tenant AND status = 'active' AND list_has_any(scopes, asked.visible)
        AND (len(asked.wanted) = 0 OR list_has_any(types, asked.wanted))"""
    queries = []
    if version_positions:
        slots = ", ".join(str(int(position)) for position in version_positions)
        queries.append(f"SELECT {columns} FROM {source}, asked WHERE version_position IN ({slots}) AND {where}")
    if recent:
        queries.append(
            f"(SELECT {columns} FROM {source}, asked WHERE {where} ORDER BY updated_at DESC LIMIT {int(recent)})"
        )
    if not queries:
        return []
    statement = f"""WITH asked AS (
        SELECT unnest(from_json($1, '{{"tenant":"VARCHAR","visible":["VARCHAR"],"wanted":["VARCHAR"]}}'))
    ) {" UNION ".join(queries)}"""
    rows = cursor.execute(statement, [asked]).fetchall()
    return [(item_of(row), row[-2], datetime.fromtimestamp(row[-1] / 1e6, UTC)) for row in rows]

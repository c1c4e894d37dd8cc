"""What helps with this query? The paths' candidates, what the view says of them, and the ranking (K8, R1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Any

import duckdb
import orjson

from ledger.event import JsonObject
from ledger.scopes import PRIORITY, further_types
from ledger.sealed import ERASED
from projections.feedback.evidence import confidence
from projections.knowledge.ask import ITEM_COLUMNS, VERSION_COLUMNS, item_of, readers_of, rfc3339
from projections.scope_types.ask import priorities
from projections.search.ranking import Candidate, Standing, freshness, rank
from projections.sql_text import text
from projections.vectors.feed import VectorFeed
from projections.vectors.port import Found
from projections.view import View

# Source 004: each path looks at its ten best; source 001: twice as many candidates as results. Measured with 20, 30
# and 50 a path: the same quality, so the fewest.
LEAST_CANDIDATES = 20
RECENT = 5
REMEMBERED_VERSIONS = 20_000


class Searcher:
    """Searches one node's knowledge: candidates from the vector process, everything else from the view."""

    def __init__(self, view: View, feed: VectorFeed) -> None:
        self._view = view
        self._feed = feed
        self._versions = KnownVersions()
        feed.fed = self._learn

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
        """Up to `top_k` active items whose scopes or ACL name one of `visible`, best first.

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
        positions = [each.valid_from for each in found]
        if as_of is not None or recent:
            rows = await self._view.ask(standing_then, org, list(visible), wanted, positions, as_of, recent)
        else:
            rows = await self._view.ask(self._versions.standing_now, org, positions)
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
            priority=await self._priorities(org, visible),
        )
        return [
            {**by_id[each.item_id][0], "quality_score": each.quality, "relevance": round(each.relevance, 6)}
            for each in ranked
        ]

    async def _priorities(self, org: str, visible: Sequence[str]) -> Mapping[str, float]:
        if not further_types(visible):  # nearly always, and then no thread is asked
            return PRIORITY
        return await self._view.ask(priorities, org, visible)

    def forget_versions(self) -> None:
        """Remember nothing of what versions said: some of it was erased."""
        self._versions = KnownVersions()

    async def _learn(self, after: int, upto: int) -> None:
        """Read what can be searched now before somebody asks for it."""
        await self._view.ask(self._versions.learn, after, upto)

    async def wait_for(self, position: int, timeout: float) -> None:
        """Return once a search finds what `position` said. Raises ViewBehind."""
        await self._feed.wait_for(position, timeout)


def _standing(row: JsonObject, changed: datetime) -> Standing:
    told = row["eval"]
    return Standing(row["id"], told["score"], told["helpful"], told["harmful"], readers_of(row), changed)


class KnownVersions:
    """What versions say, remembered: a version never changes, only its item's counts and status do.

    Measured at 9,000 items: reading 35 whole versions takes 2 ms, their items' narrow state 1.3 ms.
    """

    def __init__(self, most: int = REMEMBERED_VERSIONS) -> None:
        self._most = most
        self._said: OrderedDict[int, JsonObject] = OrderedDict()
        self._lock = Lock()

    def standing_now(
        self, cursor: duckdb.DuckDBPyConnection, org: str, version_positions: list[int]
    ) -> list[tuple[JsonObject, int, datetime]]:
        """What the view says now of those versions that hold, are active, and are this tenant's."""
        if not version_positions:
            return []
        state = cursor.execute(
            f"""SELECT version_position, helpful, harmful, position, epoch_us(updated_at), supporting, opposing,
                    status, org FROM knowledge_state WHERE version_position IN ({_slots(version_positions)})"""
        ).fetchall()
        # Judged here: DuckDB would compare the texts of every item in the view.
        state = [row[:7] for row in state if row[7] == "active" and row[8] == org]
        said = self._said_by(cursor, [row[0] for row in state])
        return [
            (_with_state(said[at], helpful, harmful, position, updated, evidence), at, _moment(updated))
            for at, helpful, harmful, position, updated, *evidence in state
            if at in said
        ]

    def learn(self, cursor: duckdb.DuckDBPyConnection, after: int, upto: int) -> None:
        """Remember the versions that were made between two positions and still hold; no more than fit."""
        self._remember(
            cursor.execute(
                f"""SELECT {VERSION_COLUMNS}, valid_from FROM knowledge_versions
                WHERE valid_from > {int(after)} AND valid_from <= {int(upto)} AND valid_to IS NULL
                ORDER BY valid_from DESC LIMIT {self._most}"""
            ).fetchall()
        )

    def _said_by(self, cursor: duckdb.DuckDBPyConnection, positions: list[int]) -> dict[int, JsonObject]:
        with self._lock:
            known = {at: self._said[at] for at in positions if at in self._said}
        missing = [at for at in positions if at not in known]
        if not missing:
            return known
        rows = cursor.execute(
            f"SELECT {VERSION_COLUMNS}, valid_from FROM knowledge_versions WHERE valid_from IN ({_slots(missing)})"
        ).fetchall()
        return known | self._remember(rows)

    def _remember(self, rows: list[tuple[Any, ...]]) -> dict[int, JsonObject]:
        fresh = {row[-1]: item_of(row) for row in rows}
        with self._lock:
            self._said.update(fresh)
            while len(self._said) > self._most:
                self._said.popitem(last=False)
        return fresh


def _slots(positions: list[int]) -> str:
    return ", ".join(str(int(position)) for position in positions)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def _with_state(
    said: JsonObject, helpful: int, harmful: int, position: int, updated: int, evidence: Sequence[int]
) -> JsonObject:
    sure = confidence(said["eval"]["confidence"], *evidence)
    counted = {**said["eval"], "helpful": helpful, "harmful": harmful, "confidence": sure}
    return {**said, "eval": counted, "position": position, "updated_at": rfc3339(updated)}


def standing_then(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    visible: list[str],
    types: list[str],
    version_positions: list[int],
    as_of: int | None,
    recent: int,
) -> list[tuple[JsonObject, int, datetime]]:
    """What the view said at a position (or says) of these versions, and of the `recent` latest items seen.

    A version that the vectors still show although the view has moved on is left out.
    """
    source = "knowledge" if as_of is None else f"knowledge_as_of({int(as_of)})"
    columns = f"{ITEM_COLUMNS}, version_position, epoch_us(updated_at)"
    # One bound value: the driver takes about 0.1 ms for each.
    asked = orjson.dumps({"tenant": org, "visible": visible, "wanted": types}).decode()
    where = f"""org = asked.tenant AND status = 'active' AND content <> {text(ERASED)}
        AND (list_has_any(scopes, asked.visible) OR list_has_any(shared_with, asked.visible))
        AND (len(asked.wanted) = 0 OR list_has_any(types, asked.wanted))"""
    queries = []
    if version_positions:
        slots = _slots(version_positions)
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
    return [(item_of(row), row[-2], _moment(row[-1])) for row in rows]

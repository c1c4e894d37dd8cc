"""A search that is narrowed finds among what a list with the same filters has, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from kledger.contract.errors import LedgerError
from kledger.contract.scopes import Caller
from kledger.contract.words import RecallPath
from kledger.requests.knowledge import SaveManyRequest
from ledger.event import NO_LINEAGE
from producers.operations.bulk import importing
from producers.operations.desk import Desk, Freshness
from producers.operations.recall import search as recall
from projections.search.ask import Searcher
from projections.vectors.feed import VectorFeed
from projections.vectors.wire import Settings
from projections.views.knowledge.listing import Wanted
from tests.doors.live_desk import live_desk
from tests.journeys.running_node import RunningNode, caught_up
from tests.patience import PATIENCE

NARROWED: tuple[dict[str, Any], ...] = (
    {"scopes": ["project:nr-quay"]},
    {"tags": ["nr-pier"]},
    {"layers": ["semantic"], "owner": "user:nr-ann"},
    {"layers": ["semantic", "plain"], "owner": "user:nr-ann"},
    {"until": "2020-01-01T00:00:00Z", "owner": "user:nr-ann"},
    {"since": "2020-01-01T00:00:00Z", "tags": ["nr-quay", "nr-pier"]},
    {"concern": "never_recalled", "owner": "user:nr-ann"},
)


def test_a_search_finds_among_what_a_list_with_the_same_filters_has(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ann = ledger.acting_as(user="nr-ann")
        for item_id, scope, word in (("nr-a", "project:nr-quay", "nr-quay"), ("nr-b", "public", "nr-pier")):
            ann.save("the beacon of the narrows", item_id, ["tool"], id=item_id, scopes=[scope], tags={"area": word})
        ann.remember("The beacon of the narrows is lit.", "semantic", id="nr-c")
        caught_up(ledger)

        def found(who: Any, **narrowed: Any) -> set[str]:
            return {
                each["id"]
                for each in who.search("beacon of the narrows", top_k=50, record=False, **narrowed)["results"]
            }

        assert found(ann) >= {"nr-a", "nr-b", "nr-c"}
        for narrowed in NARROWED:
            listed = {each["id"] for each in ann.list(limit=100, **narrowed)["results"]}
            assert found(ann, **narrowed) == listed, narrowed
        # A filter names a scope; it gives nobody the right to it.
        assert found(ledger.acting_as(user="nr-ben"), scopes=["project:nr-quay"]) == set()
        with pytest.raises(LedgerError, match="layer"):
            found(ann, layers=["deep"])


@asynccontextmanager
async def searching(directory: Path) -> AsyncIterator[Desk]:
    """A desk whose searches ask a vector process."""
    async with live_desk() as desk:
        feed = VectorFeed(desk.view, Settings(str(directory)), desk.org)
        await feed.start()
        feeding = asyncio.create_task(feed.run())
        try:
            searcher = Searcher(desk.view, feed)
            yield Desk(desk.ledger, desk.view, searcher, desk.admin, vault=desk.vault, sessions=desk.sessions)
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            await feed.close()


async def test_what_the_filters_leave_is_found_behind_any_number_of_better_matches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = {"task": "clean the lens", "types": ["tool"]}
    crowd = [{**text, "id": f"crowd-{n}", "content": f"clean the lens {n}"} for n in range(recall.NARROWED[0] + 50)]
    lamp = {
        "id": "lamp",
        "task": "the lamp",
        "content": "it is behind the lens",
        "types": ["tool"],
        "tags": {"area": "lamp"},
    }
    mei, found = Caller(user="mei"), {}
    async with searching(tmp_path) as desk:
        for first in range(0, len(crowd), 50):
            items = [*([] if first else [lamp]), *crowd[first : first + 50]]
            await importing.save_many(desk, mei, NO_LINEAGE, SaveManyRequest.model_validate({"items": items}))
        for named in (recall.NAMED, 0):  # all that the filters leave have a place among those named, or have not
            monkeypatch.setattr(recall, "NAMED", named)
            for paths in get_args(RecallPath):
                answer = await recall.search(
                    desk,
                    mei,
                    NO_LINEAGE,
                    "clean the lens",
                    min_score=1,
                    among=Wanted(tags=["lamp"]),
                    paths=paths,
                    record=False,
                    freshness=Freshness((await desk.ledger.head()).position, PATIENCE),
                )
                found[named, paths] = [each["id"] for each in answer["results"]]
    assert found.pop((0, "recency")) == []  # of too many to name, this path looks at the latest few alone
    assert all(ids == ["lamp"] for ids in found.values()), found

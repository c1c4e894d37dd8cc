"""A search that is narrowed finds among what a list with the same filters has, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kledger.contract.errors import LedgerError
from tests.journeys.running_node import RunningNode, caught_up

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

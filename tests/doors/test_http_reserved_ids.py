"""No item is saved under an id that an address of the interface would hide."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute

from kledger.contract.bounds import RESERVED_IDS
from kledger.contract.errors import InvalidPayload
from producers.http.app import routes_of
from tests.doors.live_desk import live_desk
from tests.journeys.running_node import RunningNode


async def test_every_address_that_stands_where_an_id_does_is_reserved() -> None:
    async with live_desk() as desk:
        routes = [route for route in routes_of(desk) if isinstance(route, APIRoute)]
    places = [(method, route.path.split("/")) for route in routes for method in route.methods or ()]
    hiding = {
        literal[-1]
        for method, literal in places
        for other, place in places
        if method == other and place[:-1] == literal[:-1] and place[-1].startswith("{") and "{" not in literal[-1]
    }
    assert hiding == RESERVED_IDS


@pytest.mark.parametrize("item_id", sorted(RESERVED_IDS))
def test_a_reserved_id_is_refused_with_the_reason(shared_node: RunningNode, item_id: str) -> None:
    with shared_node.client() as ledger:

        def refused(save: object) -> None:
            assert callable(save)
            with pytest.raises(InvalidPayload, match="choose another id"):
                save()

        refused(lambda: ledger.save("task", "content", ["tool"], id=item_id))
        refused(lambda: ledger.remember("content", "semantic", id=item_id))
        one = {"id": item_id, "task": "t", "content": "c", "types": ["tool"]}
        assert ledger.save_many([one])["results"][0]["outcome"] == "refused"

"""A lineage has a bound, and says where it met it: an answer that is not whole says so."""

from __future__ import annotations

import pytest

from projections.views.lineage import ask
from tests.doors.http_door import ALICE, http_door


@pytest.mark.parametrize(("bound", "more"), [(2, True), (3, True), (100, None)])
async def test_a_lineage_beyond_its_bound_says_that_there_may_be_more(
    bound: int, more: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "MAX_EDGES", bound)
    async with http_door() as door:
        await door.saved(ALICE, id="k", source={"trace_id": "t", "message_id": "m"})
        for number in range(3):
            answer = await door.client.put("/api/knowledge/k", json={"content": f"c {number}"}, headers=ALICE)
            assert answer.status_code == 200, answer.text
        await door.desk.view.wait_for(answer.json()["position"])
        for ref in ("k", "trace:t"):
            found = (await door.get("/api/lineage", params={"ref": ref}, headers=ALICE)).json()
            met = bound in (len(found["events"]), len(found["edges"]))
            assert found.get("more") == (True if met else None), ref
        whole = (await door.get("/api/lineage", params={"ref": "k"}, headers=ALICE)).json()
        assert whole.get("more") == more
        assert [each["role"] for each in whole["events"]][:2] == ["origin", "change"]

"""A history is read in parts: the latest entries, those before a position, with contents cut, and why each was made."""

from __future__ import annotations

from tests.doors.http_door import ALICE, BOB, http_door, refusal


async def test_a_history_says_why_each_version_was_made() -> None:
    async with http_door() as door:
        saved = await door.saved(id="k-1")
        path = f"/api/knowledge/{saved['id']}"
        told = await door.put(path, json={"content": "b", "reason": "clearer"}, headers=ALICE)
        await door.delete(path, params={"reason": "over"}, headers=ALICE)
        await door.desk.view.wait_for(told.json()["position"] + 1)
        versions = (await door.get(f"{path}/history", headers=ALICE)).json()["versions"]
        assert [each.get("reason") for each in versions] == [None, "clearer", "over"]


async def test_a_part_of_a_history_has_the_latest_entries_before_a_position_oldest_first() -> None:
    async with http_door() as door:
        saved = await door.saved(id="k-1", content="0123456789")
        path = f"/api/knowledge/{saved['id']}"
        for n in range(1, 5):
            await door.put(path, json={"content": f"{n}-123456789"}, headers=ALICE)
            last = await door.put(path, json={"add_helpful_case": {"task": str(n)}}, headers=ALICE)
        await door.desk.view.wait_for(last.json()["position"])
        whole = (await door.get(f"{path}/history", headers=ALICE)).json()
        assert len(whole["versions"]) == 5
        part = (await door.get(f"{path}/history", params={"limit": 2, "shorten": 3}, headers=ALICE)).json()
        assert [(each["version"], each["content"], each["length"]) for each in part["versions"]] == [
            (4, "3-1", 11),
            (5, "4-1", 11),
        ]
        assert [each["task"] for each in part["feedback"]] == ["3", "4"]
        before = part["versions"][0]["valid_from"]
        earlier = (await door.get(f"{path}/history", params={"before": before}, headers=ALICE)).json()
        assert earlier["versions"] == whole["versions"][:3]
        assert [each["task"] for each in earlier["feedback"]] == ["1", "2"]
        for wrong in ({"limit": 0}, {"limit": 1_001}, {"before": -1}, {"shorten": -1}):
            refusal(await door.get(f"{path}/history", params=wrong, headers=ALICE), 422, "invalid_payload")
        refusal(await door.get(f"{path}/history", params={"limit": 1}, headers=BOB), 404, "unknown_knowledge")

"""Whose reads make the log grow: a setting of the node, which a request can only turn off."""

from __future__ import annotations

import pytest

from kledger.contract.errors import InvalidPayload
from producers.operations.recording import Recorded, recorded_from_environment
from tests.doors.http_door import ALICE, http_door, refusal
from tests.projections.histories import rows

AGENT = {**ALICE, "X-Ledger-Agent": "scribe"}
READS = ("/api/knowledge/search?q=lamp", "/api/recall/startup", "/api/recall/startup?q=lamp")


@pytest.mark.parametrize(
    ("setting", "who", "records"),
    [
        ("all", ALICE, True),
        ("all", AGENT, True),
        ("all", {}, True),
        ("agents", ALICE, False),
        ("agents", {}, False),
        ("agents", AGENT, True),
        ("none", AGENT, False),
        ("none", ALICE, False),
    ],
)
async def test_what_is_served_is_recorded_as_the_node_is_set_up(
    setting: Recorded, who: dict[str, str], records: bool
) -> None:
    async with http_door() as door:
        door.desk.recorded = setting
        await door.saved(ALICE, task="the lamp")
        for path in READS:
            head = await door.head()
            answer = (await door.get(path, headers=who)).json()
            assert (answer["recall_id"] is not None) is records, path
            assert await door.head() == head + records
            joined = "&" if "?" in path else "?"
            assert (await door.get(f"{path}{joined}record=false", headers=who)).json()["recall_id"] is None
            assert await door.head() == head + records


async def test_a_person_who_looks_is_recorded_as_one_who_does() -> None:
    async with http_door() as door:
        await door.saved(ALICE, task="the lamp")
        looked = await door.get("/api/knowledge/search?q=lamp&kind=page", headers=ALICE)
        asked = {"message": "the lamp", "kind": "page"}
        recalled = await door.post("/api/memory/recall", json=asked, headers=ALICE)
        await door.desk.view.wait_for(await door.head())
        kinds = dict(await door.desk.view.ask(rows, "SELECT recall_id, kind FROM recalls"))
        assert kinds == {each.json()["recall_id"]: "page" for each in (looked, recalled)}
        head = await door.head()
        unrecorded = await door.get("/api/knowledge/search?q=lamp&kind=page&record=false", headers=ALICE)
        assert unrecorded.json()["results"] == looked.json()["results"]
        for kind in ("startup", "recall", "Page", ""):
            refused = await door.get("/api/knowledge/search", params={"q": "lamp", "kind": kind}, headers=ALICE)
            refusal(refused, 422, "invalid_payload")
        asked["kind"] = "search"
        refusal(await door.post("/api/memory/recall", json=asked, headers=ALICE), 422, "invalid_payload")
        assert await door.head() == head


async def test_a_focus_keeps_its_recall_with_its_goal_whatever_the_setting() -> None:
    async with http_door() as door:
        door.desk.recorded = "none"
        focused = await door.post("/api/goals/g/focus", json={"description": "lamp"}, headers=ALICE)
        assert focused.json()["recall_id"] is not None


def test_a_setting_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_RECORD_RECALLS", "Agents")
    assert recorded_from_environment() == "agents"
    monkeypatch.delenv("KLEDGER_RECORD_RECALLS")
    assert recorded_from_environment() == "all"
    monkeypatch.setenv("KLEDGER_RECORD_RECALLS", "some")
    with pytest.raises(InvalidPayload, match="write all, agents or none"):
        recorded_from_environment()

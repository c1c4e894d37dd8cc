"""Whoever asks for the detail of a recall that is past its retention is told so, and how to get it."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest

from kledger.contract.errors import InvalidPayload
from kledger.contract.recall import LOOK
from producers.operations.recording import detail_days_from_environment
from projections.engine.duckdb import transaction
from projections.views.recalls import retention
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

DAY_NS = 86_400 * 10**9


async def three_days_later(door: Door) -> None:
    """Keep the detail for one day, and fold as if the log had an event of three days from now."""
    await door.desk.view.wait_for(await door.head())
    bench = door.desk.view.instance.bench
    with transaction(bench.con):
        bench.run("UPDATE recall_retention SET days = 1")
        bench.recall_days = 1
        retention.fold(bench, *2 * [time.time_ns() + 3 * DAY_NS])


async def test_what_is_past_is_answered_as_past_and_what_was_not_there_as_unknown() -> None:
    async with http_door() as door:
        item = await door.saved(ALICE, task="the lamp", scopes=["public"])
        traced = {**ALICE, "X-Ledger-Trace-Id": "t-1"}
        recall_id = (await door.get("/api/knowledge/search?q=lamp", headers=traced)).json()["recall_id"]
        await door.get(f"/api/knowledge/search?q=lamp&kind={LOOK}", headers=traced)
        await door.desk.view.wait_for(await door.head())
        listed = (await door.get("/api/recalls", headers=ALICE)).json()
        assert (listed["total"], listed.get("past_retention")) == (2, None)
        await three_days_later(door)

        told = refusal(await door.get(f"/api/recalls/{recall_id}", headers=ALICE), 410, "past_retention")
        assert f"at position {listed['results'][1]['position']}" in told
        assert "kledger replay --into" in told
        for path in (f"/api/recalls/{recall_id}", "/api/recalls/recall-of-nobody"):
            refusal(await door.get(path, headers=BOB), 404, "unknown_reference")
        for path, older in (
            ("/api/recalls", 2),
            ("/api/recalls?counts=true", 1),
            ("/api/recalls?trace=t-1", 2),
            (f"/api/knowledge/{item['id']}/recalls", 2),
        ):
            page = (await door.get(path, headers=ALICE)).json()
            assert (page["results"], page["total"], page["past_retention"]) == ([], 0, older), path
            assert "past_retention" not in (await door.get(path, headers=BOB)).json(), path
        around = (await door.get("/api/lineage", params={"ref": item["id"]}, headers=ALICE)).json()
        assert (len(around["events"]), around["past_retention"]) == (1, 2)
        assert "past_retention" not in (await door.get("/api/lineage", params={"ref": item["id"]}, headers=BOB)).json()
        refusal(await door.get("/api/lineage?ref=trace:t-1", headers=ALICE), 410, "past_retention")
        refusal(await door.get("/api/lineage?ref=trace:t-1", headers=BOB), 404, "unknown_reference")


async def test_pages_say_that_the_log_alone_has_the_rest() -> None:
    async with http_door() as door:
        item = await door.saved(ALICE, task="the lamp", scopes=["public"])
        recall_id = (await door.get("/api/knowledge/search?q=lamp", headers=ALICE)).json()["recall_id"]
        await door.desk.view.wait_for(await door.head())
        csrf = re.search('name="csrf" value="([^"]+)"', (await door.get("/ui/sign-in")).text)
        assert csrf is not None
        await door.post("/ui/sign-in", data={"csrf": unescape(csrf[1]), "token": "", "user": "alice"})
        for path in ("/ui/recalls", f"/ui/items/{item['id']}?show=recalls"):
            assert recall_id in (await door.get(path)).text
        await three_days_later(door)
        for path in ("/ui/recalls", f"/ui/items/{item['id']}?show=recalls"):
            page = (await door.get(path)).text
            assert "1 older recall, whose detail is kept in the log alone" in page
            assert "Nothing was recalled yet" not in page
        gone = await door.get(f"/ui/recalls/{recall_id}")
        assert gone.status_code == 410
        assert "The log still has it" in gone.text


async def test_a_verdict_is_credited_to_a_recall_that_is_past() -> None:
    async with http_door() as door:
        item = await door.saved(ALICE, task="the lamp", scopes=["public"])
        traced = {**ALICE, "X-Ledger-Trace-Id": "t-1"}
        await door.get("/api/knowledge/search?q=lamp", headers=traced)
        await three_days_later(door)
        for trace in ("t-1", "t-2"):
            case = {"add_helpful_case": {"task": f"lit {trace}", "trace_id": trace}}
            answer = await door.put(f"/api/knowledge/{item['id']}", json=case, headers=ALICE)
            assert answer.is_success, answer.text
        await door.desk.view.wait_for(await door.head())
        told = (await door.get(f"/api/knowledge/{item['id']}/history", headers=ALICE)).json()
        assert [each["credit"] for each in told["feedback"]] == ["served", "not_served"]


def test_a_setting_that_is_no_number_of_days_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, days in (("", None), (" 30 ", 30), ("1", 1), ("36500", 36_500)):
        monkeypatch.setenv("KLEDGER_RECALL_DETAIL_DAYS", value)
        assert detail_days_from_environment() == days
    for value in ("0", "-1", "36501", "a week", "1.5", "٣"):
        monkeypatch.setenv("KLEDGER_RECALL_DETAIL_DAYS", value)
        with pytest.raises(InvalidPayload, match="write a number of days"):
            detail_days_from_environment()

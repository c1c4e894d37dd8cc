"""Two requests about one item at once: what is answered as done counts, and what does not count is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.event import JsonObject
from tests.doors.at_once import Request, at_every_moment, refused_since, rows
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

K = "/api/knowledge"
DAN = {"X-Ledger-User": "dan"}
GIVEN: JsonObject = {"owner": "user:carol", "scopes": ["user:carol"]}
VERDICT: JsonObject = {"add_helpful_case": {"outcome": "it ran"}}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


class Doing:
    """What can be done to an item of alice's, which everybody reads and bob may revise."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def saved(self, name: str) -> None:
        acl = [{"entity": "user:bob", "permission": "read_write"}]
        await self._door.saved(id=name, scopes=["public"], acl=acl)

    def put(self, who: dict[str, str], path: str = "", **body: Any) -> Request:
        async def request(name: str) -> httpx.Response:
            return await self._door.put(f"{K}/{name}{path}", json=body, headers=who)

        return request

    def verdicts(self) -> Request:
        async def request(name: str) -> httpx.Response:
            body = {"feedback_list": [{"knowledge_id": name, "is_helpful": True}]}
            answer = await self._door.post(f"{K}/batch_update", json=body, headers=DAN)
            told = answer.json()
            if told["updated"]:
                return answer
            return httpx.Response(404, json={"error": told["refused"][0]["error"]})

        return request

    def removed(self) -> Request:
        async def request(name: str) -> httpx.Response:
            return await self._door.delete(f"{K}/{name}", headers=ALICE)

        return request


DONE = {
    "its owner revises it": lambda do: do.put(ALICE, content="anew"),
    "its owner revises the version that they read": lambda do: do.put(ALICE, content="anew", expected_version=2),
    "a writer revises it": lambda do: do.put(BOB, content="bob's words"),
    "a writer revises, scores and judges it": lambda do: do.put(BOB, content="bob's", update_score=4, **VERDICT),
    "a reader judges it": lambda do: do.put(DAN, **VERDICT),
    "a reader scores it": lambda do: do.put(DAN, update_score=4),
    "a reader judges many": lambda do: do.verdicts(),
}
MEANWHILE = {
    "gives it away": lambda do: do.put(ALICE, **GIVEN),
    "closes it": lambda do: do.put(ALICE, scopes=["user:alice"], content="closed"),
    "takes bob from its ACL": lambda do: do.put(ALICE, "/acl", acl=[]),
    "retires it": lambda do: do.removed(),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("done", DONE)
async def test_what_is_answered_as_done_counts_though_its_owner_changes_the_item_in_that_moment(
    door: Door, done: str, meanwhile: str
) -> None:
    do = Doing(door)
    async for met in at_every_moment(door, do.saved, DONE[done](do), MEANWHILE[meanwhile](do)):
        about = (met.name, met.told.text, met.rival.text)
        assert met.rival.is_success, about
        vain = await refused_since(door, met.before)
        if met.told.is_success:
            fields = met.told.json().get("fields", {})
            partly = [each["error"]["code"] for each in fields.values() if not each["kept"]]
            assert len(vain) <= len(partly), (vain, about)
        else:
            assert met.told.status_code in (403, 404, 409), about
            assert "carol" not in met.told.text, "whose it is by now is nothing to those for whom it was closed"


async def test_of_a_change_whose_revision_came_too_late_the_verdict_counts_and_the_answer_says_so(door: Door) -> None:
    do = Doing(door)
    told = []
    request = DONE["a writer revises, scores and judges it"](do)
    async for met in at_every_moment(door, do.saved, request, MEANWHILE["takes bob from its ACL"](do)):
        assert met.told.status_code == 200, met.told.text
        fields = met.told.json()["fields"]
        kept = [name for name, each in fields.items() if each["kept"]]
        counted = await rows(door, "SELECT content, score, helpful FROM knowledge WHERE id = ?", met.name)
        assert ("content" in kept) == (counted[0][0] == "bob's"), (fields, counted)
        assert ("update_score" in kept, "add_helpful_case" in kept) == (True, True), fields
        assert counted[0][1:] == (4, 2), counted
        told.append(tuple(kept))
    assert len(told[-1]) == 2, "the last moment is the one right before the append"


async def test_a_verdict_that_came_too_late_is_answered_as_of_an_item_that_is_not_there(door: Door) -> None:
    do = Doing(door)
    async for met in at_every_moment(door, do.saved, DONE["a reader judges it"](do), MEANWHILE["closes it"](do)):
        if not met.told.is_success:
            assert "acl" not in refusal(met.told, 404, "unknown_knowledge")

"""Two decisions on one proposal at once: one holds, and the other is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.doors.furnished import furnished_door
from tests.doors.http_door import ALICE, Door, refusal

E = "/api/evolutions/evolution-1"
TIMES = 4


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with furnished_door() as opened:
        yield opened


@pytest.mark.parametrize("first", ["apply", "reject"])
async def test_of_an_application_and_a_rejection_at_once_one_holds(door: Door, first: str) -> None:
    second = "reject" if first == "apply" else "apply"
    asked = [first, *[second] * TIMES, *[first] * TIMES]
    answers = await asyncio.gather(*(door.post(f"{E}/{decision}", headers=ALICE) for decision in asked))
    held = [answer for answer in answers if answer.is_success]
    assert len(held) == 1, [answer.text for answer in answers]
    for answer in answers:
        assert answer.is_success or refusal(answer, 409, "illegal_state")
    status = (await door.get(E, headers=ALICE)).json()["status"]
    assert status == held[0].json()["status"]
    content = (await door.get("/api/knowledge/older", headers=ALICE)).json()["content"]
    assert (content == "by a model") == (status == "applied")

"""An item that its caller may not read costs what an id costs that there is not: time tells nothing of it either."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.doors.http_door import ALICE, BOB, Door, http_door

READS = (
    "/api/knowledge/{}",
    "/api/knowledge/{}?as_of=2",
    "/api/knowledge/{}/history",
    "/api/knowledge/{}/why",
    "/api/knowledge/{}/recalls",
    "/api/lineage?ref={}",
)
NUMBER = re.compile(r"\b\d+\b")


class Counted:
    """A cursor that notes what it is asked."""

    def __init__(self, cursor: Any, item: str, asked: list[str]) -> None:
        self._cursor, self._item, self._asked = cursor, item, asked

    def execute(self, statement: str, *values: Any) -> Any:
        self._asked.append(NUMBER.sub("?", statement).replace(self._item, "ID"))
        return self._cursor.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        for item in ("hidden", "another"):
            await opened.saved(ALICE, id=item)
        await opened.put("/api/knowledge/hidden", json={"content": "changed"}, headers=ALICE)
        await opened.desk.view.wait_for(await opened.head())
        yield opened


@pytest.mark.parametrize("read", READS)
async def test_a_hidden_item_is_asked_for_like_one_that_there_is_not(
    door: Door, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    item = ""
    ask = door.desk.view.ask

    async def counted(question: Any, *about: Any, **more: Any) -> Any:
        return await ask(lambda cursor: question(Counted(cursor, item, asked), *about, **more))

    monkeypatch.setattr(door.desk.view, "ask", counted)
    told = []
    for item in ("hidden", "absent"):
        asked.clear()
        answer = await door.get(read.format(item), headers=BOB)
        assert answer.status_code in (403, 404)
        told.append((answer.status_code, answer.text.replace(item, "ID"), [*asked]))
        assert asked
    assert told[0] == told[1]

"""The HTTP door over a live desk, asked as an HTTP client asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx

from ledger.event import JsonObject
from tests.doors.live_desk import LiveDesk, Past, live_desk
from tests.doors.one_app import app_of

PROFILE_EXAMPLE: JsonObject = {  # source 000, "用户画像特殊处理"
    "id": "profile_001",
    "type": "user_profile",
    "task": "用户编码风格偏好",
    "tags": {"category": "preference", "domain": "coding_style"},
    "scopes": ["user:123", "project:456"],
    "owner": "user:123",
    "visibility": "shared",
    "content": "用户偏好使用 TypeScript 而非 JavaScript,注重类型安全",
    "source": {"agent_id": "general_assistant", "trace_id": "trace-xxx", "timestamp": "2026-03-03"},
    "eval": {"helpful": 5, "harmful": 0, "confidence": 0.9},
}
AGENT = {"X-Ledger-Agent": "research_agent", "X-Ledger-Org": "cybertogether"}
ALICE = {"X-Ledger-User": "alice"}
BOB = {"X-Ledger-User": "bob"}


class Door:
    """A client of one app, with what tests say often."""

    def __init__(self, desk: LiveDesk, client: httpx.AsyncClient) -> None:
        self.desk = desk
        self.client = client
        self.get, self.post, self.put = client.get, client.post, client.put
        self.patch, self.delete, self.request = client.patch, client.delete, client.request

    async def saved(self, who: dict[str, str] = ALICE, **fields: Any) -> JsonObject:
        """Save an item and wait until it can be read. It says something of its own: a context tells nothing twice."""
        content = f"some content of {fields['id']}" if "id" in fields else "some content"
        payload = {"task": "a task", "content": content, "types": ["tool"], **fields}
        answer = await self.post("/api/knowledge", json=payload, headers=who)
        assert answer.status_code == 201, answer.text
        told: JsonObject = answer.json()
        await self.desk.view.wait_for(told["position"])
        return told

    async def head(self) -> int:
        return (await self.desk.ledger.head()).position


@asynccontextmanager
async def http_door(*, past: Past | None = None, **options: Any) -> AsyncIterator[Door]:
    """The door, open until the block ends."""
    async with live_desk(past) as desk:
        transport = httpx.ASGITransport(app_of(desk, **options))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
            yield Door(desk, client)


def furnished(furnish: Callable[[Door], Awaitable[None]]) -> Callable[[], AbstractAsyncContextManager[Door]]:
    """Opens doors of which each has behind it what `furnish` makes.

    It is made once, behind a door of its own: the others begin with what that came to, as a node that is started again.
    """
    made: list[Past] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Door]:
        if not made:
            async with http_door() as first:
                await furnish(first)
                made.append(first.desk.past())
        async with http_door(past=made[0]) as door:
            await door.desk.view.wait_for(await door.head())
            yield door

    return opened


def refusal(answer: httpx.Response, status: int, code: str) -> str:
    """The message of an error answer, which has to have this status and code."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"], body
    assert set(body["error"]) == {"code", "message", "details"}, body
    assert body["error"]["code"] == code, body
    message: str = body["error"]["message"]
    assert len(message) > 20
    return message

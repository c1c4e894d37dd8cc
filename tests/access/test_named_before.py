"""Whom an item names already it may go on naming: a token bounds whom its holder adds, as an ACL of theirs does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from tests.access.test_door import bearer
from tests.doors.http_door import Door, http_door, refusal

K, D, R = "/api/knowledge", "/api/documents", "/api/resource"
Who = dict[str, str]
FOR_A_TEAM = {"scopes": ["team:web", "public"], "owner": "agent:scribe"}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[tuple[Door, Who, Who]]:
    """A door, its operator, and the agent who owns what the operator saved for a team that the agent is not of."""
    _, operator = create_token(tmp_path, {}, role="operator")
    _, scribe = create_token(tmp_path, {"agent": ["scribe"]})
    async with http_door(tokens=TokenBook(tokens_file(tmp_path))) as opened:
        item = {"id": "item", "types": ["tool"], "task": "t", "content": "first", **FOR_A_TEAM}
        document = {"id": "page", "text": "# A page\n\nfirst", **FOR_A_TEAM}
        resource = {"id": "tool", "title": "t", "body": "first", "shared_with": ["user:mei"], **FOR_A_TEAM}
        for path, body in ((K, item), (D, document), (R, resource)):
            assert (await opened.post(path, json=body, headers=bearer(operator))).is_success
        yield opened, bearer(operator), bearer(scribe)


async def asked(door: Door, who: Who, method: str, path: str, body: Any) -> Any:
    await door.desk.view.wait_for(await door.head())
    return await door.request(method, path, json=body, headers=who)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"{K}/item", {"scopes": ["team:web"]}),
        ("PUT", f"{K}/item", {"scopes": ["team:web", "agent:scribe"], "owner": "agent:scribe"}),
        ("POST", f"{K}/item/revert", {"to_version": 1}),
        ("POST", D, {"id": "page", "text": "# A page\n\nsecond"}),
        ("POST", D, {"id": "page", "text": "# A page\n\nsecond", "scopes": ["team:web"]}),
        (
            "POST",
            R,
            {"id": "tool", "title": "t", "body": "second", "scopes": ["team:web"], "shared_with": ["user:mei"]},
        ),
    ],
    ids=["fewer scopes", "a scope of one's own", "a revert", "a document", "a document's scopes", "a resource"],
)
async def test_an_owner_goes_on_naming_who_is_named(
    door: tuple[Door, Who, Who], method: str, path: str, body: Any
) -> None:
    opened, _, scribe = door
    answer = await asked(opened, scribe, method, path, body)
    assert answer.is_success, answer.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"{K}/item", {"scopes": ["team:web", "team:ops"]}),
        ("PUT", f"{K}/item", {"owner": "team:web"}),
        ("PUT", f"{K}/item", {"content": "second", "owner": "user:mei"}),
        ("POST", D, {"id": "page", "text": "second", "scopes": ["team:ops"]}),
        ("POST", R, {"id": "tool", "title": "t", "body": "b", "scopes": ["user:mei"]}),
        ("POST", R, {"id": "tool", "title": "t", "body": "b", "shared_with": ["team:web"]}),
        ("POST", K, {"types": ["tool"], "task": "t", "content": "c", "scopes": ["team:web"]}),
    ],
    ids=[
        *("another scope", "an owner out of the scopes", "another owner", "another scope of a document"),
        *("a scope out of the ACL", "an ACL out of the scopes", "another item"),
    ],
)
async def test_nobody_adds_whom_their_token_is_not_bound_to(
    door: tuple[Door, Who, Who], method: str, path: str, body: Any
) -> None:
    opened, _, scribe = door
    head = await opened.head()
    assert "your token is not bound to" in refusal(await asked(opened, scribe, method, path, body), 403, "forbidden")
    assert await opened.head() == head


async def test_an_earlier_version_that_named_somebody_who_is_named_no_more_is_not_stated_again(
    door: tuple[Door, Who, Who],
) -> None:
    opened, _, scribe = door
    assert (await asked(opened, scribe, "PUT", f"{K}/item", {"scopes": ["agent:scribe"]})).is_success
    refusal(await asked(opened, scribe, "POST", f"{K}/item/revert", {"to_version": 1}), 403, "forbidden")

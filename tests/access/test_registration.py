"""A token that is bound to a user registers them: both memories begin, once, and for users of good tokens alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kledger.contract.errors import SubjectForgotten
from kledger.contract.scopes import Caller
from ledger.event import NO_LINEAGE, Lineage
from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from producers.operations.desk import Desk
from producers.operations.profiles.changes import register, register_new, replace
from producers.operations.profiles.registration import keep_registered
from tests.doors.live_desk import live_desk
from tests.patience import PATIENCE


def token_for(data: Path, *users: str, expires: datetime | None = None) -> None:
    create_token(data, {"user": list(users)}, "agent", expires, "test")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with live_desk() as opened:
        yield opened


@contextlib.asynccontextmanager
async def registering(desk: Desk, data: Path) -> AsyncIterator[None]:
    task = asyncio.create_task(keep_registered(desk, TokenBook(tokens_file(data), always=True)))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def subjects(desk: Desk, count: int) -> list[str]:
    """The memories of which something is said, once there are so many events."""
    said: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for events in desk.ledger.read(follow=True):
            said += [".".join(event.subject.split(".")[3:5]) for event in events]
            if len(said) >= count:
                break
    return sorted(said)


async def test_a_token_for_a_user_begins_both_memories_of_theirs(desk: Desk, tmp_path: Path) -> None:
    async with registering(desk, tmp_path):
        token_for(tmp_path, "ann", "王 小明")
        told = await subjects(desk, 4)
    assert len(told) == 4
    assert all(one.endswith("created") for one in told)
    await desk.view.wait_for(4)
    found = await desk.view.ask(lambda c: c.execute("SELECT DISTINCT owner FROM profiles ORDER BY 1").fetchall())
    assert found == [("user:ann",), ("user:王 小明",)]


async def test_a_token_that_is_not_good_registers_nobody_and_what_was_begun_is_left_alone(
    desk: Desk, tmp_path: Path
) -> None:
    await register(desk, Caller(user="known"), NO_LINEAGE)
    await replace(desk, Caller(user="begun"), NO_LINEAGE, "work", {"expertise": ["sql"]})
    token_for(tmp_path, "late", expires=datetime.now(UTC) - timedelta(days=1))
    token_for(tmp_path, "known", "begun", "zoe")  # who is registered last of these
    async with registering(desk, tmp_path):
        told = await subjects(desk, 7)
    assert len(told) == 7
    assert not [one for one in told if "late" in one]
    assert len([one for one in told if "zoe" in one]) == 2


async def test_a_user_who_was_forgotten_keeps_nobody_else_from_being_registered(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sealing(desk: Desk, caller: Caller, lineage: Lineage) -> None:
        if caller.user == "ann":
            raise SubjectForgotten(
                "user:ann was forgotten", subject="user:ann"
            )  # as their key says when they are sealed
        await register_new(desk, caller, lineage)

    monkeypatch.setattr("producers.operations.profiles.registration.register_new", sealing)
    token_for(tmp_path, "ann", "bob", "zoe")
    async with registering(desk, tmp_path):
        told = await subjects(desk, 4)
    assert {one.partition("=2F")[0] for one in told} == {"user=3Abob", "user=3Azoe"}

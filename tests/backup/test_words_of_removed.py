"""What an interrupted restore brought of the words of sessions is not left beside what the next one brings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.backup import restoring
from ledger.backup.restoring import restore
from ledger.backup.sessions import keep_sessions
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.sessions.head import Head
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from tests.backup.kept import backed_up, history
from tests.conftest import remove_streams

STAYS, REMOVED, OTHERS = (SessionKey("default", "agent:coder", name) for name in ("stays", "removed", "others"))


@pytest.fixture
async def target(embedded_server: EmbeddedServer) -> BrokerAccess:
    """A broker without a stream."""
    await remove_streams(embedded_server.access)
    return embedded_server.access


@asynccontextmanager
async def sessions(access: BrokerAccess) -> AsyncIterator[SessionStore]:
    await ensure_sessions_stream(access)
    stream = await JetStreamSessions.open(access)
    try:
        yield SessionStore(stream, None)
    finally:
        await stream.close()


async def say(access: BrokerAccess, key: SessionKey, word: str) -> None:
    async with sessions(access) as store:
        head = await store.head(key) or Head(opened=1, begun=1)
        said = [{"id": f"message-{head.count}", "role": "user", "content": word}]
        await store.append(key, head, said, 1)


async def keep(access: BrokerAccess, events: int, directory: Path) -> None:
    await backed_up(history(events), directory)
    async with sessions(access) as store:
        await keep_sessions(store.stream, directory)


async def words(access: BrokerAccess, keys: Iterable[SessionKey] = (STAYS, REMOVED, OTHERS)) -> list[list[str]]:
    async with sessions(access) as store:
        return [
            [each.content for each in await store.page(key, 0, 10)] if await store.head(key) is not None else []
            for key in keys
        ]


@pytest.fixture
async def backups(target: BrokerAccess, tmp_path: Path) -> tuple[Path, Path]:
    """One of before and one of after a session was removed, in which the other went on; the broker has neither."""
    earlier, later = tmp_path / "earlier", tmp_path / "later"
    await say(target, STAYS, "first")
    await say(target, REMOVED, "secret")
    await keep(target, 20, earlier)
    await say(target, STAYS, "second")
    async with sessions(target) as store:
        await store.purge(REMOVED)
    await keep(target, 30, later)
    await remove_streams(target)
    return earlier, later


async def interrupted(access: BrokerAccess, backup: Path, monkeypatch: pytest.MonkeyPatch, *, at: str) -> None:
    """A restore that ends there."""

    async def ends(*_: object) -> int:
        raise BrokerUnavailable("ended")

    with monkeypatch.context() as patched:
        patched.setattr(restoring, at, ends)
        with pytest.raises(BrokerUnavailable, match="ended"):
            await restore(access, backup)


async def test_starting_over_with_another_backup_leaves_no_words_of_the_first(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = backups
    await interrupted(target, earlier, monkeypatch, at="_finish")
    assert await words(target) == [["first"], ["secret"], []]
    await restore(target, later, start_over=True)
    assert await words(target) == [["first", "second"], [], []]


async def test_a_start_over_that_is_cut_as_well_leaves_none_to_the_next(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut between the removal of the stream and that it is there again."""
    earlier, later = backups
    await interrupted(target, earlier, monkeypatch, at="_finish")
    with monkeypatch.context() as patched:
        patched.setattr(restoring, "stream_config", lambda _: {"name": "in vain"})
        with pytest.raises(Exception, match="in vain"):
            await restore(target, later, start_over=True)
    await restore(target, later)
    assert await words(target) == [["first", "second"], [], []]


async def test_a_restore_that_goes_on_has_the_words_that_its_backup_has_by_then(
    backups: tuple[Path, Path], target: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that adds no event keeps the words anew: what is said in a session is no event."""
    _, later = backups
    await interrupted(target, later, monkeypatch, at="_finish")
    await say(target, STAYS, "third")
    async with sessions(target) as store:
        await keep_sessions(store.stream, later)
    await remove_streams(target)
    await interrupted(target, later, monkeypatch, at="_finish")
    async with sessions(target) as store:
        await store.purge(STAYS)
    await say(target, STAYS, "of an earlier run")
    assert (await restore(target, later)).continued_from == 30
    assert await words(target) == [["first", "second", "third"], [], []]


async def test_words_that_were_there_before_the_first_restore_stay(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a repair leaves them, which makes the log anew and no words."""
    earlier, later = backups
    await say(target, OTHERS, "of before")
    await interrupted(target, earlier, monkeypatch, at="_finish")
    await restore(target, later, start_over=True)
    assert (await words(target, [OTHERS])) == [["of before"]]


async def test_a_refused_restore_takes_no_words_away(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = backups
    await interrupted(target, earlier, monkeypatch, at="_finish")
    with pytest.raises(Exception, match="half restored from another backup"):
        await restore(target, later)
    assert await words(target) == [["first"], ["secret"], []]

"""What the store of sessions promises, on either stream: each message once, in order, and whole sessions removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kledger.contract.errors import MessageExists, SubjectForgotten
from ledger.privacy.vault import MemoryVault
from ledger.sessions.head import Head
from ledger.sessions.port import MOST_READ, NewRecord, SessionStream
from ledger.sessions.store import Outcome, SessionStore
from ledger.sessions.subjects import SessionKey

MEI = SessionKey("default", "user:mei", "s-1")
AGENT = SessionKey("default", "agent:coder", "s-1")


def said(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"m-{n}", "role": "user", "content": f"第 {n} 句 word{n}", **more} for n in numbers]


async def appended(store: SessionStore, key: SessionKey, messages: list[dict[str, Any]], at: int = 1_000) -> Outcome:
    async with store.turn(key):
        head = await store.head(key) or Head(opened=1)
        return await store.append(key, head, messages, at)


@pytest.fixture
def vault() -> MemoryVault:
    return MemoryVault()


async def test_messages_are_read_back_in_order_with_numbers_without_gaps(
    stream: SessionStream, vault: MemoryVault
) -> None:
    store = SessionStore(stream, vault)
    await appended(store, MEI, said(*range(700)))
    outcome = await appended(store, MEI, said(*range(700, 720)))
    assert (outcome.appended, outcome.head.count) == (20, 720)
    page = await SessionStore(stream, vault).page(MEI, 0, 1_000)
    assert [message.number for message in page] == list(range(1, 721))
    assert page[3].shown() == {"id": "m-3", "number": 4, "role": "user", "content": "第 3 句 word3"}


async def test_an_id_counts_once_however_often_and_through_whichever_node_it_is_sent(
    stream: SessionStream, vault: MemoryVault
) -> None:
    store, other = SessionStore(stream, vault), SessionStore(stream, vault)
    await appended(store, MEI, said(1, 2, 3))
    outcome = await appended(store, MEI, [*said(2, tokens=12), *said(3, created_at="2026-03-05"), *said(4)])
    assert (outcome.appended, outcome.duplicates, outcome.head.count) == (1, 2, 4)
    outcome = await appended(other, MEI, said(4, 1, 5))
    assert (outcome.appended, outcome.duplicates, outcome.head.count) == (1, 2, 5)
    assert [each.content for each in await store.page(MEI, 0, 10)] == [
        "第 1 句 word1", "第 2 句 word2", "第 3 句 word3", "第 4 句 word4", "第 5 句 word5",
    ]  # fmt: skip


@pytest.mark.parametrize("through", ["the node that has it in memory", "another node"])
@pytest.mark.parametrize("other", [{"content": "else"}, {"role": "tool"}, {"name": "ann"}, {"attachments": [{"a": 1}]}])
async def test_an_id_that_comes_with_other_words_is_refused_and_changes_nothing(
    stream: SessionStream, vault: MemoryVault, through: str, other: dict[str, Any]
) -> None:
    store = SessionStore(stream, vault)
    await appended(store, MEI, said(1, 2, 3))
    before, head = await store.page(MEI, 0, 10), await store.head(MEI)
    asked = store if through == "the node that has it in memory" else SessionStore(stream, vault)
    with pytest.raises(MessageExists, match="m-2"):
        await appended(asked, MEI, [*said(1), {**said(2)[0], **other}, *said(4)])
    assert (await store.page(MEI, 0, 10), await store.head(MEI)) == (before, head)
    assert (await appended(asked, MEI, said(2, 4))).appended == 1


async def test_other_words_behind_more_than_one_batch_leave_the_first_one_out(
    stream: SessionStream, vault: MemoryVault
) -> None:
    store = SessionStore(stream, vault)
    await appended(store, MEI, said(*range(60)))
    with pytest.raises(MessageExists, match="m-0"):
        await appended(store, MEI, [*said(*range(100, 700)), *said(0, content="else")])
    assert len(await store.page(MEI, 0, 1_000)) == 60


async def test_words_that_were_erased_are_compared_with_nothing(stream: SessionStream, vault: MemoryVault) -> None:
    store = SessionStore(stream, vault)
    await appended(store, MEI, said(1))
    await vault.destroy("user:mei", by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    store.drop()
    assert await store.not_there(MEI, said(1, content="else")) == []


async def test_nodes_that_append_at_once_number_every_message(stream: SessionStream, vault: MemoryVault) -> None:
    stores = [SessionStore(stream, vault) for _ in range(3)]
    await asyncio.gather(
        *(
            appended(store, MEI, said(*range(100 * at + 10 * turn, 100 * at + 10 * turn + 10)))
            for turn in range(3)
            for at, store in enumerate(stores)
        )
    )
    page = await stores[0].page(MEI, 0, 1_000)
    assert [message.number for message in page] == list(range(1, 91))
    assert len({message.id for message in page}) == 90


async def test_a_long_message_comes_back_whole(stream: SessionStream, vault: MemoryVault) -> None:
    store = SessionStore(stream, vault)
    content = "长文 long \n" * 100_000
    await appended(store, MEI, [*said(1), {"id": "long", "role": "tool", "content": content}, *said(2)])
    found = await SessionStore(stream, vault).message(MEI, "long")
    assert found is not None
    assert found.content == content
    assert [each.id for each in await store.page(MEI, 0, 10)] == ["m-1", "long", "m-2"]


async def test_the_tail_is_as_of_the_head_also_after_another_node_appended(
    stream: SessionStream, vault: MemoryVault
) -> None:
    store, other = SessionStore(stream, vault), SessionStore(stream, vault)
    head = (await appended(store, MEI, said(*range(60)))).head
    assert [each.id for each in (await store.tail(MEI, head)).messages] == [f"m-{n}" for n in range(10, 60)]
    await appended(other, AGENT, said(*range(500)))
    await appended(other, MEI, said(60, 61))
    now = await store.head(MEI)
    assert now is not None
    assert [each.id for each in (await store.tail(MEI, now)).messages] == [f"m-{n}" for n in range(12, 62)]


async def test_words_of_a_person_are_sealed_and_gone_with_the_key(stream: SessionStream, vault: MemoryVault) -> None:
    store = SessionStore(stream, vault)
    await appended(store, MEI, said(1))
    await appended(store, AGENT, said(1))
    bodies = b"".join(record.body for record in await stream.after("sessions.default.user=3Amei.>", 0, 100))
    assert b"word1" not in bodies
    await vault.destroy("user:mei", by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    store.drop()
    (message,) = await store.page(MEI, 0, 10)
    assert (message.erased, message.content) == (True, "")
    with pytest.raises(SubjectForgotten):
        await appended(store, MEI, said(2))
    assert [each.content for each in await store.page(AGENT, 0, 10)] == ["第 1 句 word1"]


async def test_removing_one_session_leaves_the_others(stream: SessionStream, vault: MemoryVault) -> None:
    store = SessionStore(stream, vault)
    longer = SessionKey("default", "user:mei", "s-11")
    for key in (MEI, longer, AGENT):
        await appended(store, key, said(1, 2))
    await store.purge(MEI)
    assert await store.head(MEI) is None
    assert await store.page(MEI, 0, 10) == []
    assert [len(await store.page(key, 0, 10)) for key in (longer, AGENT)] == [2, 2]
    assert (await appended(store, MEI, said(1))).head.count == 1
    await store.purge_owner("default", "user:mei")
    assert [await store.head(key) for key in (MEI, longer)] == [None, None]
    assert len(await store.page(AGENT, 0, 10)) == 2


async def test_a_batch_is_stored_whole_or_not_at_all(stream: SessionStream) -> None:
    await stream.put([NewRecord("sessions.o.u.s.said.a", b"1", 0)])
    refused = await stream.put(
        [NewRecord("sessions.o.u.s.said.b", b"2", 0), NewRecord("sessions.o.u.s.said.a", b"3", 0)]
    )
    assert refused is None
    assert await stream.last("sessions.o.u.s.said.b") is None


async def test_the_last_records_are_found_behind_many_of_another_session(stream: SessionStream) -> None:
    for n in range(5):
        await stream.put([NewRecord(f"sessions.o.u.s.said.{n}", b"mine", 0)])
    await stream.put([NewRecord(f"sessions.o.u.other.said.{n}", b"theirs", 0) for n in range(900)])
    found = await stream.before("sessions.o.u.s.said.>", 905, 3)
    assert [record.subject[-1] for record in found] == ["2", "3", "4"]
    assert await stream.before("sessions.o.u.s.said.>", 2, 3) == await stream.after("sessions.o.u.s.said.>", 0, 2)


async def test_of_many_large_records_the_last_ones_are_read_as_far_as_a_reading_goes(stream: SessionStream) -> None:
    body = b"x" * 768 * 1024
    count = 2 * MOST_READ // len(body)
    for number in range(count):
        await stream.put([NewRecord(f"sessions.o.u.s.said.{number}", body, 0)])
    found = await stream.before("sessions.o.u.s.said.>", count, count)
    assert [record.position for record in found] == list(range(found[0].position, count + 1))
    assert 1 < len(found) < count
    first = await stream.after("sessions.o.u.s.said.>", 0, count)
    assert 1 < len(first) < count

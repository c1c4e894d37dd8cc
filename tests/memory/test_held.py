"""What a person retired with a reason, or corrected, is held when an import says it again, until somebody decides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.event import JsonObject, NewEvent
from ledger.events.statement import StatementHeld, held_id
from projections.similar.tombstones import SaidAgain, said_again
from tests.doors.http_door import AGENT, ALICE, BOB, Door, http_door, refusal
from tests.memory.test_health import contradict
from tests.memory.test_short_memories import K, M, over, read, said

HELD = f"{M}/held"
SAVED: JsonObject = {"types": ["t"], "task": "t", "content": "c", "scopes": ["user:alice"], "owner": "user:alice"}
RUNS = "The nightly build runs on Fridays at noon."
BACKUP = "数据库每天凌晨两点备份"
TEAM: dict[str, Any] = {"scopes": ["project:web"]}
ANN = {"X-Ledger-User": "ann", "X-Ledger-Project": "web"}
CARL = {"X-Ledger-User": "carl", "X-Ledger-Project": "web"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def retired(
    door: Door, content: str = RUNS, who: dict[str, str] = ALICE, reason: str | None = "wrong", **fields: Any
) -> str:
    """The id of an item that was retired."""
    item: str = (await said(door, K, {"task": "a task", "content": content, "types": ["tool"], **fields}, who))["id"]
    await retire(door, item, who, reason)
    return item


async def retire(door: Door, item: str, who: dict[str, str] = ALICE, reason: str | None = "wrong") -> None:
    answer = await door.delete(f"{K}/{item}", params=None if reason is None else {"reason": reason}, headers=who)
    assert answer.is_success, answer.text
    await door.desk.view.wait_for(await door.head())


async def imported(door: Door, *contents: str, who: dict[str, str] = ALICE, **fields: Any) -> JsonObject:
    """The answer to an import of items that say this."""
    items = [{"task": f"task {n}", "content": each, "types": ["plan"], **fields} for n, each in enumerate(contents)]
    return await said(door, f"{K}/batch", {"items": items}, who)


def outcomes(answer: JsonObject) -> list[str]:
    found = [each["outcome"] for each in answer["results"]]
    counts = {name: answer[name] for name in ("saved", "unchanged", "refused", "held")}
    assert counts == {name: found.count(name) for name in counts}
    return found


@pytest.mark.parametrize(
    ("content", "again"),
    [
        (RUNS, RUNS),
        (RUNS, "the  NIGHTLY build runs on fridays, at noon!"),
        (RUNS, "Please note: the nightly build runs on Fridays at noon"),
        ("Show the log of the failing build first.", "Display the failing build's log first"),
        (BACKUP, BACKUP),
        (BACKUP, "  数据库每天凌晨两点备份。"),
        (BACKUP, "请注意：数据库会在每天凌晨两点备份"),
        (RUNS, "- The nightly build runs on Fridays at noon."),
        (RUNS, "  1. The nightly build runs on Fridays at noon."),
        (RUNS, "> * （2） The nightly build runs on Fridays at noon."),
        (RUNS, "The nightly bu\u200bild ru\u200dns on Fri\u00addays at \u202bnoon\u202c\ufe0f."),
        (RUNS, "The_nightly_build_runs_on_Fridays_at_noon."),
        (RUNS, "<p>The <b>nightly</b> build&nbsp;runs on Fri<i class='a'>days</i> at noon.<br/></p>"),
        (BACKUP, "数据库 每天 凌晨 两点 备份"),
        (BACKUP, "① 数 据 库 每 天 凌 晨 两 点 备 份"),
        ("The rent of the office is 12,500 euros a year.", "the rent of the office is 12500 euros a year"),
        ("办公室的年租金是1250000元，分四次付。", "办公室的年租金是1,250,000元，分四次付"),
        ("The ports are listed: 见 `make ports` 的输出", "the ports are listed： 见 `make ports` 的输出"),
    ],
)
async def test_the_same_statement_in_other_words_is_held(door: Door, content: str, again: str) -> None:
    item = await retired(door, content)
    answer = await imported(door, again)
    assert outcomes(answer) == ["held"]
    (one,) = answer["results"]
    assert one["held"]["item_id"] == item
    (held,) = (await read(door, HELD))["results"]
    assert held["id"] == one["held"]["id"]
    assert (held["content"], held["owner"], held["status"]) == (again, "user:alice", "held")
    assert (held["cause"], held["reason"], held["retired_by"]) == ("retired", "wrong", "user:alice")
    assert (await read(door, K))["results"] == []


@pytest.mark.parametrize(
    ("content", "another"),
    [
        (RUNS, "The nightly build runs on Mondays at noon."),
        (
            "12. March is the deadline of the tax return of the office",
            "13. March is the deadline of the tax return of the office",
        ),
        ("5、六月的房租在月底前交给房东本人", "6、六月的房租在月底前交给房东本人"),
        (RUNS, "The nightly build never runs on Fridays at noon."),
        (RUNS, "The nightly build runs on Fridays at 11."),
        (BACKUP, "数据库每天凌晨三点备份"),
        (BACKUP, "数据库每天凌晨两点不备份"),
        ("Set max_size_of_all in the file a_b to 5.", "Set max_size_of_any in the file a_b to 5."),
        ("The rent of the office is 12,500 euros a year.", "The rent of the office is 12,50 euros a year."),
        ("The rent of the office is 12,500 euros a year.", "The rent of the office is 12,500,000 euros a year."),
        ("The office is on the floors 1,2,300 and 4.", "The office is on the floors 1,2300 and 4."),
        ("Pass -v to the builder of the docs.", "Pass -q to the builder of the docs."),
        ("Copy from staging to production.", "Copy from production to staging."),
    ],
)
async def test_another_statement_is_not_held(door: Door, content: str, another: str) -> None:
    await retired(door, content)
    assert outcomes(await imported(door, another)) == ["saved"]


async def test_what_was_corrected_is_held_and_what_was_made_of_it_is_not(door: Door) -> None:
    item = (await door.saved(content=RUNS))["id"]
    revised = "The nightly build runs on Mondays at eight."
    assert (await door.put(f"{K}/{item}", json={"content": revised}, headers=ALICE)).is_success
    assert outcomes(await imported(door, RUNS, revised)) == ["held", "saved"]
    (held,) = (await read(door, HELD))["results"]
    assert (held["cause"], held["reason"]) == ("corrected", None)


async def test_a_slip_of_the_pen_that_was_mended_holds_nothing(door: Door) -> None:
    item = (await door.saved(content="the nightly build runs on Fridays at noon"))["id"]
    assert (await door.put(f"{K}/{item}", json={"content": RUNS}, headers=ALICE)).is_success
    assert outcomes(await imported(door, RUNS)) == ["saved"]


async def test_what_is_said_again_by_its_own_item_is_not_held(door: Door) -> None:
    item = (await door.saved(content=RUNS))["id"]
    for content in ("It is built by hand now, whenever somebody asks.", RUNS):
        assert (await door.put(f"{K}/{item}", json={"content": content}, headers=ALICE)).is_success
    assert outcomes(await imported(door, RUNS)) == ["saved"]


async def test_a_restored_item_holds_no_more_and_one_retired_again_does(door: Door) -> None:
    item = await retired(door)
    await said(door, f"{K}/{item}/restore")
    assert outcomes(await imported(door, RUNS, id="one")) == ["saved"]
    await retire(door, item)
    assert outcomes(await imported(door, RUNS, id="two")) == ["held"]


async def test_what_nobody_gave_a_reason_for_and_what_an_agent_retired_holds_nothing(door: Door) -> None:
    await retired(door, reason=None)
    await retired(door, reason="")
    agent = {"X-Ledger-Agent": "scribe"}
    await retired(door, who=agent)
    assert outcomes(await imported(door, RUNS)) == ["saved"]
    assert outcomes(await imported(door, RUNS, who=agent)) == ["saved"]


async def test_what_expired_and_was_cleaned_holds_nothing(door: Door) -> None:
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": RUNS, "lifetime": 1})
    await over(door)
    assert (await said(door, f"{M}/clean", {"dry_run": False}))["ids"] == ["mood"]
    assert outcomes(await imported(door, RUNS)) == ["saved"]


async def test_a_decision_on_a_conflict_leaves_a_tombstone_of_the_loser_and_none_of_what_was_merged(door: Door) -> None:
    await door.saved(id="first", content=RUNS)
    await door.saved(id="second", content="The release is cut on Thursdays by the lead.")
    await contradict(door, "first", "second")
    both = {"winner": "first", "reason": "tried", "merge": {"content": "It runs and is cut, each on its day, by hand."}}
    await said(door, "/api/conflicts/conflict-1/resolve", both)
    answer = await imported(door, RUNS, "The release is cut on Thursdays by the lead.")
    assert outcomes(answer) == ["saved", "held"]


async def test_who_saves_it_themselves_is_not_held(door: Door) -> None:
    await retired(door)
    assert (await door.saved(content=RUNS))["version"] == 1
    assert (await said(door, M, {"content": RUNS, "layer": "semantic"}))["status"] == "active"


async def test_it_is_held_once_however_often_it_is_said(door: Door) -> None:
    await retired(door)
    answers = [await imported(door, RUNS, RUNS), await imported(door, RUNS.upper()), await imported(door, RUNS)]
    assert {each["held"]["id"] for answer in answers for each in answer["results"]} == {
        each["id"] for each in (await read(door, HELD))["results"]
    }
    assert (await read(door, HELD))["total"] == 1
    head = await door.head()
    await imported(door, RUNS)
    assert await door.head() == head


async def test_a_release_saves_it_once_as_it_was_stated(door: Door) -> None:
    await retired(door)
    stated: JsonObject = {
        "id": "mine", "task": "builds", "content": RUNS, "types": ["plan"], "tags": {"a": [1, {"b": None}]},
        "score": 5, "acl": [{"entity": "user:bob", "permission": "read_write"}], "trace_id": "t-1",
        "source": {"category": "exp", "urls": ["https://example.com"]}, "created_at": "2025-01-01T00:00:00Z",
        "eval": {"helpful": 3, "harmful": 0, "helpful_history": [{"query": "when", "trace_id": "t-0"}]},
    }  # fmt: skip
    plain = await imported(door, "Something else altogether, which nobody retired.")
    held = (await said(door, f"{K}/batch", {"items": [stated]}))["results"][0]["held"]["id"]
    assert (await door.get(f"{K}/mine", headers=ALICE)).status_code == 404
    key = ALICE | {"Idempotency-Key": "0b7c6dbe-6c0b-4a0a-9f0c-5b6a0e9e3f11"}
    released = await said(door, f"{HELD}/{held}/release", {"reason": "it does"}, key)
    assert (released["status"], released["knowledge_id"]) == ("released", "mine")
    assert await said(door, f"{HELD}/{held}/release", {"reason": "it does"}, key) == released
    refusal(await door.post(f"{HELD}/{held}/drop", json={}, headers=ALICE), 409, "illegal_state")
    item = await read(door, f"{K}/mine")
    assert (item["content"], item["tags"], item["types"]) == (RUNS, stated["tags"], ["plan"])
    assert (item["owner"], item["eval"]["score"], item["acl"]) == ("user:alice", 5, stated["acl"])
    assert (item["eval"]["helpful"], len(item["eval"]["helpful_history"])) == (3, 1)
    assert await read(door, f"{K}/mine", BOB)
    (decided,) = (await read(door, HELD, status="released"))["results"]
    assert (decided["decided_by"], decided["decision"]) == ("user:alice", "it does")
    again = await said(door, f"{K}/batch", {"items": [stated]})
    assert outcomes(again) == ["unchanged"]
    assert outcomes(plain) == ["saved"]


async def test_what_was_released_is_not_held_again(door: Door) -> None:
    await retired(door)
    held = (await imported(door, RUNS))["results"][0]["held"]["id"]
    await said(door, f"{HELD}/{held}/release")
    assert outcomes(await imported(door, RUNS.upper())) == ["saved"]


async def test_what_was_dropped_is_neither_saved_nor_held_again(door: Door) -> None:
    await retired(door)
    held = (await imported(door, RUNS))["results"][0]["held"]["id"]
    dropped = await said(door, f"{HELD}/{held}/drop", {"reason": "still wrong"})
    assert (dropped["status"], dropped["knowledge_id"]) == ("dropped", None)
    again = await imported(door, RUNS)
    assert (outcomes(again), again["results"][0]["held"]["id"]) == (["held"], held)
    assert (await read(door, HELD))["results"] == []
    refusal(await door.post(f"{HELD}/{held}/release", json={}, headers=ALICE), 409, "illegal_state")


async def test_a_release_whose_append_fails_leaves_it_held(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    await retired(door)
    held = (await imported(door, RUNS))["results"][0]["held"]["id"]

    async def fails(events: Any) -> Any:
        assert [event.fact.name for event in events] == ["knowledge.saved", "statement.released"], "one atomic batch"
        raise BrokerUnavailable("the broker has gone away for a while")

    with monkeypatch.context() as patched:
        patched.setattr(door.desk.ledger, "append_many", fails)
        refusal(await door.post(f"{HELD}/{held}/release", json={}, headers=ALICE), 503, "broker_unavailable")
    assert (await read(door, HELD))["total"] == 1
    await said(door, f"{HELD}/{held}/release")
    assert len((await read(door, K))["results"]) == 1


async def test_an_id_that_says_something_else_by_now_is_no_release(door: Door) -> None:
    await retired(door)
    held = (await imported(door, RUNS, id="mine"))["results"][0]["held"]["id"]
    await door.saved(id="mine", content="another thing")
    refusal(await door.post(f"{HELD}/{held}/release", json={}, headers=ALICE), 409, "knowledge_exists")
    assert (await read(door, HELD))["total"] == 1


async def test_an_item_that_is_there_by_now_is_released_without_another_save(door: Door) -> None:
    await retired(door)
    held = (await imported(door, RUNS, id="mine"))["results"][0]["held"]["id"]
    await door.saved(id="mine", task="task 0", content=RUNS, types=["plan"])
    assert (await said(door, f"{HELD}/{held}/release"))["knowledge_id"] == "mine"
    assert (await read(door, f"{K}/mine"))["version"] == 1


@pytest.mark.parametrize("who", [BOB, AGENT], ids=["another person", "an agent"])
async def test_what_is_retired_in_private_neither_holds_nor_shows_for_others(door: Door, who: dict[str, str]) -> None:
    fields = {"id": "theirs", "source": {"timestamp": "2026-01-01"}}
    async with http_door() as without:
        await door.saved(content="anything")
        for _ in range(2):
            await without.saved(content="anything")
        await retired(door)
        plain, hidden = [await imported(each, RUNS, who=who, **fields) for each in (without, door)]
        assert outcomes(hidden) == outcomes(plain) == ["saved"]
        assert plain["results"][0] | {"position": 0} == hidden["results"][0] | {"position": 0}
    await imported(door, RUNS)
    assert (await read(door, HELD, who))["total"] == 0
    (held,) = (await read(door, HELD))["results"]
    for verb in ("release", "drop"):
        refusal(await door.post(f"{HELD}/{held['id']}/{verb}", json={}, headers=who), 404, "unknown_process")


async def test_who_shares_an_item_with_somebody_holds_nothing_of_their_own(door: Door) -> None:
    await retired(door, acl=[{"entity": "user:bob", "permission": "read"}])
    await retired(door, scopes=["user:bob"])
    assert outcomes(await imported(door, RUNS, who=BOB)) == ["saved"]


async def test_what_a_project_read_is_held_for_its_members_and_decided_by_who_retired_it(door: Door) -> None:
    item = await retired(door, who=ANN, owner="user:ann", **TEAM)
    assert outcomes(await imported(door, RUNS, who=BOB, owner="user:bob", **TEAM)) == ["saved"], "bob reads it not"
    answer = await imported(door, RUNS, who=CARL, owner="user:carl", **TEAM)
    assert outcomes(answer) == ["held"]
    held = answer["results"][0]["held"]["id"]
    for who in (ANN, CARL):
        (found,) = (await read(door, HELD, who))["results"]
        assert (found["id"], found["item_id"], found["content"]) == (held, item, RUNS)
    dora = {"X-Ledger-User": "dora", "X-Ledger-Project": "web"}
    assert (await read(door, HELD, dora))["total"] == 0
    refusal(await door.post(f"{HELD}/{held}/release", json={}, headers=dora), 404, "unknown_process")
    released = await said(door, f"{HELD}/{held}/release", who=ANN)
    saved = await read(door, f"{K}/{released['knowledge_id']}", CARL)
    assert (saved["owner"], saved["scopes"]) == ("user:carl", ["project:web"])


async def test_what_is_said_for_ones_own_eyes_is_not_told_to_who_retired_the_project_s_item(door: Door) -> None:
    await retired(door, who=ANN, owner="user:ann", **TEAM)
    assert outcomes(await imported(door, RUNS, who=CARL, owner="user:carl")) == ["saved"]


async def test_an_item_that_is_read_no_more_is_named_by_its_id_alone(door: Door) -> None:
    item = await retired(door, who=ANN, owner="user:ann", **TEAM)
    await imported(door, RUNS, who=CARL, owner="user:carl", **TEAM)
    assert (await door.put(f"{K}/{item}", json={"scopes": ["user:ann"]}, headers=ANN)).is_success
    (held,) = (await read(door, HELD, CARL))["results"]
    assert held["item_id"] == item
    assert {held[name] for name in ("cause", "reason", "retired_by", "retired_at")} == {None}


async def test_the_pages_of_what_is_held_are_whole(door: Door) -> None:
    said_so = [f"Service number {n} listens on port {9000 + n} of the host." for n in range(5)]
    for each in said_so:
        await retired(door, each)
    assert outcomes(await imported(door, *said_so)) == ["held"] * 5
    first = await read(door, HELD, limit=3)
    rest = await read(door, HELD, limit=3, offset=first["next"])
    assert (first["count"], rest["count"], rest["next"], rest["total"]) == (3, 2, None, 5)
    assert {each["content"] for each in [*first["results"], *rest["results"]]} == set(said_so)


@pytest.mark.parametrize(
    "statement",
    [
        {"saved": 1}, {"saved": {"task": 1, "types": "tool", "content": None, "tags": []}}, {"id": 5, "saved": []},
        {"id": "k", "saved": {"content": "c"}, "acl": 7}, {"id": "k", "saved": SAVED | {"owner": "user:bob"}},
        {"id": "k", "saved": SAVED, "acl": 7}, {"id": "", "saved": SAVED}, {"id": "k", "saved": SAVED, "cases": [1]},
        {"id": " a b ", "saved": SAVED}, {"id": "a\u200bb", "saved": SAVED},
        {"id": "k", "saved": SAVED | {"supersedes": "another"}},
    ],
)  # fmt: skip
async def test_whatever_a_publisher_says_is_held_can_be_read_and_dropped_and_not_released(
    door: Door, statement: JsonObject
) -> None:
    fact = StatementHeld(item_id="none", retired_at=1, scopes=["user:alice"], statement=statement)
    await door.desk.ledger.append(NewEvent(fact, "held-1", "user:alice"))
    await door.desk.view.wait_for(await door.head())
    (held,) = (await read(door, HELD))["results"]
    assert (held["id"], held["cause"]) == ("held-1", None)
    refusal(await door.post(f"{HELD}/held-1/release", json={}, headers=ALICE), 422, "invalid_payload")
    assert (await said(door, f"{HELD}/held-1/drop"))["status"] == "dropped"


async def guessed(door: Door, taken: list[str], actor: str, scope: str) -> JsonObject:
    """The answer to an import by alice, when somebody held something under these ids before."""
    await retired(door, id="gone")
    fact = StatementHeld(item_id="none", retired_at=1, scopes=[scope], statement={"id": "k", "saved": SAVED})
    for each in taken:
        await door.desk.ledger.append(NewEvent(fact, each, actor))
    await door.desk.view.wait_for(await door.head())
    return await imported(door, RUNS)


async def test_nobody_takes_the_id_under_which_the_statement_of_somebody_else_is_held() -> None:
    taken: list[str] = []
    for _ in range(3):
        async with http_door() as door:
            answer = await guessed(door, taken, "user:bob", "user:bob")
            assert outcomes(answer) == ["held"]
            (held,) = (await read(door, HELD))["results"]
            assert (held["id"], held["content"]) == (answer["results"][0]["held"]["id"], RUNS)
            taken.append(held["id"])


async def test_what_the_gate_refuses_to_hold_is_refused_and_is_never_said_to_be_held(door: Door) -> None:
    async with http_door() as twin:
        (one,) = (await guessed(twin, [], "user:alice", "user:alice"))["results"]
    answer = await guessed(door, [one["held"]["id"]], "user:alice", "user:alice")
    assert outcomes(answer) == ["refused"]
    assert answer["results"][0]["error"]["code"] == "illegal_state"


async def test_what_was_held_since_the_view_was_looked_at_is_held(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    item, at = await retired(door), await door.head()
    fact = StatementHeld(
        item_id=item, retired_at=at, scopes=["user:alice"], statement={"id": "k", "saved": SAVED | {"content": RUNS}}
    )
    await door.desk.ledger.append(NewEvent(fact, "held-elsewhere", "user:alice"))
    await door.desk.view.wait_for(await door.head())
    looked = iter([{0: SaidAgain(item, at, "held-elsewhere", None)}])
    look = door.desk.view.ask

    async def stale(query: Any, *values: Any) -> Any:
        answer = await look(query, *values)
        return next(looked, answer) if query is said_again else answer

    monkeypatch.setattr(door.desk.view, "ask", stale)
    answer = await imported(door, RUNS)
    assert outcomes(answer) == ["held"]
    assert answer["results"][0]["position"] == at + 1
    assert (await read(door, HELD))["total"] == 1


async def test_an_import_that_is_sent_again_tells_the_same_of_what_it_held(door: Door) -> None:
    await retired(door)
    first = await imported(door, RUNS)
    assert first["results"][0]["position"] == first["position"]
    for again in (await imported(door, RUNS), await imported(door, RUNS)):
        assert again == first


async def test_a_document_with_a_part_that_the_gate_refuses_to_hold_is_refused(door: Door) -> None:
    stated = {"id": "handbook", "text": f"# Builds\n\n{RUNS}\n", "content_type": "text/markdown"}
    await retired(door, id="gone")
    fact = StatementHeld(item_id="none", retired_at=1, scopes=["user:alice"], statement={"id": "k", "saved": SAVED})
    taken = held_id("default", "user:alice", ["gone", str(await door.head()), "user:alice"])
    await door.desk.ledger.append(NewEvent(fact, taken, "user:alice"))
    await door.desk.view.wait_for(await door.head())
    refusal(await door.post("/api/documents", json=stated, headers=ALICE), 409, "illegal_state")
    assert (await read(door, K))["results"] == []


@pytest.mark.parametrize("content", ["I am allergic to the pollen of birches.", "我对白桦树的花粉过敏很多年了。"])
async def test_what_one_gave_up_of_oneself_is_not_held_of_another_who_says_the_same(door: Door, content: str) -> None:
    await retired(door, content, ANN, **TEAM)
    assert outcomes(await imported(door, content, who=CARL, **TEAM)) == ["saved"]
    assert outcomes(await imported(door, content, who=ANN, **TEAM)) == ["held"]
    third = content.replace("I am", "Olek is").replace("我", "老陈")
    await retired(door, third, ANN, **TEAM)
    assert outcomes(await imported(door, third, who=CARL, **TEAM)) == ["held"]

"""Recall that nobody searches for: at an agent's start and on a goal's focus, who sees what, and what is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.event import JsonObject, NewEvent
from ledger.events.knowledge import KnowledgeMerged
from tests.doors.http_door import ALICE, BOB, PROFILE_EXAMPLE, Door, http_door, refusal

CODER = {"X-Ledger-Agent": "coder"}
IN_CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9"}
PROFILE = {**PROFILE_EXAMPLE, "owner": "user:alice", "scopes": ["user:alice", "project:456"]}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def started(door: Door, who: dict[str, str], **asked: Any) -> JsonObject:
    params = {"min_position": await door.head(), **asked}
    answer = await door.get("/api/recall/startup", params=params, headers=who)
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    return told


async def focused(door: Door, who: dict[str, str], goal: str = "goal-123", **body: Any) -> JsonObject:
    answer = await door.post(f"/api/goals/{goal}/focus", json={"description": "content", **body}, headers=who)
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    return told


async def shown(door: Door, who: dict[str, str], goal: str = "goal-123", **params: Any) -> JsonObject:
    params = {"min_position": await door.head(), **params}
    answer = await door.get(f"/api/goals/{goal}", params=params, headers=who)
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    return told


def ids(items: list[JsonObject]) -> list[str]:
    return [item["id"] for item in items]


async def rows(door: Door, query: str) -> list[Any]:
    await door.desk.view.wait_for(await door.head())
    found: list[Any] = await door.desk.view.ask(lambda cursor: cursor.execute(query).fetchall())
    return found


async def profile(door: Door, name: str, confidence: float, helpful: int, **fields: Any) -> None:
    counted = {"confidence": confidence, "helpful": helpful}
    await door.saved(id=name, types=["user_profile"], **{"eval": counted, **fields})


async def test_a_start_loads_the_profile_first_by_confidence_and_then_by_help(door: Door) -> None:
    saved = {name: value for name, value in PROFILE.items() if name not in ("type", "visibility")}
    await door.saved(**saved, types=["user_profile"])
    await profile(door, "sure", 0.95, 1)
    await profile(door, "helped", 0.9, 9)
    await profile(door, "unsure", 0.2, 50)
    await door.saved(id="known", types=["tool"])
    told = await started(door, {**ALICE, **IN_CHINESE})
    assert ids(told["profile"]) == ["sure", "helped", "profile_001", "unsure"]
    assert ids(told["results"]) == ["known"]
    assert told["count"] == 5
    assert "用户偏好使用 TypeScript 而非 JavaScript,注重类型安全" in told["sections"]["profile"]
    assert told["prompt"].index("👤 用户画像 (4 条):") < told["prompt"].index("📚 相关知识 (1 条):")


async def test_of_more_profile_than_fits_the_callers_own_stays(door: Door) -> None:
    for number in range(3):
        await profile(door, f"colleague-{number}", 1.0, 9, scopes=["public"], who=BOB)
    await profile(door, "own", 0.1, 1)
    assert ids((await started(door, ALICE, profile_k=2))["profile"]) == ["colleague-0", "own"]


async def test_a_profile_of_another_user_says_about_whom_it_is(door: Door) -> None:
    await profile(door, "bobs", 0.95, 1, scopes=["public"], who=BOB)
    await profile(door, "own", 0.9, 1)
    await profile(door, "noted", 0.8, 1, scopes=["user:alice"], who=CODER)
    for who, others in ((ALICE, {"bobs": "user:bob"}), (BOB, {}), (CODER, {"bobs": "user:bob", "noted": "user:alice"})):
        told = await started(door, who)
        entries = {
            name: next(part for part in told["sections"]["profile"].split("\n") if f"({name};" in part)
            for name in ids(told["profile"])
        }
        assert {name for name, entry in entries.items() if "about " in entry} == set(others)
        assert all(f"({name}; about {user}; " in entries[name] for name, user in others.items())


async def test_without_a_query_the_best_and_latest_comes_and_with_one_what_fits(door: Door) -> None:
    await door.saved(id="plain", content="about databases")
    await door.saved(id="praised", content="about bicycles", eval={"helpful": 40})
    await door.saved(id="harmful", content="against databases", eval={"harmful": 40})
    await door.saved(id="poor", content="about databases", score=1)
    await door.saved(id="gone", content="about databases")
    await door.delete("/api/knowledge/gone", headers=ALICE)
    assert ids((await started(door, ALICE))["results"]) == ["praised", "plain"]
    assert ids((await started(door, ALICE, top_k=1))["results"]) == ["praised"]
    assert ids((await started(door, ALICE, types="plan"))["results"]) == []
    fitting = ids((await started(door, ALICE, q="databases"))["results"])
    assert "plain" in fitting
    assert "praised" not in fitting


async def test_what_the_profile_has_loaded_does_not_come_a_second_time(door: Door) -> None:
    await profile(door, "own", 0.9, 1, content="content of databases")
    await door.saved(id="said there", content="content of databases")
    await door.saved(id="related", content="more content of databases")
    told = await started(door, ALICE, q="databases", top_k=1)
    assert (ids(told["profile"]), ids(told["results"])) == (["own"], ["related"])


async def test_a_start_puts_the_memories_between_their_markers(door: Door) -> None:
    assert (await started(door, ALICE))["prompt"] == ""
    await door.put("/api/v1/memories/user", json={"content": {"occupation": "厨师"}}, headers=ALICE)
    await door.post("/api/v1/memories", headers=ALICE)
    await door.delete("/api/v1/memories/work", headers=ALICE)
    told = await started(door, ALICE)
    assert told["user_memory"]["occupation"] == "厨师"
    assert told["work_memory"] is None
    assert told["sections"]["work_memory"] is None
    assert told["prompt"].startswith("<!-- USER_MEMORY_START -->\n")
    assert "- occupation: 厨师\n" in told["prompt"]
    assert told["prompt"].endswith("<!-- USER_MEMORY_END -->")
    assert (await started(door, CODER))["user_memory"] is None


async def test_a_start_is_one_recall_with_all_that_was_served_in_its_order(door: Door) -> None:
    await profile(door, "own", 0.9, 1)
    await door.saved(id="known")
    lineage = {"X-Ledger-Trace-Id": "trace-1", "X-Ledger-Message-Id": "message-1"}
    told = await started(door, {**ALICE, **lineage})
    asked = (
        "SELECT kind, query, rank, item_id, actor, trace_id, message_id FROM recalls WHERE recall_id = '{}' ORDER BY 3"
    )
    who = ("user:alice", "trace-1", "message-1")
    expected = [("startup", "", 1, "own", *who), ("startup", "", 2, "known", *who)]
    assert await rows(door, asked.format(told["recall_id"])) == expected
    assert (await started(door, ALICE, record="false"))["recall_id"] is None
    assert len(await rows(door, "SELECT 1 FROM recalls")) == 2


async def test_a_focus_answers_as_the_source_does_and_keeps_its_knowledge_on_the_goal(door: Door) -> None:
    await door.saved(id="k1", task="迁移数据库", content="先建影子表, 再双写", types=["strategy", "tool"])
    trace = {**ALICE, **IN_CHINESE, "X-Ledger-Trace-Id": "trace-1"}
    told = await focused(door, trace, description="迁移数据库")
    assert told["title"] == "✅ Goal 已聚焦"
    assert told["output"] == (
        "当前 Goal: 迁移数据库\n\n📚 相关知识 (1 条):\n1. 迁移数据库 [strategy, tool]\n   先建影子表, 再双写\n"
        "   (k1; 尚无评价)"
    )
    assert ids(told["metadata"]["items"]) == ["k1"]
    goal = await shown(door, {**ALICE, **IN_CHINESE})
    assert (goal["goal_id"], goal["owner"], goal["description"]) == ("goal-123", "user:alice", "迁移数据库")
    assert ids(goal["knowledge"]) == ["k1"]
    assert told["output"].endswith(goal["section"])
    assert (goal["left_out"], goal["focuses"], goal["trace_id"]) == (0, 1, "trace-1")
    served = "SELECT kind, query, item_id, item_version, trace_id FROM recalls"
    assert await rows(door, served) == [("focus", "迁移数据库", "k1", 1, "trace-1")]
    edges = (await door.get("/api/lineage", params={"ref": "k1"}, headers=ALICE)).json()["edges"]
    assert {edge["relation"] for edge in edges if edge["direction"] == "to"} >= {"served", "injected"}


@pytest.mark.parametrize(
    ("task", "content", "shown"),
    [
        ("Mei keeps bees", "Mei keeps bees.", "1. Mei keeps bees. [tool]\n   (k1;"),
        ("梅养蜂", "梅养蜂。", "1. 梅养蜂。 [tool]\n   (k1;"),
        (
            "Mei keeps bees",
            "Mei keeps bees. Ten hives.",
            "1. Mei keeps bees [tool]\n   Mei keeps bees. Ten hives.\n   (k1;",
        ),
        ("Mei", "Mei-Lin keeps bees", "1. Mei [tool]\n   Mei-Lin keeps bees\n   (k1;"),
    ],
)
async def test_what_an_item_says_in_its_task_already_is_said_once(
    door: Door, task: str, content: str, shown: str
) -> None:
    await door.saved(id="k1", task=task, content=content)
    assert shown in (await focused(door, ALICE, description=task))["output"]


async def test_a_goal_focused_again_gets_what_was_saved_since(door: Door) -> None:
    assert "📚 Related knowledge (0 items):" in (await focused(door, ALICE))["output"]
    await door.post(
        "/api/knowledge", json={"id": "new", "task": "t", "content": "content", "types": ["tool"]}, headers=ALICE
    )
    assert ids((await focused(door, ALICE, description="content"))["metadata"]["items"]) == ["new"]
    goal = await shown(door, ALICE)
    assert (ids(goal["knowledge"]), goal["focuses"]) == (["new"], 2)
    assert goal["created_at"] < goal["focused_at"]
    assert await rows(door, "SELECT goal_id, items, focuses FROM goals") == [("goal-123", ["new"], 2)]
    assert await rows(door, "SELECT rank, item_id FROM goal_focuses ORDER BY position") == [(None, None), (1, "new")]


async def test_a_focus_takes_three_items_of_score_three_unless_told_otherwise(door: Door) -> None:
    for number in range(5):
        await door.saved(id=f"k{number}")
    await door.saved(id="poor", score=2)
    assert (await focused(door, ALICE))["count"] == 3
    assert "poor" in ids((await focused(door, ALICE, top_k=10, min_score=2))["metadata"]["items"])


async def test_a_goal_is_its_owners_and_nobody_else_learns_that_it_is_there(door: Door) -> None:
    await door.saved(id="hers")
    await focused(door, ALICE, goal="a%2Fb")
    for who in (BOB, CODER):
        hidden = await door.get("/api/goals/a%2Fb", headers=who)
        missing = await door.get("/api/goals/nothing", headers=who)
        assert refusal(hidden, 404, "unknown_goal") == refusal(missing, 404, "unknown_goal").replace("nothing", "a/b")
        named = await door.get("/api/goals/a%2Fb", params={"owner": "user:alice"}, headers=who)
        assert refusal(named, 404, "unknown_goal") == refusal(hidden, 404, "unknown_goal")
    refusal(await door.get("/api/goals/a%2Fb"), 404, "unknown_goal")
    assert ids((await shown(door, {}, goal="a%2Fb", owner="user:alice"))["knowledge"]) == ["hers"]  # the operator
    assert ids((await shown(door, {**ALICE, **CODER}, goal="a%2Fb"))["knowledge"]) == ["hers"]


async def test_goals_are_listed_for_their_owner_alone_and_for_the_operator(door: Door) -> None:
    await door.saved(id="hers")
    for goal, who, description in (
        ("a", ALICE, "content"),
        ("b", ALICE, "more"),
        ("c", BOB, "his"),
        ("a", ALICE, "now"),
    ):
        last = await focused(door, who, goal=goal, description=description)

    async def named(who: dict[str, str], **asked: Any) -> list[tuple[str, str, str, int]]:
        answer = await door.get("/api/goals", params={**asked, "min_position": last["position"]}, headers=who)
        found = answer.json()
        assert found["count"] == len(found["results"]) <= found["total"]
        return [(each["goal_id"], each["owner"], each["description"], each["focuses"]) for each in found["results"]]

    hers = [("a", "user:alice", "now", 2), ("b", "user:alice", "more", 1)]
    his = [("c", "user:bob", "his", 1)]
    assert await named(ALICE) == hers
    assert await named(ALICE, limit=1, offset=1) == hers[1:]
    assert await named(ALICE, offset=7) == []
    assert await named(BOB) == his
    assert await named(BOB, owner="user:alice") == []
    assert await named({}) == [hers[0], *his, hers[1]], "the operator's are all, the last one first"
    assert await named({}, owner="user:bob") == his


async def test_two_agents_that_call_their_goals_alike_never_meet(door: Door) -> None:
    await door.saved(id="hers")
    await focused(door, ALICE, description="content of alice")
    await focused(door, BOB, description="content of bob")
    assert (await shown(door, ALICE))["description"] == "content of alice"
    assert (await shown(door, BOB))["description"] == "content of bob"


async def test_a_goal_never_shows_what_its_reader_may_not_see_now(door: Door) -> None:
    team = {"X-Ledger-User": "alice", "X-Ledger-Team": "web"}
    await door.saved(id="closed", scopes=["public"], who=BOB)
    await door.saved(id="of-the-team", scopes=["team:web"], who=BOB)
    await door.saved(id="retired", scopes=["public"], who=BOB)
    await door.saved(id="kept", scopes=["public"], who=BOB)
    assert len((await focused(door, team, top_k=10))["metadata"]["items"]) == 4
    await door.put("/api/knowledge/closed", json={"scopes": ["user:bob"], "content": "secret"}, headers=BOB)
    await door.put("/api/knowledge/kept", json={"content": "content, revised"}, headers=BOB)
    await door.delete("/api/knowledge/retired", headers=BOB)
    goal = await shown(door, ALICE)  # she is not speaking for the team now
    assert ids(goal["knowledge"]) == ["kept"]
    assert goal["left_out"] == 3
    assert "secret" not in str(goal)
    (item,) = goal["knowledge"]
    assert (item["content"], item["version"], item["focused_version"]) == ("content, revised", 2, 1)
    assert set(ids((await shown(door, team))["knowledge"])) == {"kept", "of-the-team"}


async def test_in_the_place_of_what_was_merged_a_goal_shows_what_took_its_place(door: Door) -> None:
    for name in ("first", "second", "survivor"):
        await door.saved(id=name)
    assert len((await focused(door, ALICE, top_k=3))["metadata"]["items"]) == 3
    for name, into in (("first", "second"), ("second", "survivor")):
        fact = KnowledgeMerged(into=into, slim="slim-1")
        await door.desk.ledger.append(NewEvent(fact, name, "user:alice"))
    goal = await shown(door, ALICE)
    assert ids(goal["knowledge"]) == ["survivor"]
    assert goal["left_out"] == 0
    given = {"scopes": ["user:bob"], "owner": "user:bob"}
    await door.put("/api/knowledge/survivor", json=given, headers=ALICE)
    goal = await shown(door, ALICE)
    assert (goal["knowledge"], goal["left_out"]) == ([], 3)


async def test_a_start_tells_nobody_of_an_item_outside_their_scopes(door: Door) -> None:
    scopes = ["user:alice", "user:bob", "project:p", "team:t", "org:o", "agent:coder", "public"]
    for scope in scopes:
        await profile(door, f"profile {scope}", 0.9, 1, scopes=[scope], owner="user:zoe", who={"X-Ledger-User": "zoe"})
        await door.saved(id=f"item {scope}", scopes=[scope], owner="user:zoe", who={"X-Ledger-User": "zoe"})
    headers = {scope: {f"X-Ledger-{scope.partition(':')[0].title()}": scope.partition(":")[2]} for scope in scopes[:-1]}
    principals = [*headers.values(), {}, {**headers["user:alice"], **headers["project:p"]}, {"X-Ledger-User": "nobody"}]
    for who in principals:
        seen = {f"{name.removeprefix('X-Ledger-').lower()}:{value}" for name, value in who.items()} | {"public"}
        visible = {scope for scope in scopes if scope in seen or not who}  # who says nothing reads all
        for query in ("", "content"):
            told = await started(door, who, q=query, top_k=50, profile_k=50)
            assert set(ids(told["profile"])) == {f"profile {scope}" for scope in visible}
            assert set(ids(told["results"])) == {f"item {scope}" for scope in visible}
            hidden = set(scopes) - visible
            assert not any(
                f"item {scope}" in told["prompt"] or f"profile {scope}" in told["prompt"] for scope in hidden
            )
        answered = await focused(door, who, top_k=50)
        assert {name.partition(" ")[2] for name in ids(answered["metadata"]["items"])} == visible


async def test_a_focus_sent_again_with_its_key_is_kept_once_and_answers_the_same(door: Door) -> None:
    await door.saved(id="k1")
    keyed = {**ALICE, "Idempotency-Key": "one"}
    first = await focused(door, keyed)
    await door.saved(id="k2")
    head = await door.head()
    again = await focused(door, keyed)
    assert (again["event_id"], again["position"], again["recall_id"]) == tuple(
        first[name] for name in ("event_id", "position", "recall_id")
    )
    assert ids(again["metadata"]["items"]) == ["k1"]
    assert await door.head() == head


@pytest.mark.parametrize(
    ("goal", "body", "code"),
    [
        ("g", {}, "invalid_payload"),
        ("g", {"description": " "}, "invalid_payload"),
        ("g", {"description": "x", "top": 3}, "invalid_payload"),
        ("g", {"description": "x", "top_k": 0}, "invalid_payload"),
        ("x" * 201, {"description": "x"}, "invalid_payload"),
        ("%00", {"description": "x"}, "invalid_payload"),
    ],
)
async def test_a_focus_that_does_not_fit_is_refused(door: Door, goal: str, body: JsonObject, code: str) -> None:
    refusal(await door.post(f"/api/goals/{goal}/focus", json=body, headers=ALICE), 422, code)
    assert await door.head() == 0


async def test_the_prompts_of_the_source_are_handed_out_in_two_languages(door: Door) -> None:
    listed = (await door.get("/api/prompts")).json()["prompts"]
    assert [each["name"] for each in listed] == ["knowledge_extraction", "knowledge_management", "research"]
    for each in listed:
        texts = {}
        for language in each["languages"]:
            told = (await door.get(f"/api/prompts/{each['name']}", params={"language": language})).json()
            assert (told["name"], told["language"]) == (each["name"], language)
            texts[language] = told["text"]
            assert told["description"] not in ("", told["title"])
        assert each["description"] == (await door.get(f"/api/prompts/{each['name']}")).json()["description"]
        assert set(texts) == {"zh", "en"}
        assert texts["zh"] != texts["en"]
    managing = (await door.get("/api/prompts/knowledge_management", headers=IN_CHINESE)).json()["text"]
    assert managing.startswith('## 知识管理\n\n当你使用 `goal(action="focus")` 聚焦到某个 goal 时,系统会自动检索')
    assert managing.endswith("调研完成后,再次 focus 该 goal,新保存的知识会被自动注入。\n")
    refusal(await door.get("/api/prompts/nothing"), 404, "unknown_prompt")

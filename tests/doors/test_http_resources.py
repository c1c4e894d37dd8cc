"""Resources over HTTP: the scenarios of source 001 as written, who reads a secret, and what is never valid (X1-X4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ledger.event import JsonObject
from tests.doors.http_door import AGENT, ALICE, BOB, Door, http_door, refusal

CODE: JsonObject = {
    "id": "code/selenium/undetected_login",
    "title": "Selenium 绕过检测登录代码",
    "body": "import undetected_chromedriver as uc\n\ndriver = uc.Chrome()...",
    "content_type": "code",
    "metadata": {"language": "python"},
}
CREDENTIAL: JsonObject = {
    "id": "credentials/website_a",
    "title": "某网站测试账号",
    "body": "使用方法:直接登录即可,每天限额 100 次",
    "secure_body": "账号:user@example.com\n密码:SecurePass123",
    "content_type": "credential",
    "metadata": {"acquired_at": "2026-03-06T10:00:00Z"},
}
COOKIE: JsonObject = {
    "id": "cookies/website_a",
    "title": "某网站 Cookie",
    "body": "适用于:已登录状态的 API 调用",
    "secure_body": "session_id=abc123; auth_token=xyz789",
    "content_type": "cookie",
    "metadata": {"acquired_at": "2026-03-06T10:00:00Z", "expires_at": "2026-03-07T10:00:00Z"},
}
USES: list[JsonObject] = [  # the knowledge of the four scenarios
    {
        "task": "使用 Selenium 登录某网站并绕过反爬检测",
        "content": "使用 undetected_chromedriver 可以绕过大部分检测。",
        "types": ["tool", "strategy"],
        "resource_ids": ["code/selenium/undetected_login"],
    },
    {
        "task": "登录某网站进行数据采集",
        "content": "使用测试账号登录,注意:1) 每天限额 100 次",
        "types": ["tool", "usecase"],
        "resource_ids": ["credentials/website_a"],
    },
    {
        "task": "使用已登录的 Cookie 访问某网站 API",
        "content": "Cookie 获取方法:手动登录后从浏览器导出。",
        "types": ["tool"],
        "resource_ids": ["cookies/website_a"],
    },
    {
        "task": "使用 Selenium 登录某网站",
        "content": "使用 undetected_chromedriver 绕过检测,配合测试账号登录",
        "types": ["tool", "usecase"],
        "resource_ids": ["code/selenium/undetected_login", "credentials/website_a"],
    },
]
CAROL = {"X-Ledger-User": "carol", "X-Ledger-Team": "crawlers"}
TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def kept(door: Door, who: dict[str, str] = ALICE, **said: Any) -> JsonObject:
    """Save a resource and wait until it can be read."""
    answer = await door.post("/api/resource", json={"id": "r", "title": "t", **said}, headers=who)
    assert answer.status_code == 201, answer.text
    told: JsonObject = answer.json()
    await door.desk.view.wait_for(told["position"])
    return told


async def read(door: Door, resource_id: str, who: dict[str, str] = ALICE, **params: Any) -> JsonObject:
    answer = await door.get(f"/api/resource/{resource_id}", headers=who, params=params)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    told: JsonObject = answer.json()
    return told


@pytest.mark.parametrize("who", [{}, ALICE, AGENT], ids=["nobody named", "a user", "an agent"])
async def test_the_scenarios_of_the_source_work_as_written(door: Door, who: dict[str, str]) -> None:
    for resource in (CODE, CREDENTIAL, COOKIE):
        await kept(door, who, **resource)
    for resource, secure in ((CODE, "none"), (CREDENTIAL, "given")):
        told = await read(door, resource["id"], who)
        assert {name: told[name] for name in resource} == resource
        assert (told["secure"], told["valid"], told["expired"]) == (secure, True, False)
    cookie = await read(door, COOKIE["id"], who)
    assert (cookie["secure_body"], cookie["secure"]) == (None, "expired")
    assert (cookie["valid"], cookie["expired"]) == (False, True)
    for use in USES:
        item = await door.saved(who, **use)
        found = (await door.get(f"/api/knowledge/{item['id']}", headers=who)).json()
        assert found["resource_ids"] == use["resource_ids"]
        assert found["resources"] == [{"id": name, "readable": True} for name in use["resource_ids"]]


async def test_a_slash_in_an_id_may_be_raw_or_encoded(door: Door) -> None:
    for resource_id in ("code/登录/x y", "a%2Fb", "code/history"):
        await kept(door, id=resource_id)
    for path in ("code/%E7%99%BB%E5%BD%95/x%20y", "code%2F%E7%99%BB%E5%BD%95%2Fx%20y"):
        assert (await read(door, path))["id"] == "code/登录/x y"
    assert (await read(door, "a%252Fb"))["id"] == "a%2Fb"
    assert (await read(door, "code%2Fhistory"))["id"] == "code/history"
    life = (await door.get("/api/resource/code/%E7%99%BB%E5%BD%95/x%20y/history", headers=ALICE)).json()
    assert [version["change"] for version in life["versions"]] == ["saved"]


@pytest.mark.parametrize("bad", ["", "/a", "a/", "a//b", "a/../b", "./a", "a/ /b", "a\nb", "x" * 201])
async def test_an_id_that_is_no_plain_path_is_refused(door: Door, bad: str) -> None:
    message = refusal(await door.post("/api/resource", json={"id": bad, "title": "t"}), 422, "invalid_payload")
    assert "id" in message
    assert await door.head() == 0


async def test_the_secret_is_for_the_owner_and_those_it_is_shared_with(door: Door) -> None:
    await kept(door, secure_body="the-secret", scopes=["public"], shared_with=["team:crawlers"])
    for who in (ALICE, CAROL):
        assert (await read(door, "r", who))["secure_body"] == "the-secret"
    for who in (BOB, {}, {"X-Ledger-Agent": "alice"}):
        told = await read(door, "r", who)
        assert (told["secure_body"], told["secure"], told["title"]) == (None, "withheld", "t")
        assert (await read(door, "r", who, include_expired="true"))["secure"] == "withheld"


async def test_a_resource_out_of_scope_is_like_one_that_is_not_there(door: Door) -> None:
    await kept(door, id="hers", secure_body="the-secret")
    for method, url in (
        ("GET", "/api/resource/hers"),
        ("GET", "/api/resource/hers/history"),
        ("DELETE", "/api/resource/hers"),
        ("DELETE", "/api/resource/hers?destroy_secret=true"),
        ("POST", "/api/resource/hers/restore"),
    ):
        hidden = await door.request(method, url, headers=BOB)
        missing = await door.request(method, url.replace("hers", "none"), headers=BOB)
        assert refusal(hidden, 404, "unknown_resource") == refusal(missing, 404, "unknown_resource").replace(
            "none", "hers"
        )
    assert (await door.get("/api/resource", headers=BOB)).json()["results"] == []
    taken = await door.post("/api/resource", json={"id": "hers", "title": "mine"}, headers=BOB)
    assert "alice" not in refusal(taken, 403, "not_owner")
    item = await door.saved(BOB, resource_ids=["hers", "none"])
    found = (await door.get(f"/api/knowledge/{item['id']}", headers=BOB)).json()
    assert found["resources"] == [{"id": "hers", "readable": False}, {"id": "none", "readable": False}]
    assert (await read(door, "hers"))["secure_body"] == "the-secret"


async def test_whom_a_secret_is_shared_with_sees_the_resource_as_well(door: Door) -> None:
    await kept(door, secure_body="the-secret", shared_with=["user:bob"])
    assert (await read(door, "r", BOB))["secure_body"] == "the-secret"
    assert [each["id"] for each in (await door.get("/api/resource", headers=BOB)).json()["results"]] == ["r"]
    refusal(await door.delete("/api/resource/r", headers=BOB), 403, "not_owner")
    again = await kept(door, secure_body="the-secret")
    refusal(await door.get("/api/resource/r", headers=BOB), 404, "unknown_resource")
    then = await door.get(f"/api/resource/r?as_of={again['position'] - 1}", headers=BOB)
    refusal(then, 404, "unknown_resource")  # what was closed since stays closed


async def test_what_has_expired_is_marked_and_only_its_owner_reads_the_secret_who_asks_for_it(door: Door) -> None:
    await kept(door, CAROL, **{**COOKIE, "shared_with": ["user:bob"], "owner": "user:carol"})
    for who in (CAROL, BOB):
        told = await read(door, COOKIE["id"], who)
        assert (told["secure_body"], told["secure"], told["valid"]) == (None, "expired", False)
    assert (await read(door, COOKIE["id"], BOB, include_expired="true"))["secure_body"] is None
    told = await read(door, COOKIE["id"], CAROL, include_expired="true")
    assert (told["secure_body"], told["valid"], told["expired"]) == (COOKIE["secure_body"], False, True)
    (listed,) = (await door.get("/api/resource?content_type=cookie", headers=CAROL)).json()["results"]
    assert (listed["expired"], listed["valid"], listed["has_secure"]) == (True, False, True)
    assert "secure_body" not in listed
    renewed = {**COOKIE, "secure_body": "session_id=new", "metadata": {"expires_at": TOMORROW}}
    await kept(door, CAROL, **renewed)
    told = await read(door, COOKIE["id"], CAROL)
    assert (told["secure_body"], told["valid"]) == ("session_id=new", True)


@pytest.mark.parametrize("when", ["tomorrow", "2026-03-07", "2026-03-07T10:00:00", "2026-02-30T10:00:00Z", 5])
async def test_a_moment_that_is_none_is_refused(door: Door, when: object) -> None:
    body = {"id": "r", "title": "t", "metadata": {"expires_at": when}}
    assert "expires_at" in refusal(await door.post("/api/resource", json=body), 422, "invalid_payload")


async def test_each_save_states_the_whole_and_its_history_stays(door: Door) -> None:
    first = await kept(door, secure_body="one", body="b", metadata={"n": 1})
    second = await kept(door, title="renamed", secure_body="two")
    assert (first["version"], second["version"]) == (1, 2)
    assert (await kept(door, title="renamed", secure_body="two")) == {**second, "duplicate": True}
    told = await read(door, "r")
    assert (told["title"], told["body"], told["metadata"], told["version"]) == ("renamed", "", {}, 2)
    then = await read(door, "r", as_of=first["position"])
    assert (then["title"], then["secure_body"], then["secure"], then["valid"]) == ("t", None, "superseded", False)
    assert (await read(door, "r", as_of=first["position"], include_expired="true"))["secure_body"] == "one"
    third = await kept(door, title="renamed")
    assert (await read(door, "r"))["secure"] == "none"
    life = (await door.get("/api/resource/r/history", headers=ALICE)).json()
    assert [(version["version"], version["has_secure"]) for version in life["versions"]] == [
        (1, True),
        (2, True),
        (3, False),
    ]
    stale = {"id": "r", "title": "x", "expected_version": 2}
    answer = await door.post("/api/resource", json=stale, headers=ALICE)
    assert "version 3" in refusal(answer, 409, "version_conflict")
    refusal(
        await door.post("/api/resource", json={"id": "r", "title": "x", "owner": "user:bob"}, headers=ALICE),
        403,
        "not_owner",
    )
    assert await door.head() == third["position"]


async def test_a_retry_with_the_same_key_is_one_version(door: Door) -> None:
    body = {"id": "r", "title": "t", "secure_body": "one"}
    headers = {**ALICE, "Idempotency-Key": "k"}
    first = (await door.post("/api/resource", json=body, headers=headers)).json()
    await kept(door, secure_body="two")
    again = await door.post("/api/resource", json=body, headers=headers)
    assert again.json() == {**first, "duplicate": True}
    assert (await read(door, "r", min_position=again.json()["position"]))["secure_body"] == "two"
    gone = {**ALICE, "Idempotency-Key": "gone"}
    retired = (await door.delete("/api/resource/r", headers=gone)).json()
    await door.desk.view.wait_for(retired["position"])
    assert (await door.delete("/api/resource/r", headers=gone)).json() == retired


async def test_what_is_retired_is_not_valid_until_it_is_restored(door: Door) -> None:
    await kept(door, secure_body="one", shared_with=["user:bob"])
    retired = await door.delete("/api/resource/r?reason=closed", headers=ALICE)
    await door.desk.view.wait_for(retired.json()["position"])
    refusal(await door.delete("/api/resource/r", headers=ALICE), 409, "illegal_state")
    told = await read(door, "r", BOB)
    assert (told["status"], told["secure_body"], told["secure"], told["valid"]) == ("retired", None, "retired", False)
    assert (await read(door, "r", include_expired="true"))["secure_body"] == "one"
    assert (await door.get("/api/resource", headers=ALICE)).json()["count"] == 0
    assert (await door.get("/api/resource?status=all", headers=ALICE)).json()["count"] == 1
    back = await door.post("/api/resource/r/restore", headers=ALICE)
    await door.desk.view.wait_for(back.json()["position"])
    assert (await read(door, "r", BOB))["secure_body"] == "one"
    refusal(await door.post("/api/resource/r/restore", headers=ALICE), 409, "illegal_state")


async def test_a_destroyed_secret_is_gone_in_every_version(door: Door) -> None:
    first = await kept(door, secure_body="one")
    await kept(door, secure_body="two")
    gone = await door.delete("/api/resource/r?destroy_secret=true", headers=ALICE)
    assert gone.status_code == 200, gone.text
    await door.desk.view.wait_for(gone.json()["position"])
    told = await read(door, "r", include_expired="true")
    assert (told["status"], told["secure_body"], told["secure"]) == ("retired", None, "none")
    then = await read(door, "r", as_of=first["position"], include_expired="true")
    assert (then["secure_body"], then["secure"]) == (None, "erased")
    life = (await door.get("/api/resource/r/history", headers=ALICE)).json()["versions"]
    assert [version["change"] for version in life] == ["saved", "saved", "retired", "secret_destroyed"]
    body = {"id": "r", "title": "t", "secure_body": "three"}
    refusal(await door.post("/api/resource", json=body, headers=ALICE), 409, "illegal_state")
    await kept(door, title="without a secret")


async def test_whoever_writes_at_once_makes_one_version_each(door: Door) -> None:
    import asyncio

    async def save(number: int) -> httpx.Response:
        return await door.post("/api/resource", json={"id": "r", "title": f"t{number}"}, headers=ALICE)

    answers = await asyncio.gather(*(save(number) for number in range(4)))
    assert sorted(answer.json()["version"] for answer in answers) == [1, 2, 3, 4]

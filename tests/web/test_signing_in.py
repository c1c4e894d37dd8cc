"""Signing in and out: who looks is said once, kept in a cookie that no script reads, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from kledger.client.clients import AsyncLedgerClient
from kledger.client.connection import Connection
from kledger.client.wire import Wire
from kledger.contract.errors import Forbidden
from kledger.contract.scopes import Caller
from producers.access.tokens import create_token, revoke_token
from producers.web import interface
from producers.web.addresses import HOME, local
from producers.web.sessions import IDLE, LONGEST, Session, Sessions
from producers.web.site import Page
from tests.doors.http_door import http_door
from tests.journeys.running_node import RunningNode, running
from tests.patience import PATIENCE
from tests.web.visitor import Visitor, visitor, words

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningNode, Path]]:
    data = tmp_path_factory.mktemp("web") / "data"
    data.mkdir()
    create_token(data, {}, "operator")
    with running(data) as node:
        yield node, data


def test_a_browser_at_the_address_of_a_node_is_led_to_the_page_and_asked_who_looks(shared_node: RunningNode) -> None:
    with httpx.Client(base_url=shared_node.url, headers=BROWSER, follow_redirects=True, timeout=PATIENCE) as http:
        answer = http.get("/")
    assert answer.url.path == "/ui/sign-in"
    assert "Who are you?" in words(answer.text)


def test_a_program_at_the_address_of_a_node_is_told_what_is_where(shared_node: RunningNode) -> None:
    assert httpx.get(shared_node.url, timeout=PATIENCE).json()["links"]["page"] == "/ui"


def test_after_signing_in_one_is_where_one_wanted_to_be(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        asked = person.get("/ui/knowledge?q=lantern")
        assert asked.url.path == "/ui/sign-in"
        answer = person.post("/ui/sign-in", {"as": "operator", "next": "/ui/knowledge?q=lantern"})
        assert str(answer.url).endswith("/ui/knowledge?q=lantern")


def test_who_is_named_sees_what_is_theirs_and_nothing_of_others(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ledger.acting_as(user="wilma").save("the lamp of wilma", "behind the door", ["tool"], id="wilmas-lamp")
    with visitor(shared_node.url, user="wilma") as wilma, visitor(shared_node.url, user="fred") as fred:
        assert "the lamp of wilma" in wilma.get("/ui/knowledge").text
        assert "the lamp of wilma" not in fred.get("/ui/knowledge").text
        assert "user:wilma" in words(wilma.get("/ui").text)


def test_nobody_is_the_operator_by_leaving_the_form_empty(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        person.get("/ui/sign-in")
        answer = person.post("/ui/sign-in", {"user": ""})
        assert answer.status_code == 403
        assert "nobody is named" in words(answer.text)


def test_a_name_that_no_entity_can_have_is_refused_with_the_reason(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        person.get("/ui/sign-in")
        for typed in ({"user": "user:ann"}, {"agent": "user:ann"}, {"team": "web, data"}):
            answer = person.post("/ui/sign-in", typed)
            assert answer.status_code == 403
            # not to write the kind too, which is what other forms ask for
            assert "one name alone, without its kind before it: mei, and not user:mei." in words(answer.text)
            assert "Write its kind" not in words(answer.text)
        assert "Write its kind and its name" in words(person.post("/ui/sign-in", {"scopes": "ann"}).text)


def test_with_tokens_one_signs_in_with_one_and_sees_as_its_holder(guarded: tuple[RunningNode, Path]) -> None:
    node, data = guarded
    _, token = create_token(data, {"user": ["ada"]}, "agent")
    with visitor(node.url, token) as ada:
        page = words(ada.get("/ui").text)
        assert "Audit" not in page
        assert "SQL" not in page
    with visitor(node.url, signed_in=False) as person:
        person.get("/ui/sign-in")
        assert person.post("/ui/sign-in", {"token": "kledger_" + "A" * 43}).status_code == 403


def test_a_token_of_several_asks_which_one(guarded: tuple[RunningNode, Path]) -> None:
    node, data = guarded
    _, token = create_token(data, {"user": ["ann", "ben"]}, "agent")
    with visitor(node.url, signed_in=False) as person:
        person.get("/ui/sign-in")
        asked = person.post("/ui/sign-in", {"token": token})
        assert asked.status_code == 403
        assert "user:ann, user:ben" in words(asked.text)
        assert person.post("/ui/sign-in", {"token": token, "user": "ben"}).status_code == 200
        assert person.post("/ui/sign-in", {"token": token, "user": "eve"}).status_code == 403


def test_a_session_ends_with_its_token(guarded: tuple[RunningNode, Path]) -> None:
    node, data = guarded
    record, token = create_token(data, {"user": ["ida"]}, "agent")
    with visitor(node.url, token) as ida:
        assert ida.get("/ui/knowledge").status_code == 200
        revoke_token(data, record.id)
        assert ida.get("/ui/knowledge").status_code == 401
        assert ida.get("/ui/knowledge").url.path == "/ui/sign-in"


def test_a_token_that_is_over_opens_nothing(guarded: tuple[RunningNode, Path]) -> None:
    node, data = guarded
    _, token = create_token(data, {"user": ["ada"]}, "agent", datetime.now(UTC) - timedelta(seconds=1))
    with visitor(node.url, signed_in=False) as person:
        person.get("/ui/sign-in")
        assert "was good until" in words(person.post("/ui/sign-in", {"token": token}).text)


def test_who_signs_out_is_signed_out_at_the_node_too(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="ann") as ann:
        kept = httpx.Cookies(ann.http.cookies)
        assert ann.get("/ui").url.path == "/ui"
        ann.post("/ui/sign-out")
        with httpx.Client(base_url=shared_node.url, cookies=kept, follow_redirects=True, timeout=PATIENCE) as thief:
            assert thief.get("/ui").url.path == "/ui/sign-in"


def test_signing_in_gives_a_new_session_and_ends_the_one_before(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="ann") as ann:
        before = httpx.Cookies(ann.http.cookies)
        ann.sign_in(user="ben")
        assert "user:ben" in words(ann.get("/ui").text)
        with httpx.Client(base_url=shared_node.url, cookies=before, follow_redirects=True, timeout=PATIENCE) as other:
            assert other.get("/ui").url.path == "/ui/sign-in"


def test_the_cookie_is_for_no_script_and_no_other_site_and_secure_behind_tls(shared_node: RunningNode) -> None:
    host = httpx.URL(shared_node.url).netloc.decode()
    with httpx.Client(base_url=shared_node.url, timeout=PATIENCE) as http:
        person = Visitor(http)
        person.get("/ui/sign-in")
        for origin, secure in ((f"http://{host}", False), (f"https://{host}", True)):
            fields = {"csrf": person.csrf, "as": "operator"}
            answer = http.post(
                "/ui/sign-in", data=fields, headers={"Origin": origin, "Cookie": f"kledger-form={person.csrf}"}
            )
            assert answer.status_code == 303
            cookie = next(each for each in answer.headers.get_list("set-cookie") if "kledger-session" in each).lower()
            assert "httponly" in cookie
            assert "samesite=lax" in cookie
            assert ("secure" in cookie) is secure


def test_a_session_ends_when_it_is_idle_and_after_a_week_at_the_latest() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])

    def begun() -> str:
        ledger = AsyncLedgerClient.over(Wire(Connection("http://127.0.0.1:1")))
        return sessions.begin(Session(Caller(user="ann"), ledger, with_token=False, operator=False, analyst=False))

    idle, busy = begun(), begun()
    while now[0] < LONGEST:
        now[0] += IDLE / 2
        assert (sessions.of(busy) is not None) == (now[0] <= LONGEST)
    assert sessions.of(idle) is None


def test_one_session_more_than_a_node_keeps_ends_the_one_that_is_idle_longest() -> None:
    sessions = Sessions(most=2)
    ledger = AsyncLedgerClient.over(Wire(Connection("http://127.0.0.1:1")))

    def begun() -> str:
        return sessions.begin(Session(Caller(user="ann"), ledger, with_token=False, operator=False, analyst=False))

    first, second = begun(), begun()
    assert sessions.of(first) is not None
    third = begun()
    assert [sessions.of(each) is not None for each in (first, second, third)] == [True, False, True]


def test_nobody_ends_the_sessions_of_others_by_beginning_many() -> None:
    sessions = Sessions(most_of_one=2)
    ledger = AsyncLedgerClient.over(Wire(Connection("http://127.0.0.1:1")))

    def begun(of: str) -> str:
        return sessions.begin(Session(Caller(), ledger, with_token=True, operator=False, analyst=False, of=of))

    others = begun("token of bob")
    mine = [begun("token of ann") for _ in range(4)]
    assert [sessions.of(each) is not None for each in [others, *mine]] == [True, False, False, True, True]


def test_a_token_alone_says_who_looks_and_what_they_may_do(guarded: tuple[RunningNode, Path]) -> None:
    node, data = guarded
    _, leads = create_token(data, {"user": ["lead"], "project": ["lamps"]}, "agent")
    _, analysts = create_token(data, {}, "analyst")
    _, several = create_token(data, {"user": ["ann", "ben"]}, "agent")
    with visitor(node.url, leads) as lead:
        page = words(lead.get("/ui/new").text)
        assert "You look as user:lead, project:lamps." in page
        assert "Look as somebody else" in page
    with visitor(node.url, analysts, signed_in=False) as analyst:
        landed = analyst.sign_in(analysts)
        assert (landed.status_code, landed.url.path) == (200, "/ui/sql")
        assert "/ui/knowledge" not in landed.text
    with visitor(node.url, several, signed_in=False) as person:
        refused = person.sign_in(several)
        assert refused.status_code == 403
        assert "user:ann, user:ben" in words(refused.text)
    for token, entities, role in ((leads, ["user:lead", "project:lamps"], "agent"), (several, [], "agent")):
        with node.client(token=token) as ledger:
            who = ledger.whoami()
            assert (who["entities"], who["operator"], who["role"]) == (entities, False, role)
    with node.client(token=several) as ledger:
        assert ledger.acting_as(user="ben").whoami()["entities"] == ["user:ben"]
        with pytest.raises(Forbidden):
            ledger.acting_as(user="eve").whoami()


def test_what_fails_without_a_reason_is_a_page_for_a_person_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_: Any, __: Any) -> Any:
        raise KeyError("something nobody thought of")

    async def check() -> None:
        async with http_door() as door:
            monkeypatch.setattr(interface, "PAGES", (Page(f"{HOME}/broken", broken, open=True),))
            answer = await door.get(f"{HOME}/broken", headers=BROWSER)
            assert answer.status_code == 500
            assert "internal_error" in answer.text
            assert "something nobody thought of" not in answer.text
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"

    asyncio.run(check())


ELSEWHERE = (
    "https://evil.example/ui",
    "//evil.example/ui",
    "/\\evil.example",
    "/ui//evil.example",
    "javascript:alert(1)",
    "/api/knowledge",
    "/ui/../api/admin/status",
    "/ui/\r\nSet-Cookie: a=b",
    "/uix",
    "",
    "/ui/" + "a" * 9000,
)


@pytest.mark.parametrize("address", ELSEWHERE)
def test_signing_in_leads_to_no_other_place_than_a_page(address: str) -> None:
    assert local(address) == "/ui"


def test_language_and_theme_are_the_browsers_until_they_are_chosen(shared_node: RunningNode) -> None:
    with visitor(shared_node.url) as person:
        person.http.headers["Accept-Language"] = "zh-CN,zh;q=0.9"
        assert 'lang="zh-Hans"' in person.get("/ui").text
        assert 'data-theme="auto"' in person.get("/ui").text
        person.post("/ui/settings", language="en", back="/ui")
        person.post("/ui/settings", theme="dark", back="/ui")
        page = person.get("/ui").text
        assert 'lang="en"' in page
        assert 'data-theme="dark"' in page


def test_language_and_theme_are_chosen_before_one_signs_in(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        address = "/ui/sign-in?next=/ui/knowledge"
        person.get(address)
        page = person.post("/ui/settings", language="zh", back=address).text
        assert 'lang="zh-Hans"' in page
        assert 'name="next" value="/ui/knowledge"' in page
        assert person.http.post("/ui/settings", data={"language": "en", "back": address}).status_code == 403
        assert 'data-theme="dark"' in person.post("/ui/settings", theme="dark", back=address).text


def test_who_owns_nothing_is_told_that_the_name_may_be_wrong(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ledger.acting_as(user="si-ann").save("a rope", "is long", ["tool"])
    with visitor(shared_node.url, signed_in=False) as person:
        assert "check the name" not in words(person.sign_in(user="si-ann").text)
        assert "user:si-anne owns nothing here yet." in words(person.sign_in(user="si-anne").text)
        assert "check the name" not in words(person.sign_in().text)

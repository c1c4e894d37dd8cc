"""Attacks on the pages for people: each is refused, shows nothing of others, and changes nothing."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from producers.web.interface import MOST_FORM
from tests.attacks.guarded_node import ADAS_SECRET, BOBS_SECRET, Guarded, guarded
from tests.journeys.running_node import RunningNode
from tests.patience import PATIENCE
from tests.web.visitor import Visitor, visitor

FORM = "application/x-www-form-urlencoded"
LINK = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
RETIRE = "POST /ui/items/bobs-item/retire"


@dataclass(frozen=True)
class Attack:
    """One request in Bob's browser, or of somebody without a session, and the status that refuses it.

    `{csrf}` is Bob's token, `{adas}` the token of a session of Ada's. A redirect may lead to a page of ours alone.
    """

    line: str
    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    holder: str = "bob"
    kind: str = FORM


ATTACKS: dict[str, Attack] = {
    # a change that no page of the session asked for
    "a form without a token": Attack(RETIRE, 403),
    "a form with an empty token": Attack(RETIRE, 403, "csrf="),
    "a form with a made-up token": Attack(RETIRE, 403, "csrf=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    "a form with another session's token": Attack(RETIRE, 403, "csrf={adas}"),
    "a form with a token that is no text": Attack(RETIRE, 403, "csrf=%C3%A9"),
    "the token in the address": Attack(RETIRE + "?csrf={csrf}", 403),
    "the token in a cookie": Attack(RETIRE, 403, "", {"Cookie": "csrf={csrf}"}),
    "the token as JSON": Attack(RETIRE, 422, '{{"csrf":"{csrf}"}}', kind="application/json"),
    "the token in plain text": Attack(RETIRE, 422, "csrf={csrf}", kind="text/plain"),
    "the token in a form of parts": Attack(RETIRE, 422, "--x\r\n\r\n--x--", kind="multipart/form-data; boundary=x"),
    "a change by a link": Attack("GET /ui/items/bobs-item/retire", 404),
    "signing out by a link": Attack("GET /ui/sign-out", 404),
    "settings by a link": Attack("GET /ui/settings?theme=dark", 404),
    "a method that pages do not have": Attack("DELETE /ui/items/bobs-item", 404),
    "a form put": Attack("PUT /ui/items/bobs-item/retire", 404, "csrf={csrf}"),
    "a method stated in the form": Attack("POST /ui/items/bobs-item", 404, "_method=DELETE&csrf={csrf}"),
    # from another site
    "another site's form": Attack(RETIRE, 403, "csrf={csrf}", {"Origin": "https://evil.example"}),
    "a sandboxed frame's form": Attack(RETIRE, 403, "csrf={csrf}", {"Origin": "null"}),
    "a form of the same machine's other port": Attack(RETIRE, 403, "csrf={csrf}", {"Origin": "http://127.0.0.1:1"}),
    "a form that a browser says is of another site": Attack(
        RETIRE, 403, "csrf={csrf}", {"Sec-Fetch-Site": "cross-site", **LINK}
    ),
    "a form of a sister site": Attack(RETIRE, 403, "csrf={csrf}", {"Sec-Fetch-Site": "same-site", **LINK}),
    "two origins": Attack(RETIRE, 403, "csrf={csrf}", {"Origin": "http://a, http://b"}),
    "a script of another site reads a page": Attack(
        "GET /ui/knowledge", 403, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    ),
    "an image of another site is a page": Attack(
        "GET /ui/knowledge?q=key", 403, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}
    ),
    "a script of another site is a page": Attack(
        "GET /ui/sql/names.json", 403, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"}
    ),
    "a frame of another site": Attack(
        "GET /ui",
        403,
        headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ),
    "signing somebody in from another site": Attack(
        "POST /ui/sign-in",
        403,
        "token=x&csrf=y",
        {"Origin": "https://evil.example", "Cookie": "kledger-form=y"},
        "nobody",
    ),
    "signing somebody in without the form": Attack("POST /ui/sign-in", 403, "token={ada}", holder="nobody"),
    "signing somebody in with another form": Attack(
        "POST /ui/sign-in", 403, "token={ada}&csrf=a", {"Cookie": "kledger-form=b"}, "nobody"
    ),
    # without a session
    "no session": Attack("GET /ui/knowledge", 303, holder="nobody"),
    "no session, with a change": Attack("POST /ui/items/adas-open/retire", 401, "csrf=x", holder="nobody"),
    "a made-up session": Attack("GET /ui", 303, headers={"Cookie": "kledger-session-{port}=AAAA"}, holder="nobody"),
    "a session of 100 KB": Attack("GET /ui", 431, headers={"Cookie": "kledger-session-{port}=" + "A" * 100_000}),
    "a session under another port's name": Attack(
        "GET /ui", 303, headers={"Cookie": "kledger-session-1={session}"}, holder="nobody"
    ),
    "a session as a token": Attack(
        "GET /api/knowledge", 401, headers={"Authorization": "Bearer {session}"}, holder="nobody"
    ),
    "a session at the API": Attack("GET /api/knowledge", 401),
    "a session at the reference of the API": Attack("GET /openapi.json", 401),
    "headers that name somebody else": Attack("GET /ui/items/adas-item", 404, headers={"X-Ledger-User": "ada"}),
    "a token of somebody else beside the session": Attack(
        "GET /ui/items/adas-item", 404, headers={"Authorization": "Bearer {ada}"}
    ),
    # paths
    "up and out": Attack("GET /ui/../api/knowledge", 404),
    "up and out, encoded": Attack("GET /ui/%2e%2e/api/knowledge", 404),
    "up and out, with an encoded slash": Attack("GET /ui/..%2fapi%2fadmin%2fstatus", 404),
    "a file beside the files": Attack("GET /ui/static/x/..%2f..%2fsessions.py", 404),
    "a file by its path": Attack("GET /ui/static/x/%2fetc%2fpasswd", 404),
    "a template": Attack("GET /ui/templates/base.html", 404),
    "two slashes": Attack("GET //ui/knowledge", 401),
    "a NUL in an id": Attack("GET /ui/items/%00", 404),
    "an id that is no UTF-8": Attack("GET /ui/items/%ff", 422),
    "a page in capitals": Attack("GET /UI/knowledge", 401),
    # too much, or what cannot be read
    "a form of 3 MB": Attack(RETIRE, 413, "csrf=" + "a" * (MOST_FORM + 1)),
    "a form of 100,000 fields": Attack(RETIRE, 422, "a=&" * 100_000),
    "a form that is no UTF-8": Attack(RETIRE, 422, "csrf=%ff%fe"),
    "a parameter of 60 KB": Attack("GET /ui/knowledge?owner=" + "a" * 60_000, 422),
    # rights
    "another's item": Attack("GET /ui/items/adas-item", 404),
    "retiring another's item": Attack("POST /ui/items/adas-open/retire", 403, "csrf={csrf}"),
    "the operator's page": Attack("GET /ui/audit", 403),
    "a job of the operator's": Attack("POST /ui/audit/jobs", 403, "csrf={csrf}&kind=rebuild"),
    "SQL of an agent": Attack("POST /ui/sql", 403, "csrf={csrf}&query=SELECT+1"),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("pages") / "data") as node:
        yield node


@dataclass(frozen=True)
class Browsers:
    """Bob's browser, the token of a session of Ada's, and Bob's session id."""

    bob: Visitor
    adas: str
    session: str
    port: int


@pytest.fixture(scope="module")
def browsers(node: Guarded) -> Iterator[Browsers]:
    with visitor(node.node.url, node.tokens["bob"]) as bob, visitor(node.node.url, node.tokens["ada"]) as ada:
        bob.get("/ui")
        ada.get("/ui")
        port = urlsplit(node.node.url).port
        assert port is not None
        session = bob.http.cookies[f"kledger-session-{port}"]
        yield Browsers(bob, ada.csrf, session, port)


def sent(node: Guarded, browsers: Browsers, attack: Attack) -> httpx.Response:
    """What the node answers to an attack, without being followed anywhere."""
    words = {"csrf": browsers.bob.csrf, "adas": browsers.adas, "ada": node.tokens["ada"], "session": browsers.session}
    words["port"] = str(browsers.port)

    def filled(text: str) -> str:
        return text.format(**words) if "{" in text else text

    method, _, path = attack.line.partition(" ")
    headers = {name: filled(value) for name, value in attack.headers.items()}
    if attack.holder == "bob":
        own = f"kledger-session-{browsers.port}={browsers.session}"
        headers["Cookie"] = f"{headers['Cookie']}; {own}" if "Cookie" in headers else own
    if method != "GET":
        headers["Content-Type"] = attack.kind
    # The address goes out as it stands: httpx would tidy it up.
    connection = http.client.HTTPConnection("127.0.0.1", browsers.port, timeout=60)
    try:
        connection.request(method, filled(path), filled(attack.body).encode() or None, headers)
        answer = connection.getresponse()
        return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_on_a_page_is_refused_and_changes_nothing(node: Guarded, browsers: Browsers, name: str) -> None:
    before = node.state()
    answer = sent(node, browsers, ATTACKS[name])
    assert answer.status_code == ATTACKS[name].status, answer.text[:2000]
    assert ADAS_SECRET not in answer.text
    assert BOBS_SECRET not in answer.text
    assert answer.headers.get("location", "/ui").startswith("/ui")
    assert node.state() == before


def test_every_answer_of_a_page_forbids_frames_scripts_of_others_and_copies(node: Guarded, browsers: Browsers) -> None:
    for path in ("/ui", "/ui/knowledge", "/ui/items/bobs-item", "/ui/sign-in", "/ui/nothing", "/ui/items/adas-item"):
        answer = browsers.bob.http.get(path)
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "Cookie" in answer.headers["vary"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_files_hold_nothing_of_anybody_and_may_be_kept(node: Guarded, browsers: Browsers) -> None:
    page = browsers.bob.get("/ui").text
    files = set(re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', page))
    assert files
    for path in files:
        answer = httpx.get(node.node.url + path, timeout=PATIENCE)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert "set-cookie" not in answer.headers


REBINDING = ("evil.example", "evil.example:80", "169.254.169.254", "127.0.0.1.evil.example", "[::2]", "")


@pytest.mark.parametrize("host", REBINDING)
def test_a_name_that_leads_to_this_machine_is_not_this_machine(shared_node: RunningNode, host: str) -> None:
    answer = httpx.get(f"{shared_node.url}/ui", headers={"Host": host}, timeout=PATIENCE)
    assert answer.status_code in (400, 403)
    assert "set-cookie" not in answer.headers


def test_a_link_from_elsewhere_opens_a_page_and_leaves_nothing_behind(node: Guarded, tmp_path: Path) -> None:
    with visitor(node.node.url, node.tokens["bob"]) as bob:
        head = node.head()
        answer = bob.http.get("/ui/knowledge?q=key", headers={"Sec-Fetch-Site": "cross-site", **LINK})
        assert answer.status_code == 200
        assert node.head() == head

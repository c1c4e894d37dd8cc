"""Attacks over HTTP: each is refused with its code, tells nothing of others, and changes nothing."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import orjson
import pytest

from tests.attacks.guarded_node import ADAS_SECRET, BOBS_SECRET, Guarded

SQL = "'; DROP TABLE knowledge; --"
ITEM: dict[str, Any] = {"task": "t", "content": "c", "types": ["tool"]}


@dataclass(frozen=True)
class Attack:
    """One request, by whom, and the refusal that it has to meet."""

    line: str
    status: int
    code: str
    holder: str = "bob"
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


def saving(**fields: Any) -> dict[str, Any]:
    return {**ITEM, **fields}


def deep(levels: int) -> Any:
    document: Any = {}
    for _ in range(levels):
        document = {"a": document}
    return document


ATTACKS: dict[str, Attack] = {
    # who is asking
    "no token": Attack("GET /api/knowledge", 401, "unauthenticated", "nobody"),
    "no token at the metrics": Attack("GET /metrics", 401, "unauthenticated", "nobody"),
    "no token at the description": Attack("GET /openapi.json", 401, "unauthenticated", "nobody"),
    "no token at a path that is not there": Attack("GET /api/nothing", 401, "unauthenticated", "nobody"),
    "no token, named as the operator of a loopback node": Attack(
        "POST /api/admin/sql", 401, "unauthenticated", "nobody", {"query": "SELECT 1"}
    ),
    "an expired token": Attack("GET /api/admin/status", 401, "token_expired", "expired"),
    "a revoked token": Attack("GET /api/admin/status", 401, "token_revoked", "revoked"),
    "a guessed token": Attack(
        "GET /api/knowledge", 401, "unauthenticated", "nobody", headers={"Authorization": f"Bearer kledger_{'A' * 43}"}
    ),
    "SQL for a token": Attack(
        "GET /api/knowledge", 401, "unauthenticated", "nobody", headers={"Authorization": f"Bearer {SQL}"}
    ),
    "a token's id for the token": Attack(
        "GET /api/knowledge", 401, "unauthenticated", "nobody", headers={"Authorization": "Bearer {id}"}
    ),
    "a token in the address": Attack("GET /api/knowledge?token={ada}", 401, "unauthenticated", "nobody"),
    "a token as a password": Attack(
        "GET /api/knowledge", 401, "unauthenticated", "nobody", headers={"Authorization": "Basic {ada}"}
    ),
    # speaking for somebody else
    "naming another user": Attack("GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "ada"}),
    "adding a team to oneself": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "bob", "X-Ledger-Team": "platform"}
    ),
    "adding another entity to oneself": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-Scope": "user:bob,team:platform"}
    ),
    "registering a type of scope": Attack(
        "POST /api/scope_types", 403, "not_owner", json={"type": "guild", "priority": 9}
    ),
    "sharing another's item with oneself": Attack(
        "PUT /api/knowledge/adas-item/acl",
        404,
        "unknown_knowledge",
        json={"acl": [{"entity": "user:bob", "permission": "read_write"}]},
    ),
    "sharing another's open item with oneself": Attack(
        "PUT /api/knowledge/adas-open/acl",
        403,
        "not_owner",
        json={"acl": [{"entity": "user:bob", "permission": "read_write"}]},
    ),
    "putting an item before somebody by its ACL": Attack(
        "PUT /api/knowledge/bobs-item/acl",
        403,
        "forbidden",
        json={"acl": [{"entity": "user:ada", "permission": "read"}]},
    ),
    "putting a new item before somebody by its ACL": Attack(
        "POST /api/knowledge", 403, "forbidden", json=saving(acl=[{"entity": "user:ada", "permission": "read"}])
    ),
    "asking why one does not see an item": Attack("GET /api/knowledge/adas-item/why", 404, "unknown_knowledge"),
    "adding an org to oneself": Attack("GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-Org": "default"}),
    "another agent in a header of other case": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"x-LEDGER-agent": "scribe"}
    ),
    "another user, percent-encoded": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "%61%64%61"}
    ),
    "two identities in one header": Attack(
        "GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-User": "bob,ada"}
    ),
    "a line break in an identity": Attack(
        "GET /api/knowledge",
        422,
        "illegal_scope",
        "operator",
        headers={"X-Ledger-User": "bob%0d%0aX-Ledger-User:%20ada"},
    ),
    "an identity with an underscore": Attack(
        "GET /api/knowledge", 401, "unauthenticated", "nobody", headers={"X_Ledger_User": "ada"}
    ),
    "an unknown header of ours": Attack(
        "GET /api/knowledge", 422, "invalid_payload", headers={"X-Ledger-Role": "operator"}
    ),
    "several bindings and none chosen": Attack("GET /api/knowledge", 403, "forbidden", "several"),
    "an analyst who reads as somebody": Attack("GET /api/knowledge", 403, "forbidden", "analyst"),
    "an analyst who saves": Attack("POST /api/knowledge", 403, "forbidden", "analyst", saving()),
    "another user's memories": Attack("GET /api/v1/memories", 403, "forbidden", headers={"X-Ledger-User": "ada"}),
    "replacing another user's memory": Attack(
        "PUT /api/v1/memories/user", 403, "forbidden", json={"content": {}}, headers={"X-Ledger-User": "ada"}
    ),
    # the operator's work
    "an agent who rebuilds": Attack("POST /api/admin/rebuild", 403, "forbidden"),
    "an agent who asks SQL": Attack("POST /api/admin/sql", 403, "forbidden", json={"query": "SELECT 1"}),
    "an agent who attaches": Attack("GET /api/admin/attach", 403, "forbidden"),
    "an analyst who rebuilds": Attack("POST /api/admin/rebuild", 403, "forbidden", "analyst"),
    "an analyst who writes a file of the node": Attack(
        "POST /api/admin/replay", 403, "forbidden", "analyst", {"to": 1, "into": "/etc/passwd"}
    ),
    "an analyst who writes by SQL": Attack(
        "POST /api/admin/sql", 400, "illegal_query", "analyst", {"query": "DELETE FROM knowledge_state"}
    ),
    "an analyst who reads the node's files": Attack(
        "POST /api/admin/sql", 400, "illegal_query", "analyst", {"query": "FROM read_text('/etc/passwd')"}
    ),
    "an analyst who asks who attached": Attack(
        "POST /api/admin/sql", 400, "illegal_query", "analyst", {"query": "SELECT kledger_known('a', 'b', 'b')"}
    ),
    "the admin path in capitals": Attack("GET /API/ADMIN/status", 404, "unknown_route"),
    "the admin path, encoded": Attack("GET /api/%61dmin/status", 404, "unknown_route"),
    "the admin path with two slashes": Attack("GET /api//admin/status", 404, "unknown_route"),
    "the admin path behind dots": Attack("GET /api/knowledge/..%2fadmin%2fstatus", 404, "unknown_knowledge"),
    "the admin path behind an open one": Attack("GET /health/..%2f..%2fapi%2fadmin%2fstatus", 404, "unknown_route"),
    # what is another's
    "saving as another owner": Attack("POST /api/knowledge", 403, "not_owner", json=saving(owner="user:ada")),
    "saving as another owner's agent": Attack(
        "POST /api/knowledge", 403, "not_owner", json=saving(owner="agent:scribe")
    ),
    "saving into another user's scope": Attack(
        "POST /api/knowledge", 403, "forbidden", json=saving(scopes=["user:ada"])
    ),
    "saving into a team that one is not of": Attack(
        "POST /api/knowledge", 403, "forbidden", json=saving(scopes=["public", "team:platform"])
    ),
    "widening an item of one's own to a foreign scope": Attack(
        "PUT /api/knowledge/bobs-item", 403, "forbidden", json={"scopes": ["user:bob", "org:default"]}
    ),
    "putting an item under another's name": Attack(
        "PUT /api/knowledge/bobs-item", 403, "forbidden", json={"owner": "user:ada"}
    ),
    "reading what is another's": Attack("GET /api/knowledge/adas-item", 404, "unknown_knowledge"),
    "the history of what is another's": Attack("GET /api/knowledge/adas-item/history", 404, "unknown_knowledge"),
    "the lineage of what is another's": Attack("GET /api/lineage?ref=adas-item", 404, "unknown_reference"),
    "what is another's, as of then": Attack("GET /api/knowledge/adas-item?as_of=1", 404, "unknown_knowledge"),
    "changing what is another's": Attack("PUT /api/knowledge/adas-item", 404, "unknown_knowledge", json={"task": "x"}),
    "changing what one may only read": Attack("PUT /api/knowledge/adas-open", 403, "not_owner", json={"task": "x"}),
    "retiring what one may only read": Attack("DELETE /api/knowledge/adas-open", 403, "not_owner"),
    "restoring what one may only read": Attack("POST /api/knowledge/adas-open/restore", 403, "not_owner"),
    "rating what one may not see": Attack(
        "PUT /api/knowledge/adas-item", 404, "unknown_knowledge", json={"add_harmful_case": {}}
    ),
    "taking another's id": Attack("POST /api/knowledge", 409, "knowledge_exists", json=saving(id="adas-item")),
    # what a text can do
    "SQL in an id": Attack(f"GET /api/knowledge/{quote(SQL, safe='')}", 404, "unknown_knowledge"),
    "SQL in a reference": Attack(f"GET /api/lineage?ref={quote(SQL)}", 404, "unknown_reference"),
    "SQL in a scope filter": Attack(f"GET /api/knowledge?scopes={quote(SQL)}", 422, "illegal_scope"),
    "SQL in an owner filter": Attack(f"GET /api/knowledge?owner={quote(SQL)}", 422, "illegal_scope"),
    "SQL in a type filter": Attack(f"GET /api/knowledge?types={quote(SQL)}", 422, "invalid_payload"),
    "SQL in a moment": Attack(f"GET /api/knowledge?as_of={quote(SQL)}", 422, "invalid_payload"),
    "SQL in a limit": Attack(f"GET /api/knowledge?limit={quote(SQL)}", 422, "invalid_payload"),
    "SQL in a scope": Attack("POST /api/knowledge", 422, "illegal_scope", json=saving(scopes=[SQL])),
    "a wildcard for a scope": Attack(
        "POST /api/knowledge", 422, "illegal_scope", json=saving(scopes=["user:bob", "*"])
    ),
    "a path out of the node in an id": Attack(
        "GET /api/knowledge/..%2F..%2F..%2Fetc%2Fpasswd", 404, "unknown_knowledge"
    ),
    "a NUL in an id": Attack("POST /api/knowledge", 422, "invalid_payload", json=saving(id="a\0b")),
    "wildcards of subjects in a retired id": Attack("DELETE /api/knowledge/%3E", 404, "unknown_knowledge"),
    "a NUL in a text": Attack("POST /api/knowledge", 422, "invalid_payload", json=saving(task="a\0b")),
    "an id too long for a subject": Attack("POST /api/knowledge", 422, "invalid_payload", json=saving(id="钥" * 2000)),
    "half a character": Attack("POST /api/knowledge", 400, "bad_json", content=b'{"task": "\\ud800"}'),
    "brackets without end": Attack("POST /api/knowledge", 400, "bad_json", content=b"[" * 100_000),
    "tags nested too deep": Attack("POST /api/knowledge", 422, "invalid_payload", json=saving(tags=deep(40))),
    "a profile nested too deep": Attack(
        "PATCH /api/v1/memories/user", 422, "invalid_payload", json={"content": deep(40)}
    ),
    "a body too large": Attack("POST /api/knowledge", 413, "payload_too_large", content=b" " * (2 * 1024 * 1024 + 1)),
    "a text too large for the log": Attack(
        "POST /api/knowledge", 413, "payload_too_large", json=saving(content="x" * 1_100_000)
    ),
    "a batch of too many": Attack("POST /api/knowledge/batch", 422, "invalid_payload", json={"items": [{}] * 1001}),
    "another type of body": Attack(
        "POST /api/knowledge", 400, "bad_json", content=b"<x/>", headers={"Content-Type": "application/xml"}
    ),
    "fields that are none": Attack("POST /api/knowledge", 422, "invalid_payload", json=saving(version=99, position=1)),
    "a history of praise": Attack(
        "POST /api/knowledge", 422, "invalid_payload", json=saving(eval={"helpful_history": [{"outcome": "good"}]})
    ),
    "a page of another site": Attack(
        "GET /api/knowledge", 403, "not_owner", headers={"Origin": "https://evil.example"}
    ),
    "an origin that is none": Attack("GET /api/knowledge", 403, "not_owner", headers={"Origin": "http://["}),
}


def sent(target: Guarded, attack: Attack) -> httpx.Response:
    method, _, path = attack.line.partition(" ")
    known = {"{ada}": target.tokens["ada"], "{id}": target.ids["ada"]}

    def filled(text: str) -> str:
        for mark, value in known.items():
            text = text.replace(mark, value)
        return text

    headers = {name: filled(value) for name, value in attack.headers.items()}
    if attack.content is not None:
        headers = {"Content-Type": "application/json", **headers}
    with target.client(attack.holder) as client:
        return client.request(method, filled(path), json=attack.json, content=attack.content, headers=headers)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_is_refused_with_its_code_and_changes_nothing(unharmed: Guarded, name: str) -> None:
    attack = ATTACKS[name]
    answer = sent(unharmed, attack)
    assert (answer.status_code, answer.json()["error"]["code"]) == (attack.status, attack.code), answer.text
    for secret in (ADAS_SECRET, BOBS_SECRET, *unharmed.tokens.values()):
        assert secret not in answer.text
    if attack.status == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("holder", "headers", "sees", "never"),
    [
        ("bob", {}, BOBS_SECRET, ADAS_SECRET),
        ("ada", {}, ADAS_SECRET, BOBS_SECRET),
        ("ada", {"X-Ledger-Agent": "scribe"}, "ada waters plants", ADAS_SECRET),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/api/knowledge?limit=100&status=all",
        "/api/knowledge?limit=100&scopes=user:ada,user:bob,public",
        "/api/knowledge",
    ],
)
def test_a_list_holds_what_the_token_may_read_and_no_more(
    unharmed: Guarded, path: str, holder: str, headers: dict[str, str], sees: str, never: str
) -> None:
    with unharmed.client(holder) as client:
        answer = client.get(path, headers=headers)
    assert answer.status_code == 200
    assert sees in answer.text
    assert never not in answer.text


@pytest.mark.parametrize("query", [ADAS_SECRET, "key", SQL, '" OR 1=1', "钥匙", "%", "blue key under the stone"])
def test_no_query_finds_what_the_token_may_not_read(unharmed: Guarded, query: str) -> None:
    with unharmed.client("bob") as client:
        answer = client.get(
            "/api/knowledge/search", params={"q": query, "min_score": 0, "top_k": 100, "record": "false"}
        )
    assert answer.status_code == 200
    assert "adas-item" not in answer.text
    assert "blue-key" not in answer.json()["results"].__repr__()


def raw(target: Guarded, request: bytes) -> list[int]:
    """The statuses of everything that a connection answers to these bytes, until it closes."""
    at = urlsplit(target.node.url)
    assert at.hostname is not None
    with socket.create_connection((at.hostname, at.port or 0), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


def request(target: Guarded, *lines: str, first: str = "GET /api/knowledge HTTP/1.1") -> bytes:
    host = urlsplit(target.node.url).netloc
    bearer = f"Authorization: Bearer {target.tokens['bob']}"
    return "\r\n".join([first, f"Host: {host}", bearer, "Connection: close", *lines, "", ""]).encode("latin-1")


SMUGGLED: dict[str, tuple[str, ...]] = {
    "an identity twice": ("X-Ledger-User: bob", "X-Ledger-User: ada"),
    "an identity twice, in two spellings": ("X-Ledger-User: bob", "x-ledger-user: ada"),
    "a folded header": ("X-Ledger-User: bob", " ada"),
    "a header with a blank before its colon": ("X-Ledger-User : ada",),
    "two lengths": ("Content-Length: 0", "Content-Length: 60"),
    "a length and chunks": ("Content-Length: 5", "Transfer-Encoding: chunked"),
    "two hosts": ("Host: evil.example",),
    "a second token": ("Authorization: Bearer {operator}",),
    "a bare line feed before another identity": ("X-Ledger-Trace-Id: t\nX-Ledger-User: ada",),
    "a NUL in an identity": ("X-Ledger-User: bob\0ada",),
}


def test_a_plain_request_over_a_bare_socket_is_answered(unharmed: Guarded) -> None:
    assert raw(unharmed, request(unharmed, "X-Ledger-User: bob")) == [200]


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_header_that_could_mean_two_things_means_nothing(unharmed: Guarded, name: str) -> None:
    lines = tuple(line.replace("{operator}", unharmed.tokens["operator"]) for line in SMUGGLED[name])
    statuses = raw(unharmed, request(unharmed, *lines))
    assert statuses, "the node answers"
    assert all(400 <= status < 500 for status in statuses), statuses


def test_a_request_hidden_in_a_body_is_not_answered(unharmed: Guarded) -> None:
    host = urlsplit(unharmed.node.url).netloc
    hidden = f"POST /api/admin/rebuild HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"
    body = f"0\r\n\r\n{hidden}"
    told = request(
        unharmed,
        f"Content-Length: {len(body)}",
        "Transfer-Encoding: chunked",
        "Content-Type: application/json",
        first="POST /api/knowledge HTTP/1.1",
    )
    statuses = raw(unharmed, told + body.encode())
    assert 202 not in statuses
    assert all(400 <= status < 500 for status in statuses), statuses


BEHIND_THE_BODY = (
    "X-Ledger-User: ada",
    "X-Ledger-Scope: team:platform",
    "Host: evil.example",
    "Origin: http://evil.example",
)


@pytest.mark.parametrize("field", BEHIND_THE_BODY)
def test_a_field_behind_the_body_names_nobody(unharmed: Guarded, field: str) -> None:
    body = orjson.dumps({"action": "retire", "ids": ["bobs-item"], "dry_run": True})
    told = request(
        unharmed,
        "Transfer-Encoding: chunked",
        "Content-Type: application/json",
        first="POST /api/knowledge/bulk HTTP/1.1",
    )
    chunks = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    assert raw(unharmed, told + chunks + f"{field}\r\n\r\n".encode()) == [200]

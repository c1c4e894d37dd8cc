"""Attacks by headers that a proxy would set, or that would break out of a header: nothing follows from any of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from kledger.answers.parts import Degraded
from producers.http.answers import in_headers
from tests.attacks.guarded_node import ADAS_SECRET, Guarded
from tests.attacks.test_http import Attack, sent

# What a proxy says of whom it asks for: who that is, where the request went, how.
FORWARDED: dict[str, dict[str, str]] = {
    "an address of the machine itself": {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"},
    "many addresses": {"X-Forwarded-For": ", ".join(["127.0.0.1"] * 500)},
    "an address of another form": {"Forwarded": 'for="[::1]";host=127.0.0.1;proto=https;by=_operator'},
    "another host": {"X-Forwarded-Host": "127.0.0.1:8420", "X-Original-Host": "127.0.0.1"},
    "another scheme and port": {"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"},
    "another beginning of the path": {"X-Forwarded-Prefix": "/health", "X-Script-Name": "/health"},
    "another path": {"X-Original-URL": "/health", "X-Rewrite-URL": "/health"},
    "another method": {"X-HTTP-Method-Override": "GET", "X-HTTP-Method": "GET", "X-Method-Override": "GET"},
    "a user who was let in": {"X-Forwarded-User": "ada", "X-Remote-User": "ada", "Remote-User": "ada"},
    "a user of a client's certificate": {"X-SSL-Client-CN": "operator", "X-Client-Verify": "SUCCESS"},
    "a token of a proxy": {"X-Forwarded-Access-Token": "{ada}", "X-Api-Key": "{ada}", "X-Auth-Token": "{ada}"},
    "a cookie with a token": {"Cookie": "token={ada}; Authorization=Bearer {ada}"},
    "a token for the proxy": {"Proxy-Authorization": "Bearer {ada}"},
}
ATTACKS: dict[str, Attack] = {
    "a trace that ends its header": Attack(
        "GET /api/knowledge/search?q=k", 422, "invalid_payload", headers={"X-Ledger-Trace-Id": "a%0d%0aSet-Cookie:a=b"}
    ),
    "a message that ends its header": Attack(
        "POST /api/knowledge", 422, "invalid_payload", headers={"X-Ledger-Message-Id": "a%0aX-Ledger-Position:%201"},
        json={"task": "t", "content": "c", "types": ["tool"]},
    ),
    "a trace that ends a line for those who know Unicode": Attack(
        "GET /api/knowledge/search?q=k", 422, "invalid_payload", headers={"X-Ledger-Trace-Id": "a%E2%80%A8b"}
    ),
    "an identity that ends its header": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "bob%0d%0aX-Ledger-User:%20ada"}
    ),
    "an identity with a NUL": Attack("GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "bob%00"}),
    "a correlation that turns text around": Attack(
        "GET /api/knowledge/search?q=k", 422, "invalid_payload", headers={"X-Ledger-Correlation-Id": "%E2%80%AEdelif"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_what_would_end_a_header_is_refused(unharmed: Guarded, name: str) -> None:
    attack = ATTACKS[name]
    answer = sent(unharmed, attack)
    assert (answer.status_code, answer.json()["error"]["code"]) == (attack.status, attack.code), answer.text[:300]
    assert "set-cookie" not in answer.headers
    assert ADAS_SECRET not in answer.text


@pytest.mark.parametrize("name", FORWARDED)
def test_what_a_proxy_would_say_opens_nothing_and_changes_nothing(unharmed: Guarded, name: str) -> None:
    said = {header: value.replace("{ada}", unharmed.tokens["ada"]) for header, value in FORWARDED[name].items()}
    with unharmed.client("nobody") as nobody:
        for path in ("/api/knowledge", "/api/admin/status", "/metrics", "/"):
            assert nobody.get(path, headers=said).json()["error"]["code"] == "unauthenticated", path
    with unharmed.client("bob") as bob:
        alone, forwarded = (bob.get("/api/knowledge", headers=headers) for headers in ({}, said))
        assert forwarded.json() == alone.json()
        assert forwarded.headers.keys() == alone.headers.keys()
        refused = bob.delete("/api/knowledge/adas-open", headers=said)
        assert refused.json()["error"]["code"] == "not_owner"
        index = bob.get("/", headers=said)
        assert "/health/" not in str(index.headers.get("location", ""))


@given(st.text(max_size=300), st.one_of(st.none(), st.integers(0, 2**63 - 1)))
def test_whatever_the_reason_is_what_an_answer_lacks_is_one_line_of_ascii(reason: str, position: int | None) -> None:
    """Reasons tell of errors of endpoints and brokers, and so may hold anybody's words."""
    lacks = Degraded(part="embeddings", reason=reason, position=position)
    stated = in_headers(7, [lacks, Degraded(part="view", reason=f"\r\nSet-Cookie: a=b{reason}", position=None)])
    headers = Response(headers=stated).headers
    assert "set-cookie" not in headers
    for value in stated.values():
        assert value.isascii()
        assert value.isprintable()
    (told,) = [json.loads(value) for value in stated.values() if value.startswith("[")]
    assert [(each["reason"], each["position"]) for each in told] == [
        (reason, position),
        (f"\r\nSet-Cookie: a=b{reason}", None),
    ]

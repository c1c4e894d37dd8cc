"""Attacks over HTTP at the edges of headers, parameters and ids: each is refused with its code and changes nothing."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.attacks.guarded_node import ADAS_SECRET, BOBS_SECRET, Guarded
from tests.attacks.test_http import Attack, saving, sent

POSITIONS = {
    "negative": "-1",
    "beyond 64 bits": str(2**63),
    "a fraction": "1.5",
    "an exponent": "1e3",
    "not a number": "NaN",
    "digits of another script": "%D9%A1",
    "nothing": "",
    "SQL": quote("1; DROP TABLE events"),
}
ATTACKS: dict[str, Attack] = {
    **{
        f"a position to wait for that is {what}": Attack(
            f"GET /api/knowledge?min_position={value}", 422, "invalid_payload"
        )
        for what, value in POSITIONS.items()
    },
    **{
        f"a header of a position that is {what}": Attack(
            "GET /api/knowledge", 422, "invalid_payload", headers={"X-Ledger-Position": value}
        )
        for what, value in POSITIONS.items()
    },
    **{
        f"a moment that is {what}": Attack(f"GET /api/knowledge?as_of={value}", 422, "invalid_payload")
        for what, value in {"infinite": "infinity", "of no calendar": "2026-02-30", "year 0": "0000-01-01"}.items()
    },
    **{
        f"a wait that is {what}": Attack(f"GET /api/knowledge?wait={value}", 422, "invalid_payload")
        for what, value in {"negative": "-1", "infinite": "inf", "no number": "nan", "a year": "31536000"}.items()
    },
    # who is asking, oddly
    "an empty identity": Attack("GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-User": ""}),
    "a blank identity": Attack("GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-User": "%20"}),
    "an identity that is longer than any": Attack(
        "GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "a" * 300}
    ),
    "an identity of broken UTF-8": Attack(
        "GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-User": "%ff%fe"}
    ),
    "public for an identity": Attack("GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-Scope": "public"}),
    "further identities with nothing between": Attack(
        "GET /api/knowledge", 422, "illegal_scope", headers={"X-Ledger-Scope": "user:bob,,"}
    ),
    "the operator's name": Attack("GET /api/knowledge", 403, "forbidden", headers={"X-Ledger-User": "local"}),
    # what a token opens beside the API
    "the pages for people with a revoked token": Attack("GET /docs", 401, "token_revoked", "revoked"),
    "the pages for people with an expired token": Attack("GET /docs", 401, "token_expired", "expired"),
    "the index with a guessed token": Attack(
        "GET /", 401, "unauthenticated", "nobody", headers={"Authorization": "Bearer guess"}
    ),
    # what is another's, through what came later
    "applying a plan that is nobody's": Attack("POST /api/slims/slim-1/apply", 404, "unknown_process"),
    "reading an evolution that is nobody's": Attack("GET /api/evolutions/evolution-1", 404, "unknown_process"),
    "settling a conflict that is nobody's": Attack(
        "POST /api/conflicts/c1/resolve", 404, "unknown_process", json={"winner": "bobs-item"}
    ),
    "scoring what one may not see": Attack(
        "PUT /api/knowledge/adas-item", 404, "unknown_knowledge", json={"update_score": 1}
    ),
    "reverting what one may only read": Attack(
        "POST /api/knowledge/adas-open/revert", 403, "not_owner", json={"to_version": 1}
    ),
    "reverting what one may not see": Attack(
        "POST /api/knowledge/adas-item/revert", 404, "unknown_knowledge", json={"to_version": 1}
    ),
    "confirming through a scope that one names oneself": Attack(
        "PUT /api/knowledge/adas-open", 422, "invalid_payload", json={"through": "team:platform", "update_score": 1}
    ),
    "a seal written by hand": Attack(
        "POST /api/knowledge", 422, "invalid_payload", json=saving(content="sealed:v1:user:ada:AAAA")
    ),
    "a sealed object written by hand": Attack(
        "POST /api/knowledge", 422, "invalid_payload", json=saving(tags={"a": {"$sealed": "sealed:v1:user:ada:AAAA"}})
    ),
    "a search that no recall could hold": Attack(
        "GET /api/knowledge/search?q=sealed:v1:user:ada:AAAA", 422, "invalid_payload"
    ),
    "a start that no recall could hold": Attack(
        "GET /api/recall/startup?q=sealed:v1:user:ada:AAAA", 422, "invalid_payload"
    ),
    "a goal that no event could hold": Attack(
        "POST /api/goals/g/focus", 422, "invalid_payload", json={"description": "sealed:v1:user:ada:AAAA"}
    ),
    "an id with an encoded slash of another's resource": Attack(
        "GET /api/resource/adas%2Faccount", 404, "unknown_resource"
    ),
    "an id with a slash that is encoded twice": Attack("GET /api/resource/adas%252Faccount", 404, "unknown_resource"),
    "an id of dots": Attack("GET /api/knowledge/%2e%2e%2fadas-item", 404, "unknown_knowledge"),
    "an id with a NUL in the path": Attack("GET /api/knowledge/adas-item%00", 404, "unknown_knowledge"),
    "an id of broken UTF-8 in the path": Attack("GET /api/knowledge/%ff", 422, "invalid_payload"),
    "an item one deeper than a body may be": Attack(
        "POST /api/knowledge", 422, "invalid_payload", content=b'{"task":' + b"[" * 300 + b"]" * 300 + b"}"
    ),
    "another's start by its language": Attack(
        "GET /api/recall/startup?language=zh", 403, "forbidden", headers={"X-Ledger-User": "ada"}
    ),
    "a language that is a path": Attack("GET /api/recall/startup?language=../../etc/passwd", 422, "invalid_payload"),
    "a chain accepted by an agent": Attack("POST /api/admin/chain/accept", 403, "forbidden"),
    "an audit by an agent": Attack("POST /api/admin/audit", 403, "forbidden"),
    "a comparison of views by an analyst": Attack("POST /api/admin/verify", 403, "forbidden", "analyst"),
    "refused events read by an agent": Attack("GET /api/admin/refused", 403, "forbidden"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_is_refused_with_its_code_and_changes_nothing(unharmed: Guarded, name: str) -> None:
    attack = ATTACKS[name]
    answer = sent(unharmed, attack)
    assert (answer.status_code, answer.json()["error"]["code"]) == (attack.status, attack.code), answer.text[:300]
    for secret in (ADAS_SECRET, BOBS_SECRET, *unharmed.tokens.values()):
        assert secret not in answer.text

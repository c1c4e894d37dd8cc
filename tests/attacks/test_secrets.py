"""Attacks on the secret of a resource, with every token of a guarded node: it is its owner's, however it is asked."""

from __future__ import annotations

import httpx
import pytest

from tests.attacks.guarded_node import ADAS_CREDENTIAL, ADAS_RESOURCE, Guarded

PATHS = ("adas%2Faccount", "adas/account", "adas/./account", "adas//account", "adas/account/", "%2Fadas%2Faccount")
NAMED: tuple[dict[str, str], ...] = (
    {},
    {"X-Ledger-User": "ada"},
    {"X-Ledger-User": "bob"},
    {"X-Ledger-User": "bob", "X-Ledger-Team": "platform"},
)


@pytest.mark.parametrize("holder", ["nobody", "bob", "several", "analyst", "expired", "revoked"])
def test_no_token_but_its_owners_reads_a_secret(unharmed: Guarded, holder: str) -> None:
    with unharmed.client(holder) as client:
        for headers in NAMED:
            for path in PATHS:
                for ending in ("", "?include_expired=true", "?as_of=1", "/history"):
                    refused_or_empty(client.get(f"/api/resource/{path}{ending}", headers=headers))
            refused_or_empty(client.get("/api/resource?status=all&limit=1000", headers=headers))


def refused_or_empty(answer: httpx.Response) -> None:
    assert ADAS_CREDENTIAL not in answer.text
    assert answer.status_code >= 400 or answer.json()["results"] == [], answer.text


@pytest.mark.parametrize("holder", ["nobody", "bob", "several", "analyst", "expired", "revoked"])
def test_nobody_else_changes_or_destroys_it(unharmed: Guarded, holder: str) -> None:
    with unharmed.client(holder) as client:
        for headers in NAMED:
            theirs = {"id": ADAS_RESOURCE, "title": "t", "owner": "user:ada", "shared_with": ["user:bob"]}
            for answer in (
                client.post("/api/resource", json=theirs, headers=headers),
                client.delete("/api/resource/adas/account?destroy_secret=true", headers=headers),
                client.post("/api/resource/adas/account/restore", headers=headers),
            ):
                assert 400 <= answer.status_code < 500, answer.text
    with unharmed.client("ada") as client:
        told = client.get("/api/resource/adas/account", headers={"X-Ledger-User": "ada"}).json()
        assert (told["secure_body"], told["version"]) == (ADAS_CREDENTIAL, 1)


def test_the_operator_and_the_analyst_read_it_nowhere(unharmed: Guarded) -> None:
    with unharmed.client("operator") as client:
        told = client.get("/api/resource/adas/account").json()
        assert (told["secure_body"], told["secure"]) == (None, "withheld")
    for relation in ("resources", "resource_versions", "events"):
        assert ADAS_CREDENTIAL not in str(unharmed.sql(f"FROM {relation}"))


def test_a_token_shares_a_secret_with_those_alone_that_it_is_bound_to(unharmed: Guarded) -> None:
    body = {"id": "adas/other", "title": "t", "secure_body": "s", "shared_with": ["user:bob"]}
    with unharmed.client("ada") as client:
        answer = client.post("/api/resource", json=body, headers={"X-Ledger-User": "ada"})
        assert answer.json()["error"]["code"] == "forbidden"

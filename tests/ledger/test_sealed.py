"""A sealed value: what it looks like, that it opens only in its place, and what is left when a key is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import KeyMissing, SealBroken
from ledger.privacy.sealed import ERASED, HINT, open_document, seal
from ledger.privacy.vault import DataKey, Held, MemoryVault, Tombstone, new_secret

ADA, BOB = DataKey("user:ada", new_secret()), DataKey("user:bob", new_secret())
KEYS: dict[str, Held] = {"user:ada": ADA, "user:bob": BOB}
EVENT = "event-1"


def read(data: Any, keys: dict[str, Held] = KEYS, event_id: str = EVENT) -> Any:
    return orjson.loads(orjson.dumps(open_document(data, keys.get, event_id)))


def test_a_sealed_text_names_its_key_and_says_nothing_else() -> None:
    sealed = seal("我的秘密", [ADA], EVENT, "/data/content")
    assert sealed.startswith("sealed:v1:user:ada:")
    assert "秘密" not in sealed
    assert HINT in orjson.dumps({"content": sealed})
    assert seal("我的秘密", [ADA], EVENT, "/data/content") != sealed


texts = st.text(st.characters(exclude_categories=["Cs"]))
documents = st.dictionaries(texts, st.recursive(st.none() | st.booleans() | texts, st.lists, max_leaves=5))


@given(text=texts, tags=documents)
def test_what_is_sealed_reads_as_it_was(text: str, tags: dict[str, Any]) -> None:
    data = {
        "content": seal(text, [ADA, BOB], EVENT, "/data/content"),
        "tags": seal(tags, [ADA], EVENT, "/data/tags"),
        "urls": [seal(text, [BOB], EVENT, "/data/urls/0"), "in clear"],
        "n": 1,
    }
    assert set(data["tags"]) == {"$sealed"}
    assert read(data) == {"content": text, "tags": tags, "urls": [text, "in clear"], "n": 1}


def test_a_sealed_text_that_looks_sealed_itself_reads_as_it_was() -> None:
    text = "sealed:v1:user:bob:AAAA"
    assert read({"c": seal(text, [ADA], EVENT, "/data/c")}) == {"c": text}


@pytest.mark.parametrize("gone", ["user:ada", "user:bob"])
def test_without_one_of_its_keys_only_the_fallback_is_left(gone: str) -> None:
    keys: dict[str, Held] = {**KEYS, gone: Tombstone(gone, "user:local", "2026-03-05T12:00:00Z", "r")}
    data = {
        "content": seal("x", [ADA, BOB], EVENT, "/data/content"),
        "tags": seal({"a": 1}, [ADA, BOB], EVENT, "/data/tags"),
    }
    assert read(data, keys) == {"content": ERASED, "tags": {}}


def test_a_key_that_the_vault_never_had_is_an_error_that_names_it() -> None:
    with pytest.raises(KeyMissing, match="user:ada"):
        read({"c": seal("x", [ADA], EVENT, "/data/c")}, {})


@pytest.mark.parametrize(
    ("data", "event_id"),
    [
        ({"task": seal("x", [ADA], EVENT, "/data/content")}, EVENT),
        ({"content": seal("x", [ADA], EVENT, "/data/content")}, "event-2"),
        ({"content": seal("x", [ADA], EVENT, "/data/content")[:-8] + "AAAAAAA="}, EVENT),
        ({"content": seal("x", [ADA], EVENT, "/data/content").replace("ada", "bob")}, EVENT),
        ({"content": "sealed:v1:user:ada:not base64"}, EVENT),
        ({"content": "sealed:v1:user:ada:"}, EVENT),
        ({"content": "sealed:v1:nothing"}, EVENT),
    ],
    ids=["another field", "another event", "changed", "another key", "no base64", "empty", "no key"],
)
def test_what_was_moved_changed_or_never_sealed_does_not_open(data: dict[str, Any], event_id: str) -> None:
    with pytest.raises(SealBroken):
        read(data, event_id=event_id)


def test_what_is_sealed_for_a_resource_stays_sealed() -> None:
    key = asyncio.run(MemoryVault().obtain("resource:db"))
    sealed = seal("pw", [key], EVENT, "/data/secure_body")
    outer = seal("pw", [key, ADA], EVENT, "/data/secure_body")
    assert read({"secure_body": sealed}, {}) == {"secure_body": sealed}
    assert read({"secure_body": outer})["secure_body"].startswith("sealed:v1:resource:db:")

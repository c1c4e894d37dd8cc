"""Attacks by a program of ours: the exception is the code's, and the token is nowhere to be read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import (
    Forbidden,
    IllegalScope,
    InvalidPayload,
    KnowledgeExists,
    LedgerError,
    NotOwner,
    PayloadTooLarge,
    RateLimited,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
    UnknownKnowledge,
    UnknownReference,
)
from ledger.runtime.redaction import TOKEN
from tests.attacks.guarded_node import ADAS_SECRET, Guarded
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.files import contents
from tests.journeys.running_node import ENVIRONMENT
from tests.processes import started

ATTACKS: dict[str, tuple[type[LedgerError], Callable[[LedgerClient], Any]]] = {
    "acting as another": (Forbidden, lambda k: k.acting_as(user="ada").get("adas-item")),
    "acting as one's team": (Forbidden, lambda k: k.acting_as(team="platform").list()),
    "searching as another": (Forbidden, lambda k: k.acting_as(user="ada").search("key")),
    "reading another's memories": (Forbidden, lambda k: k.acting_as(user="ada").profiles.both()),
    "patching another's memory": (Forbidden, lambda k: k.acting_as(user="ada").profiles.patch("user", {})),
    "reading another's item": (UnknownKnowledge, lambda k: k.get("adas-item")),
    "its history": (UnknownKnowledge, lambda k: k.history("adas-item")),
    "its lineage": (UnknownReference, lambda k: k.lineage("adas-item")),
    "saving for another": (NotOwner, lambda k: k.save("t", "c", ["tool"], owner="user:ada")),
    "saving into another's scope": (Forbidden, lambda k: k.save("t", "c", ["tool"], scopes=["user:ada"])),
    "saving over another's item": (KnowledgeExists, lambda k: k.save("t", "c", ["tool"], id="adas-item")),
    "stating another's item anew": (NotOwner, lambda k: k.revise("adas-open", content="x")),
    "retiring another's item": (NotOwner, lambda k: k.retire("adas-open")),
    "rating what one cannot see": (UnknownKnowledge, lambda k: k.rate("adas-item", "harmful")),
    "asking SQL": (Forbidden, lambda k: k.sql("SELECT 1")),
    "asking how to attach": (Forbidden, lambda k: k.attach()),
    "starting a rebuild": (Forbidden, lambda k: k.start_job("rebuild")),
    "looking at a job": (Forbidden, lambda k: k.job("rebuild-1")),
    "a line break in an identity": (IllegalScope, lambda k: k.acting_as(user="bob\r\nX-Ledger-User: ada").list()),
    "a NUL in a text": (InvalidPayload, lambda k: k.save("t\0", "c", ["tool"])),
    "an event too large": (PayloadTooLarge, lambda k: k.save("t", "x" * 1_100_000, ["tool"])),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attack_raises_what_its_code_means(unharmed: Guarded, name: str) -> None:
    expected, attack = ATTACKS[name]
    with unharmed.node.client(token=unharmed.tokens["bob"]) as ledger, pytest.raises(expected) as raised:
        attack(ledger)
    assert raised.value.code == expected.code
    assert ADAS_SECRET not in raised.value.message
    assert unharmed.tokens["bob"] not in repr(raised.value)


@pytest.mark.parametrize(
    ("holder", "expected"), [("expired", TokenExpired), ("revoked", TokenRevoked), (None, Unauthenticated)]
)
def test_a_token_that_does_not_count_says_why(
    unharmed: Guarded, holder: str | None, expected: type[LedgerError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KLEDGER_TOKEN", raising=False)
    with unharmed.node.client(token=None if holder is None else unharmed.tokens[holder]) as ledger:
        with pytest.raises(expected):
            ledger.list()
        assert ledger.health()["status"] == "healthy"


def test_a_batch_holds_what_is_forged_apart_from_what_is_not(target: Guarded) -> None:
    """One payload's refusal is its own; `target` and not `unharmed`, for a retired item is kept."""
    with target.node.client(token=target.tokens["bob"]) as ledger:
        told = ledger.save_many(
            [
                {"task": "t", "content": "c", "types": ["tool"], "owner": "user:ada"},
                {"task": "t", "content": "c", "types": ["tool"], "scopes": ["team:platform"]},
                {"id": "adas-item", "task": "t", "content": "c", "types": ["tool"]},
            ]
        )
    assert [one["error"]["code"] for one in told["results"] if one["error"]] == [
        "not_owner", "forbidden", "knowledge_exists",
    ]  # fmt: skip
    assert told["saved"] == 0


def test_a_client_does_not_show_its_token(target: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    token = target.tokens["bob"]
    monkeypatch.setenv("KLEDGER_TOKEN", token)
    with target.node.client() as ledger:  # out of the environment
        assert ledger.get("bobs-item")["owner"] == "user:bob"
        assert token not in repr(ledger)
        assert token not in repr(ledger._wire)
    for wrong in ("two words", "line\nbreak", "钥匙"):
        with pytest.raises(Unauthenticated):
            LedgerClient(target.node.url, token=wrong)


def test_the_client_waits_as_long_as_it_is_asked_to_and_then_goes_on() -> None:
    with scripted_node(ScriptedNode) as node:
        node.refuses("POST /api/knowledge", "rate_limited", 429, retry_after=0.01)
        node.says("POST /api/knowledge", {"id": "k", "position": 1, "version": 1, "event_id": "e"}, 201)
        with LedgerClient(node.url, token="kledger_x") as ledger:
            assert ledger.save("t", "c", ["tool"])["position"] == 1
        assert [asked.headers["authorization"] for asked in node.asked] == ["Bearer kledger_x"] * 2
        node.refuses("GET /api/knowledge", "rate_limited", 429, retry_after=0.01)
        with LedgerClient(node.url, retries=1) as ledger, pytest.raises(RateLimited):
            ledger.list()


def command(target: Guarded, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return started.kledger(*arguments, environment={**ENVIRONMENT, "KLEDGER_URL": target.node.url, **environment})


def test_the_command_carries_the_token_of_the_environment_or_of_a_file(unharmed: Guarded, tmp_path: Path) -> None:
    without = command(unharmed, "show", "bobs-item")
    assert (without.returncode, "unauthenticated" in without.stderr) == (1, True)
    shown = command(unharmed, "show", "bobs-item", "--json", KLEDGER_TOKEN=unharmed.tokens["bob"])
    assert json.loads(shown.stdout)["owner"] == "user:bob"
    file = tmp_path / "token"
    file.write_text(unharmed.tokens["operator"] + "\n")
    told = command(unharmed, "status", "--json", "--token-file", str(file))
    assert json.loads(told.stdout)["healthy"] is True
    foreign = command(unharmed, "show", "adas-item", "--user", "ada", KLEDGER_TOKEN=unharmed.tokens["bob"])
    assert (foreign.returncode, "forbidden" in foreign.stderr) == (1, True)
    missing = command(unharmed, "status", "--token-file", str(tmp_path / "none"))
    assert (missing.returncode, "unauthenticated" in missing.stderr) == (1, True)
    for ran in (without, shown, told, foreign, missing):
        assert not TOKEN.search(ran.stdout + ran.stderr)


def test_no_token_and_no_password_is_in_the_log_of_the_node(target: Guarded) -> None:
    written = target.node.log.read_text("utf-8", "replace")
    assert not TOKEN.search(written)
    for password in target.node.access.passwords.values():
        assert password not in written
    for path, content in contents(target.node.data):
        assert not [token for token in target.tokens.values() if token.encode() in content], path
    assert (target.node.data / "tokens.json").stat().st_mode & 0o777 == 0o600

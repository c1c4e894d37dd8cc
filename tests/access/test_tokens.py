"""Tokens are made, kept as hashes, found again, and end: by time, or because somebody took them back."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import (
    Forbidden,
    IllegalScope,
    IllegalState,
    InvalidPayload,
    NodeMisconfigured,
    TokenExpired,
    TokenRevoked,
    Unauthenticated,
    UnknownReference,
)
from kledger.contract.scopes import Caller
from kledger.contract.words import TokenRole
from ledger.integrity.signing_keys import SigningKeys
from ledger.runtime.redaction import TOKEN
from producers.access.book import TokenBook
from producers.access.opening import analysts_of, tokens_for
from producers.access.principal import Principal
from producers.access.tokens import create_token, expiry, read_records, revoke_token, tokens_file

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)


def bearer(token: str) -> list[bytes]:
    return [f"Bearer {token}".encode()]


def test_a_token_is_256_random_bits_with_a_prefix_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    record, token = create_token(tmp_path, {"agent": ["scribe"]}, name="for the scribe")
    _, other = create_token(tmp_path, {"agent": ["scribe"]})
    assert TOKEN.fullmatch(token)
    assert token != other
    kept = tokens_file(tmp_path).read_text()
    assert token not in kept
    assert token.removeprefix("kledger_") not in kept
    assert record.sha256 in kept
    assert stat.S_IMODE(tokens_file(tmp_path).stat().st_mode) == 0o600
    assert [one.name for one in read_records(tokens_file(tmp_path))] == ["for the scribe", ""]
    assert read_records(tokens_file(tmp_path))[0] == record


def test_tokens_made_at_once_are_all_kept(tmp_path: Path) -> None:
    makers = [threading.Thread(target=create_token, args=(tmp_path, {"user": [f"u{n}"]})) for n in range(12)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert {one.bound["user"] for one in read_records(tokens_file(tmp_path))} == {(f"u{n}",) for n in range(12)}


def test_a_running_node_takes_up_new_and_revoked_tokens_at_once(tmp_path: Path) -> None:
    book = TokenBook(tokens_file(tmp_path))
    assert not book.required
    assert book.principal_of([]) is None
    record, token = create_token(tmp_path, {"agent": ["scribe"]})
    assert book.required
    found = book.principal_of(bearer(token))
    assert found is not None
    assert (found.id, found.role, found.entities()) == (record.id, "agent", {"agent:scribe"})
    revoke_token(tmp_path, record.id)
    with pytest.raises(TokenRevoked, match=record.id):
        book.principal_of(bearer(token))


def test_an_expired_token_is_refused_and_says_so(tmp_path: Path) -> None:
    record, token = create_token(tmp_path, {"user": ["ada"]}, expires=datetime.now(UTC) - timedelta(seconds=1))
    book = TokenBook(tokens_file(tmp_path))
    with pytest.raises(TokenExpired, match=record.id):
        book.principal_of(bearer(token))
    revoke_token(tmp_path, record.id)
    with pytest.raises(TokenRevoked):  # somebody's decision is the better reason
        book.principal_of(bearer(token))


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b""],
        [b"Bearer"],
        [b"Bearer "],
        [b"Basic YWRhOnB3"],
        [b"Bearer kledger_" + b"A" * 43],
        [b"Bearer \xff\xfe"],
        [b"Bearer ' OR 1=1 --"],
    ],
)
def test_what_is_no_token_of_the_node_opens_nothing(tmp_path: Path, headers: list[bytes]) -> None:
    _, token = create_token(tmp_path, {"user": ["ada"]})
    book = TokenBook(tokens_file(tmp_path))
    with pytest.raises(Unauthenticated):
        book.principal_of(headers)
    with pytest.raises(Unauthenticated):
        book.principal_of([*bearer(token), *headers] if headers else bearer(token[:-1]))


def test_a_token_that_the_node_does_not_ask_for_is_refused_rather_than_ignored(tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated, match="has no tokens"):
        TokenBook(tokens_file(tmp_path)).principal_of(bearer("kledger_" + "A" * 43))


def test_a_file_that_is_lost_or_damaged_opens_nothing(tmp_path: Path) -> None:
    _, token = create_token(tmp_path, {"user": ["ada"]})
    book = TokenBook(tokens_file(tmp_path))
    tokens_file(tmp_path).write_text("{ damaged")
    assert book.required
    assert book.principal_of(bearer(token)) is not None, "what was known before still counts"
    with pytest.raises(Unauthenticated):
        book.principal_of([])
    with pytest.raises(NodeMisconfigured, match="cannot be read"):
        TokenBook(tokens_file(tmp_path))
    tokens_file(tmp_path).unlink()
    assert book.required
    with pytest.raises(Unauthenticated):
        book.principal_of(bearer(token))


@pytest.mark.parametrize("first", ["{ damaged", '{"tokens": [{}]}', "[]"])
def test_a_first_file_that_cannot_be_read_opens_nothing_either_until_it_can(tmp_path: Path, first: str) -> None:
    book = TokenBook(tokens_file(tmp_path))
    assert not book.required
    tokens_file(tmp_path).write_text(first)
    assert book.required
    with pytest.raises(Unauthenticated):
        book.principal_of([])
    tokens_file(tmp_path).unlink()
    _, token = create_token(tmp_path, {"user": ["ada"]})
    assert book.principal_of(bearer(token)) is not None


def test_a_file_that_is_made_readable_is_read_without_a_further_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = TokenBook(tokens_file(tmp_path))
    _, token = create_token(tmp_path, {"user": ["ada"]})
    with monkeypatch.context() as while_closed, capture_logs() as told:
        while_closed.setattr(Path, "read_bytes", raising(PermissionError(13, "Permission denied")))
        assert book.required
        with pytest.raises(Unauthenticated):
            book.principal_of(bearer(token))
    assert "chown" in told[0]["error"]
    tokens_file(tmp_path).chmod(0o640)
    assert book.principal_of(bearer(token)) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")
def test_what_root_writes_into_a_directory_of_another_user_is_that_users(tmp_path: Path) -> None:
    for folder in (data := tmp_path / "data", data / "keys"):
        folder.mkdir()
        os.chown(folder, 1234, 1235)
    record, _ = create_token(data, {"user": ["ada"]})
    revoke_token(data, record.id)
    keys = SigningKeys.open(data / "keys")
    keys.rotate()
    files = [file for file in data.rglob("*") if file.is_file() and file.parent.name != "public"]
    assert {file.name for file in files} == {"tokens.json", "tokens.json.lock", "signing.pem", "succession.jsonl"}
    assert {(file.stat().st_uid, file.stat().st_gid) for file in files} == {(1234, 1235)}


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_no_file_of_roots_is_given_away_by_a_link_to_it(link: Callable[[Path, Path], None], tmp_path: Path) -> None:
    (data := tmp_path / "data").mkdir()
    os.chown(data, 1234, 1235)
    (theirs := tmp_path / "of_root").touch()
    link(data / "tokens.json.lock", theirs)
    create_token(data, {"user": ["ada"]})
    assert theirs.stat().st_uid == 0
    assert tokens_file(data).stat().st_uid == 1234


def raising(error: Exception) -> Callable[[Path], bytes]:
    def read(_path: Path) -> bytes:
        raise error

    return read


def test_a_fresh_node_that_asks_for_tokens_says_that_there_are_none_yet_and_one_that_lost_them_any_more(
    tmp_path: Path,
) -> None:
    with capture_logs() as fresh:
        book = TokenBook(tokens_file(tmp_path), always=True)
    (told,) = fresh
    assert told["log_level"] == "warning"
    assert "no tokens yet" in told["event"]
    create_token(tmp_path, {"agent": ["scribe"]})
    assert book.required
    assert book.known == 1
    tokens_file(tmp_path).unlink()
    with capture_logs() as lost:
        assert book.required
    (told,) = lost
    assert told["log_level"] == "error"
    assert "no tokens any more" in told["event"]


def test_only_what_is_there_and_good_can_be_revoked(tmp_path: Path) -> None:
    record, _ = create_token(tmp_path, {"user": ["ada"]})
    with pytest.raises(UnknownReference):
        revoke_token(tmp_path, "t-0000000000")
    revoke_token(tmp_path, record.id)
    with pytest.raises(IllegalState, match="revoked already"):
        revoke_token(tmp_path, record.id)


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({}, InvalidPayload),
        ({"user": [""]}, IllegalScope),
        ({"user": ["a\nb"]}, IllegalScope),
        ({"agent": ["x" * 300]}, IllegalScope),
    ],
)
def test_an_agents_token_that_is_nobodys_is_not_made(
    tmp_path: Path, named: dict[str, list[str]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        create_token(tmp_path, named)
    assert not tokens_file(tmp_path).exists() or read_records(tokens_file(tmp_path)) == []


def test_times_to_end_are_spans_moments_or_never() -> None:
    assert expiry("30d", NOW) == NOW + timedelta(days=30)
    assert expiry("12h", NOW) == NOW + timedelta(hours=12)
    assert expiry("2w", NOW) == NOW + timedelta(weeks=2)
    assert expiry("2026-03-06T12:00:00+00:00", NOW) == NOW + timedelta(days=1)
    assert expiry("never", NOW) is None
    beyond = ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00")
    past = ("2026-03-05T11:00:00Z", "2027-01-01")
    for wrong in ("0d", "-1d", "30", "d", "tomorrow", "1d; drop", "99999999d", *past, *beyond):
        with pytest.raises(InvalidPayload):
            expiry(wrong, NOW)


def principal(role: TokenRole, **bound: tuple[str, ...]) -> Principal:
    return Principal("t-1", role, bound)


def test_headers_choose_among_what_the_token_is_bound_to_and_add_nothing() -> None:
    held = principal("agent", user=("ada",), agent=("scribe",), project=("p1", "p2"))
    assert held.caller({}, "/api/knowledge").entities() == ["user:ada", "agent:scribe"]
    assert held.caller({"project": "p2"}, "/api/knowledge").entities() == ["project:p2"]
    assert held.caller({"user": "ada", "project": "p1"}, "/x").entities() == ["user:ada", "project:p1"]
    for foreign in ({"user": "bob"}, {"org": "lantern"}, {"user": "ada", "team": "x"}, {"project": "p3"}):
        with pytest.raises(Forbidden, match="is not bound to"):
            held.caller(foreign, "/api/knowledge")


def test_a_token_may_be_bound_to_entities_of_registered_types_and_several_of_a_kind() -> None:
    principal = Principal("t-1", "agent", {"user": ("ada",), "team": ("a", "b"), "department": ("finance",)})
    assert principal.caller({}, "/api/knowledge") == Caller(user="ada", further=("department:finance",))
    chosen = principal.caller({"user": "ada"}, "/api/knowledge", ["team:b", "team:a"])
    assert (chosen.entities(), chosen.team) == (["user:ada", "team:b", "team:a"], None)
    assert chosen.addresses == frozenset({"user:ada", "team:a", "team:b", "department:finance", "public"})
    for further in ("department:hr", "team:c", "user:eve"):
        with pytest.raises(Forbidden, match=further):
            principal.caller({"user": "ada"}, "/api/knowledge", [further])
    assert Principal("t-2", "operator", {}).caller({}, "/api/knowledge", ["department:hr"]).further == (
        "department:hr",
    )


def test_no_token_but_the_operators_makes_its_holder_the_operator() -> None:
    several = principal("agent", project=("p1", "p2"))
    with pytest.raises(Forbidden, match="does not say who asks"):
        several.caller({}, "/api/knowledge")
    analyst = principal("analyst")
    with pytest.raises(Forbidden):
        analyst.caller({}, "/api/knowledge")
    assert analyst.caller({}, "/api/admin/sql").is_operator
    assert principal("operator").caller({}, "/api/knowledge").is_operator
    assert principal("operator").caller({"user": "bob"}, "/api/knowledge") == Caller(user="bob")
    with pytest.raises(Forbidden):
        principal("operator", user=("ada",)).caller({"user": "bob"}, "/api/knowledge")


def test_the_nodes_own_work_is_the_operators_and_sql_the_analysts_too() -> None:
    for path in ("/api/admin/rebuild", "/api/admin/jobs/x", "/api/admin", "/api/admin/sql/x", "/api/administer"):
        for role in ("agent", "analyst"):
            with pytest.raises(Forbidden, match="role operator"):
                principal(role, user=("ada",)).require_path(path)
        principal("operator").require_path(path)
    principal("analyst").require_path("/api/admin/sql")
    with pytest.raises(Forbidden, match="role analyst"):  # no more than is needed
        principal("agent", user=("ada",)).require_path("/api/admin/sql")


def test_another_address_than_loopback_is_served_with_tokens_only(tmp_path: Path) -> None:
    assert not tokens_for(tmp_path, "127.0.0.1").required
    with pytest.raises(NodeMisconfigured, match="kledger token create"):
        tokens_for(tmp_path, "0.0.0.0")
    create_token(tmp_path, {}, "operator")
    assert tokens_for(tmp_path, "0.0.0.0").required


def test_analysts_and_operators_attach_with_their_own_token_until_it_ends(tmp_path: Path) -> None:
    book = TokenBook(tokens_file(tmp_path))
    admits = analysts_of(book)
    assert admits("the server's", True)
    assert not admits("another", False)
    analyst, token = create_token(tmp_path, {}, "analyst")
    _, agents = create_token(tmp_path, {"agent": ["scribe"]})
    assert not admits("the server's", True), "with tokens, the server's own opens nothing"
    assert admits(token, False)
    assert not admits(agents, False)
    revoke_token(tmp_path, analyst.id)
    assert not admits(token, False)


def test_the_file_is_what_the_command_documents(tmp_path: Path) -> None:
    create_token(tmp_path, {"user": ["阿达"]}, "operator")
    document = json.loads(tokens_file(tmp_path).read_bytes())
    assert document["version"] == 1
    assert set(document["tokens"][0]) == {
        "id", "sha256", "role", "bound", "name", "created", "expires", "revoked",
    }  # fmt: skip
    assert document["tokens"][0]["bound"] == {"user": ["阿达"]}

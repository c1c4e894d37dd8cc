"""No secret is written down: neither by its form, nor under its name, nor by its value."""

from __future__ import annotations

import json
import logging
import sys

import pytest
import structlog

from ledger.runtime.logs import log_to_stderr
from ledger.runtime.redaction import MARK, Redactor, secrets_of_environment

TOKEN = "kledger_" + "aB3-_" * 8 + "xyz"


@pytest.mark.parametrize(
    ("text", "secret", "stays"),
    [
        (f"refused {TOKEN} today", TOKEN, "refused"),
        (f"Authorization: Bearer {TOKEN}", TOKEN, "Authorization"),
        ("authorization: Basic YWRhOmxvbmdwYXNz", "YWRhOmxvbmdwYXNz", "authorization"),
        ("cannot reach nats://node:p4ssw0rd@127.0.0.1:4222 now", "p4ssw0rd", "127.0.0.1:4222"),
        ("ATTACH 'quack:127.0.0.1:1' AS kl (TOKEN 'hush-hush')", "hush-hush", "quack:127.0.0.1:1"),
        ("CALL quack_serve('x', token := 'hush-hush')", "hush-hush", "quack_serve"),
        ('{"password": "p4ssw0rd"}', "p4ssw0rd", "password"),
        ("api_key=abcdefgh123", "abcdefgh123", "api_key"),
        ("口令password=p4ssw0rd", "p4ssw0rd", "口令password"),
        ("口令password：p4ssw0rd", "p4ssw0rd", "口令password"),
        ("连不上nats://node:p4ssw0rd@127.0.0.1:4222", "p4ssw0rd", "连不上nats"),
        ("密钥sk-proj-abcdefghijklmnop1234无效", "sk-proj-abcdefghijklmnop1234", "密钥"),
        (f"头部Bearer {TOKEN[:30]}", TOKEN[:30], "头部Bearer"),
        ("Incorrect API key provided: sk-proj-abcdefghijklmnop1234", "sk-proj-abcdefghijklmnop1234", "Incorrect"),
    ],
)
def test_a_secret_is_known_by_its_form(text: str, secret: str, stays: str) -> None:
    told = Redactor(()).text(text)
    assert secret not in told
    assert MARK in told
    assert stays in told


def test_a_secret_is_known_by_its_name_and_by_its_value() -> None:
    redactor = Redactor(secrets_of_environment({"QDRANT_API_KEY": "qd-very-secret", "PATH": "/usr/bin", "A_KEY": "x"}))
    told = redactor(None, "info", {"event": "using qd-very-secret", "token": "t", "deep": [{"password": "p"}], "n": 3})
    assert told == {"event": f"using {MARK}", "token": MARK, "deep": [{"password": MARK}], "n": 3}


def test_what_is_no_secret_is_written_as_it_is() -> None:
    for text in (
        "the view duckdb is 3 events behind",
        "http://127.0.0.1:8420/api/knowledge/a:b@c",
        "token t-5d1b2c3a4f was revoked: ask whoever runs the node for another one",
        "the token is none of this node",
        "查询 token 的用法",
    ):
        assert Redactor(()).text(text) == text


def test_log_lines_of_ours_and_of_libraries_are_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        log_to_stderr()
        try:
            raise RuntimeError(f"no way in with {TOKEN}")
        except RuntimeError:
            structlog.get_logger().exception("failed", headers={"authorization": f"Bearer {TOKEN}"}, tries=2)
            logging.getLogger("uvicorn.error").exception("also failed with %s", TOKEN)
        sys.stderr.flush()
        said = capsys.readouterr().err
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        structlog.reset_defaults()
    assert TOKEN not in said
    assert said.count("no way in with [secret]") == 2
    first = json.loads(said.splitlines()[0])
    assert (first["event"], first["tries"], first["headers"]) == ("failed", 2, {"authorization": MARK})

"""Attacks on the port of Quack by a page in a browser that has no token: it learns that the port is there, no more.

DuckDB lets pages of any origin read its answers, and no setting turns that off (docs/decisions/0042).
"""

from __future__ import annotations

import re

import httpx
import pytest

from tests.attacks.guarded_node import ADAS_SECRET, BOBS_SECRET, Guarded
from tests.attacks.test_attached import asked, statement

PAGE = {"Origin": "https://evil.example", "Referer": "https://evil.example/", "Sec-Fetch-Site": "cross-site"}
SQL = b"SELECT content FROM knowledge"

# What a page sends: method, path, body.
ATTACKS: dict[str, tuple[str, str, bytes]] = {
    "asking what is there": ("GET", "/", b""),
    "asking whether it may ask": ("OPTIONS", "/quack", b""),
    "asking whether it may ask anywhere": ("OPTIONS", "/", b""),
    "reading by an address": ("GET", "/quack?q=SELECT+content+FROM+knowledge", b""),
    "an empty message": ("POST", "/quack", b""),
    "a message that is none": ("POST", "/quack", b"xxxx"),
    "SQL for a message": ("POST", "/quack", SQL),
    "JSON for a message": ("POST", "/quack", b'{"token": "kledger", "sql": "SELECT 1"}'),
    "a form for a message": ("POST", "/quack", b"token=&sql=SELECT+1"),
    "a message of zeros": ("POST", "/quack", bytes(4_096)),
    "a message of ones": ("POST", "/quack", b"\xff" * 4_096),
    "a message that says it is long": ("POST", "/quack", b"\x00\x00\x64\x00" + b"\xff\xff\xff\x7f" * 64),
    "another path": ("POST", "/../../etc/passwd", SQL),
    "another method": ("PUT", "/quack", SQL),
    "deleting": ("DELETE", "/quack", b""),
}


def port_of(target: Guarded) -> str:
    found = re.search(r"quack:(127\.0\.0\.1:\d+)", statement(target, "x"))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ATTACKS)
def test_a_page_without_a_token_is_told_nothing_of_what_is_kept(unharmed: Guarded, name: str) -> None:
    method, path, body = ATTACKS[name]
    answer = httpx.request(method, f"http://{port_of(unharmed)}{path}", content=body, headers=PAGE, timeout=30)
    told = answer.text + str(answer.headers)
    for secret in (ADAS_SECRET, BOBS_SECRET, "adas-item", *unharmed.tokens.values(), str(unharmed.node.data)):
        assert secret not in told
    assert len(told) < 2_000


def test_after_all_of_them_an_analyst_reads_as_before(unharmed: Guarded) -> None:
    for method, path, body in ATTACKS.values():
        httpx.request(method, f"http://{port_of(unharmed)}{path}", content=body, headers=PAGE, timeout=30)
    (told,) = asked(unharmed, unharmed.tokens["analyst"], "SELECT 42")
    assert told == {"rows": [[42]]}


def test_that_pages_may_read_its_answers_is_duckdbs_and_said_in_the_guarantees(unharmed: Guarded) -> None:
    answer = httpx.options(f"http://{port_of(unharmed)}/quack", headers=PAGE, timeout=30)
    assert answer.headers.get("access-control-allow-origin") == "*", (
        "DuckDB sends it no more: take the sentence out of docs/explanation/guarantees.md, and decision 42 with it"
    )

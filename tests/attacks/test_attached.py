"""Attacks by analysts: who may attach over Quack, what a session may do, and when it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import duckdb
import pytest

from producers.access.tokens import revoke_token
from projections.analysts.quack import load_extensions
from tests.attacks.guarded_node import Guarded
from tests.journeys.running_node import ROOT
from tests.patience import PATIENCE

CLIENT = ROOT / "tests" / "analysts" / "quack_client.py"


def statement(target: Guarded, token: str) -> str:
    """How to attach, as the node tells an analyst, with a token filled in."""
    with target.node.client(token=target.tokens["analyst"]) as ledger:
        told = ledger.attach()["statement"]
    assert "YOUR-TOKEN" in told
    return str(told).replace("YOUR-TOKEN", token.replace("'", "''"))


def asked(target: Guarded, token: str, *statements: str) -> list[dict[str, Any]]:
    """What an analyst's DuckDB gets for these statements, from a process of its own."""
    orders = {
        "attach": statement(target, token),
        "mode": "statements",
        "statements": [["server", s] for s in statements],
    }
    done = subprocess.run(
        [sys.executable, str(CLIENT)],
        input=json.dumps(orders) + "\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_analyst_attaches_with_their_own_token_and_reads_all_scopes(unharmed: Guarded) -> None:
    for holder in ("analyst", "operator"):
        (told,) = asked(unharmed, unharmed.tokens[holder], "SELECT count(*) FROM knowledge")
        assert told == {"rows": [[4]]}


@pytest.mark.parametrize("holder", ["ada", "bob", "expired", "revoked"])
def test_nobody_else_attaches(unharmed: Guarded, holder: str) -> None:
    (told,) = asked(unharmed, unharmed.tokens[holder], "SELECT 1")
    assert "Authentication failed" in told["error"]


@pytest.mark.parametrize("token", ["", "guess", "' OR 1=1 --", "kledger_" + "A" * 43, "t-0123456789"])
def test_a_guess_does_not_attach(unharmed: Guarded, token: str) -> None:
    (told,) = asked(unharmed, token, "SELECT 1")
    assert told["error"]


ATTACKS = [
    "INSERT INTO knowledge_state SELECT * FROM knowledge_state",
    "DELETE FROM events",
    "DROP TABLE events",
    "ATTACH ':memory:' AS x",
    "COPY events TO '/tmp/stolen.csv'",
    "FROM read_text('/etc/passwd')",
    "SET GLOBAL quack_authentication_function = 'quack_check_token'",
    "SELECT current_setting('quack_authentication_function')",
    "SELECT kledger_known('a', 'b', 'b')",
    "SELECT kledger_admit('a', 'DELETE FROM events')",
    "FROM quack_active_connections()",
    "SELECT 1; DELETE FROM events",
]


def test_a_session_reads_and_does_nothing_else(unharmed: Guarded) -> None:
    answers = asked(unharmed, unharmed.tokens["analyst"], *ATTACKS, "SELECT 42")
    assert [one for one in answers[:-1] if "error" not in one] == []
    assert answers[-1] == {"rows": [[42]]}


def test_a_session_ends_when_its_token_is_taken_back(target: Guarded) -> None:
    connection = duckdb.connect()
    load_extensions(connection)
    connection.execute(statement(target, target.tokens["analyst-to-revoke"]))
    assert connection.execute("FROM kl.query('SELECT 42')").fetchall() == [(42,)]
    revoke_token(target.node.data, target.ids["analyst-to-revoke"])
    with pytest.raises(duckdb.Error, match="Authorization failed"):
        connection.execute("FROM kl.query('SELECT 43')").fetchall()
    connection.close()
    (told,) = asked(target, target.tokens["analyst-to-revoke"], "SELECT 1")
    assert "Authentication failed" in told["error"]

"""What does not fit is told by the name that the caller has for it: an argument of a function, or of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload
from producers.cli.main import app
from tests.journeys.running_node import RunningNode

COMMANDS = {
    "search ": "QUERY is empty",
    "recall ": "MESSAGE is empty",
    "lineage ": "REF is empty",
    "evolve k ": "FEEDBACK is empty",
    "focus g  --agent a": "DESCRIPTION is empty",
    "memory save ": "CONTENT is empty",
    "sql ": "QUERY is empty",
    "search x --as-of 999999999": "error: --as-of 999999999 is beyond the head of the log",
    "show k --as-of 999999999": "error: --as-of 999999999 is beyond the head of the log",
    "search x --as-of 2999-01-01T00:00:00Z": "leave --as-of out to ask for the present",
    "changes --after 999999999": "error: --after 999999999 is beyond the head of the log",
    "bulk retire ": "ID is empty",
    "save --types tool --content ": "--content is empty",
    "save --types tool --content x --id ": "--id is empty",
    "session append s x --id ": "--id is empty",
    "share k --reader x": "--reader 'x' is not an entity",
    "memory save x --layer episodic --participant ": "--participant is empty",
    "memory save x --layer procedural --step ": "--step is empty",
    'profile set user {"q":1}': "q is not a field here",
}
NUL = "holds a NUL character, which the views cannot keep: remove it"
CALLS: dict[str, Callable[[LedgerClient], Any]] = {
    "query is empty": lambda ledger: ledger.search(""),
    "score has to be at most 5": lambda ledger: ledger.score("k", 9),
    "feedback is empty": lambda ledger: ledger.evolve("k", ""),
    f"reason {NUL}": lambda ledger: ledger.rate("k", "helpful", reason="\0"),
}


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_command_names_its_own_arguments_and_options(shared_node: RunningNode, typed: str) -> None:
    words = [*typed.split(" "), "--url", shared_node.url]
    if "--agent" not in words and words[0] != "sql":
        words += ["--user", "ann"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    assert COMMANDS[typed] in done.stderr
    assert "the body" not in done.stderr
    assert "the request" not in done.stderr


@pytest.mark.parametrize("said", CALLS)
def test_a_function_names_its_own_arguments(shared_node: RunningNode, said: str) -> None:
    with shared_node.client() as ledger, pytest.raises(InvalidPayload) as refused:
        CALLS[said](ledger.acting_as(user="ann"))
    assert refused.value.message == str(refused.value)
    assert refused.value.message.endswith(f"does not fit: {said}")
    faults: Any = refused.value.details["errors"]
    (fault,) = faults
    assert f"{fault['field']} {fault['reason']}" == said

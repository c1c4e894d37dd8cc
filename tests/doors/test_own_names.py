"""What does not fit is told by the name that the caller has for it: an argument of a function, or of a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.client.slips.own_advice import as_stated, in_python
from kledger.contract.errors import InvalidPayload, KnowledgeExists, NotOwner
from producers.cli.advice import advised
from producers.cli.main import app
from tests.doors.test_cli_screens import UNREACHABLE, texts_of_errors
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
    "backup s3://": "error: DIR 's3://' is no place in an object store",
    "changes --after 999999999": "error: --after 999999999 is beyond the head of the log",
    "bulk retire ": "ID is empty",
    "save --types tool --content ": "--content is empty",
    "save --types tool --content x --id ": "--id is empty",
    "session append s x --id ": "--id is empty",
    "share k --reader x": "--reader 'x' is not an entity",
    "save --types tool --content x --scopes publik": "--scopes 'publik' is not a scope: write public, or an entity as",
    "list --scopes publik": "--scopes 'publik' is not a scope: write public, or an entity as",
    "list --owner jonas": "--owner 'jonas' is not an entity",
    "list --created-by jonas": "--created-by 'jonas' is not an entity",
    "facets --owner jonas": "--owner 'jonas' is not an entity",
    "search x --scope publik": "'publik' is not a scope: write public, or an entity as",
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
    if "--agent" not in words and words[0] not in ("sql", "backup"):
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


ADVICE = {
    "this node asks for a token: send Authorization: Bearer with a token of this node (kledger token create; "
    "KLEDGER_TOKEN for our programs)": "this node asks for a token: give the client one of this node, as token=… or in "
    "KLEDGER_TOKEN (kledger token create makes one)",
    "you are user:ann: ask without an identity": "you are user:ann: ask through a client that acts as nobody, as "
    "acting_as() makes one",
    "you may not: ask as user:jonas, in the X-Ledger headers": "ask as user:jonas, with acting_as(user='jonas')",
    "you may not: ask as team:o'neil, in the X-Ledger headers": "ask as team:o'neil, with acting_as(team=\"o'neil\")",
    "you may not: ask as dept:hr, in the X-Ledger headers": "ask as dept:hr, with acting_as(scopes=['dept:hr'])",
    "it is there: revise it with PUT, or choose another id": "revise it with revise(), or choose another id",
}


@pytest.mark.parametrize("stated", ADVICE)
def test_advice_in_python_names_functions_and_the_command_its_own_options(stated: str) -> None:
    told = in_python(stated)
    assert ADVICE[stated] in told
    assert as_stated(told) == stated
    assert advised(told) == advised(stated)


def test_a_client_tells_whom_to_act_as_and_what_to_call_of_one_and_of_many(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        jonas, mei = ledger.acting_as(user="jonas"), ledger.acting_as(user="mei")
        jonas.save("t", "c", ["tool"], id="of-jonas", scopes=["public"])
        with pytest.raises(NotOwner, match=r"ask as user:jonas, with acting_as\(user='jonas'\)$"):
            mei.revise("of-jonas", content="d")
        with pytest.raises(KnowledgeExists, match=r"revise it with revise\(\)"):
            jonas.save("t", "d", ["tool"], id="of-jonas")
        (row,) = jonas.save_many([{"task": "t", "content": "d", "types": ["tool"], "id": "of-jonas"}])["results"]
        assert row["error"] is not None
        assert "revise it with revise()" in row["error"]["message"]


def test_no_message_of_the_node_speaks_of_headers_or_routes_to_a_program_in_python() -> None:
    """But for what is wrong with a request that no client makes, what stands in an address, and a token's header."""
    spoken = re.compile(r"X-Ledger|\b(GET|POST|PUT|PATCH|DELETE)\b")
    speaking = [text for text in texts_of_errors() if spoken.search(text)]
    reachable = [text for text in speaking if not any(words in text for words in (*UNREACHABLE, "address and headers"))]
    assert len(reachable) >= 6
    assert [text for text in reachable if spoken.search(in_python(text))] == []

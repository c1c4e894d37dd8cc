"""A program pipes what it asks and closes the pipe: each request is answered before the server ends."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

import pytest

from producers.mcp.lines import refusal_of
from tests.journeys.running_node import ENVIRONMENT, KLEDGER, ROOT, RunningNode
from tests.patience import PATIENCE

BEGIN: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a pipe", "version": "1"},
}
ITEM = {"task": "Mend a pump", "content": "Replace the seal first.", "types": ["tool"]}
NO_JSON, NO_REQUEST, NO_METHOD = -32700, -32600, -32601


def asked(request_id: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


def called(request_id: Any, tool: str, **arguments: Any) -> bytes:
    return asked(request_id, "tools/call", name=tool, arguments=arguments)


BEGUN = [asked("begin", "initialize", **BEGIN), b'{"jsonrpc": "2.0", "method": "notifications/initialized"}']


def piped(node: RunningNode, *lines: bytes, begun: bool = True) -> list[dict[str, Any]]:
    """What the program says to these lines and the end of stdin, but for the answer to the handshake before them."""
    ran = subprocess.run(
        [*KLEDGER, "mcp", "--url", node.url, "--agent", "piper"],
        input=b"\n".join([*(BEGUN if begun else []), *lines]),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert ran.returncode == 0, ran.stderr
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    return [each for each in told if each["id"] != "begin"]


def test_each_of_several_calls_before_the_end_of_stdin_is_answered_and_done(shared_node: RunningNode) -> None:
    calls = [called(n, "knowledge_save", **ITEM, message_id=f"m-{n}") for n in range(5)]
    told = piped(shared_node, *calls, called("last", "knowledge_search", query="a pump"))
    answers = {each["id"]: each["result"] for each in told}
    assert answers.keys() == {0, 1, 2, 3, 4, "last"}
    assert not any(answer["isError"] for answer in answers.values())
    saved = {answers[n]["structuredContent"]["id"] for n in range(5)}
    with shared_node.client() as ledger:
        assert {ledger.acting_as(agent="piper").get(item)["owner"] for item in saved} == {"agent:piper"}


def test_two_requests_of_one_id_and_one_that_is_cancelled_let_the_program_end(shared_node: RunningNode) -> None:
    cancel = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "9"}}).encode()
    told = piped(shared_node, called(7, "knowledge_list"), called(7, "knowledge_list"), asked(9, "ping"), cancel)
    assert [each["id"] for each in told].count(7) == 2


def test_nothing_at_all_and_an_unknown_tool_let_the_program_end(shared_node: RunningNode) -> None:
    assert piped(shared_node, begun=False) == []
    (told,) = piped(shared_node, called(1, "no_such_tool"))
    assert told["error"]["code"] == -32602


def test_a_client_that_takes_no_answers_ends_the_program_without_a_fault(shared_node: RunningNode) -> None:
    program = subprocess.Popen(
        [*KLEDGER, "mcp", "--url", shared_node.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert program.stdout is not None
    program.stdout.close()
    program.stdout = None
    _, said = program.communicate(b"\n".join([*BEGUN, called(1, "knowledge_list")]), PATIENCE)
    assert program.returncode == 0, said
    assert b"Traceback" not in said
    assert b"the client has gone" in said


LINES: dict[str, tuple[bytes, Any, int]] = {
    "a batch": (b"[" + asked(1, "ping") + b"," + asked(2, "ping") + b"]", None, NO_REQUEST),
    "an id that is null": (asked(None, "tools/list"), None, NO_REQUEST),
    "an id that is a truth": (asked(True, "tools/list"), None, NO_REQUEST),
    "an id that is a fraction": (asked(1.5, "tools/list"), None, NO_REQUEST),
    "an id that is a list": (asked([1], "tools/list"), None, NO_REQUEST),
    "no version": (b'{"id": 3, "method": "ping"}', 3, NO_REQUEST),
    "another version": (b'{"jsonrpc": "1.0", "id": 3, "method": "ping"}', 3, NO_REQUEST),
    "params in a list": (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": []}', 3, NO_REQUEST),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 3, "method": 4}', 3, NO_REQUEST),
    "no method": (b'{"jsonrpc": "2.0", "id": 3}', 3, NO_REQUEST),
    "a number": (b"3", None, NO_REQUEST),
    "no JSON": (b'{"jsonrpc": "2.0", "id": 3,', None, NO_JSON),
    "half a character": (
        b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "\\ud83d"}}', 3, NO_JSON,
    ),
    "half a character for an id": (b'{"jsonrpc": "2.0", "id": "\\ud83d", "method": "ping"}', None, NO_JSON),
    "half a character for a method": (b'{"jsonrpc": "2.0", "id": 3, "method": "\\ud83d"}', 3, NO_JSON),
    "bytes that are no UTF-8": (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"a": "\xff"}}', 3, NO_JSON),
    "brackets without end": (b"[" * 100_000, None, NO_JSON),
    "a method that there is none of": (asked(3, "tools/none"), 3, NO_METHOD),
}  # fmt: skip


def test_each_line_that_is_no_request_is_answered_with_an_error_and_the_next_one_as_ever(
    shared_node: RunningNode,
) -> None:
    answers = [b'{"jsonrpc": "2.0", "id": 3, "result": 4}', b'{"jsonrpc": "2.0", "method": "ping"}', b"", b"   "]
    told = piped(shared_node, *answers, *(line for line, _, _ in LINES.values()), asked("next", "ping"))
    errors = Counter((each["id"], each["error"]["code"]) for each in told if "error" in each)
    assert errors == Counter((request_id, code) for _, request_id, code in LINES.values())
    assert [each["id"] for each in told if "result" in each] == ["next"]


@pytest.mark.parametrize("what", LINES)
def test_a_line_is_refused_with_its_own_id_where_it_has_one(what: str) -> None:
    line, request_id, code = LINES[what]
    refusal = refusal_of(line)
    if code == NO_METHOD:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.id, refusal.error.code) == (request_id, code)

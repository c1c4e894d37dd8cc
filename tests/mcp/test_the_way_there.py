"""A client starts before the node, has a token or not, and goes on after the node's end."""

from __future__ import annotations

import json
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from producers.access.tokens import create_token, revoke_token
from producers.mcp.catalogue import BY_NAME
from tests.free_ports import free_address
from tests.journeys.running_node import ENVIRONMENT, KLEDGER, ROOT, RunningNode, running, until
from tests.mcp.connecting import connected, refused, told
from tests.patience import PATIENCE

ITEM = {"task": "Mend a pump", "content": "Replace the seal first.", "types": ["tool"]}


async def test_the_tools_come_and_go_with_the_node_and_ask_for_its_tokens(tmp_path: Path) -> None:
    data, address, log = tmp_path / "data", free_address(), tmp_path / "mcp.log"
    url = f"http://{address}"
    record, token = create_token(data, {"agent": ["scribe"]})
    patient = {"KLEDGER_RETRY_FOR": "2"}  # else it asks a node that has ended for half a minute
    async with connected(url, "stdio", token=token, log=log, settings=patient) as early:
        tools = (await early.list_tools()).tools
        assert {tool.name for tool in tools} == BY_NAME.keys(), "it serves before there is a node"
        assert await refused(early, "knowledge_list", {}) == "node_unreachable"
        until(lambda: "kledger up" in log.read_text(), "the program says on stderr what is missing")
        with running(data, "--quack", "off", http=address) as node:
            saved = await told(early, "knowledge_save", ITEM)
            async with connected(url, "http", token=token) as client:
                (item,) = (await told(client, "knowledge_list", {}))["results"]
                assert (item["id"], item["owner"]) == (saved["id"], "agent:scribe")
            for wrong in (None, "kledger_" + "x" * 43):
                stranger_log = tmp_path / f"stranger-{wrong}.log"
                async with connected(url, "stdio", token=wrong, log=stranger_log) as stranger:
                    assert await refused(stranger, "knowledge_list", {}) == "unauthenticated"
                    told_why = partial(_says, stranger_log, "one of this node in KLEDGER_TOKEN")
                    until(told_why, "the program says on stderr that the tools will not work")
                with pytest.raises(ExceptionGroup):
                    async with connected(url, "http of 2025", token=wrong):
                        pass
            async with connected(url, "http", token=token) as client:
                revoke_token(data, record.id)
                assert await refused(early, "knowledge_list", {}) == "token_revoked"
                # The client's connection is open, and must not hold the node back.
                assert node.stop() == 0
                assert await refused(early, "knowledge_list", {}) == "node_unreachable"
    assert token not in log.read_text()


def _says(log: Path, words: str) -> bool:
    return words in log.read_text()


def test_an_address_that_can_be_none_ends_the_program_at_once() -> None:
    ran = subprocess.run(
        [*KLEDGER, "mcp", "--url", "node:8420"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "http://HOST:PORT" in ran.stderr


def test_stdout_carries_the_protocol_alone_and_an_interrupt_ends_the_program(shared_node: RunningNode) -> None:
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "by hand", "version": "1"},
        },
    }
    program = subprocess.Popen(
        [*KLEDGER, "mcp", "--url", shared_node.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    try:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(begin) + "\n")
        program.stdin.flush()
        assert json.loads(program.stdout.readline())["result"]["protocolVersion"] == "2025-06-18"
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE) == -signal.SIGINT
        assert program.stdout.read() == ""
    finally:
        program.kill()
        program.communicate()

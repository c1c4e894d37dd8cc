"""Slips that were told in words that did not help: an empty body, two tokens, a day for a position, a wrong choice."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kledger import AsyncLedgerClient
from kledger.contract.errors import InvalidPayload, NodeUnreachable, Unauthenticated
from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from producers.cli.main import app
from producers.http.parameters import moment_or_position
from producers.mcp.stdio import in_own_words
from tests.doors.http_door import http_door, refusal
from tests.doors.scripted_node import commanded_node

TOKEN = "kledger_" + "x" * 43


async def test_an_empty_body_is_told_as_one_with_what_it_should_be() -> None:
    async with http_door() as door:
        for path, needs in (("/api/knowledge", "content"), ("/api/resource", "id"), ("/api/knowledge/batch", "items")):
            answer = await door.post(path, content=b"", headers={"Content-Type": "application/json"})
            told = refusal(answer, 422, "invalid_payload")
            assert told.startswith("the body is empty: send a JSON object as application/json"), told
            assert needs in told.partition("with ")[2]
        answer = await door.post("/api/knowledge")
        assert refusal(answer, 422, "invalid_payload").startswith("the body is empty")


def test_a_token_of_a_variable_is_not_told_of_a_header(tmp_path: Path) -> None:
    create_token(tmp_path, {"user": ["ada"]})
    book = TokenBook(tokens_file(tmp_path))
    for values in ([], [b"Bearer " + TOKEN.encode()]):
        with pytest.raises(Unauthenticated) as refused:
            book.principal_of(values)
        assert "Authorization" in refused.value.message
        told = in_own_words(refused.value.message)
        assert "Authorization" not in told
        assert "KLEDGER_TOKEN or --token-file" in told


@contextmanager
def broker() -> Iterator[str]:
    """What greets whoever connects, as a broker does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            while True:
                try:
                    caller, _ = listening.accept()
                except OSError:
                    return
                with caller, contextlib.suppress(OSError):
                    caller.sendall(b'INFO {"server_id":"NCIBB","auth_required":true} \r\n')
                    caller.recv(1 << 16)

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


async def test_the_asynchronous_client_tells_a_broker_as_another_program() -> None:
    with broker() as url:
        async with AsyncLedgerClient(url) as ledger:
            with pytest.raises(NodeUnreachable, match="what it says is no HTTP: another program answers there") as no:
                await ledger.get("k-1")
    assert "server_id" not in no.value.message


def test_two_tokens_of_the_environment_are_refused_and_one_on_the_command_line_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with commanded_node(monkeypatch) as node:
        node.says("GET /api/knowledge", {"results": [], "count": 0, "total": 0, "more": False, "position": 1})
        both = {"KLEDGER_TOKEN": "kledger_" + "y" * 43, "KLEDGER_TOKEN_FILE": str(file)}
        for command in (["list"], ["status"], ["mcp"]):
            ran = CliRunner(env=both).invoke(app, command)
            assert (ran.exit_code, "KLEDGER_TOKEN and KLEDGER_TOKEN_FILE are both set: unset one" in ran.stderr) == (
                1,
                True,
            ), ran.output
        assert node.asked == []
        ran = CliRunner(env=both).invoke(app, ["list", "--token-file", str(file)])
        assert ran.exit_code == 0, ran.output
        assert node.asked[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    "command", [["changes", "--after"], ["history", "k", "--before"], ["refused", "list", "--after"]]
)
def test_a_time_where_a_position_is_wanted_is_told_so(monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    with commanded_node(monkeypatch):
        ran = CliRunner().invoke(app, [*command, "2026-03-05"])
    assert ran.exit_code == 2
    assert "'2026-03-05' is a time, and a position of the log is wanted: a whole number" in " ".join(ran.stderr.split())


def test_a_day_where_a_position_or_a_moment_is_wanted_is_told_so() -> None:
    with pytest.raises(InvalidPayload, match=r"'2026-03-05' is a day, .* write a position of the log, or "):
        moment_or_position("2026-03-05", "as_of")


WRONG = (
    ["list", "--layer", "shrt"],
    ["search", "x", "--layer", "shrt"],
    ["facets", "--layer", "shrt"],
    ["memory", "save", "x", "--layer", "shrt"],
    ["memory", "list", "--layer", "semantic,shrt"],
    ["memory", "list", "--status", "shrt"],
    ["recall", "x", "--layers", "shrt"],
    ["project", "roles", "p", "agent:a", "--role", "shrt"],
    ["document", "list", "--status", "shrt"],
)


@pytest.mark.parametrize("command", WRONG, ids=" ".join)
def test_a_wrong_choice_ends_every_command_with_the_same_code_and_asks_no_node(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    with commanded_node(monkeypatch) as node:
        ran = CliRunner().invoke(app, command)
        assert (ran.exit_code, node.asked) == (2, [])
    assert "'shrt' is " in " ".join(ran.stderr.split())

"""Sessions of a whole node: kept over restarts, backed up, closed and removed in time, forgotten with their person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import BrokerMisconfigured, MessageExists, SubjectForgotten, UnknownSession
from ledger.broker.access import LEDGER_STREAM, SESSIONS_STREAM
from ledger.broker.connection import BrokerConnection
from producers.cli.main import app
from tests.journeys.running_node import RunningNode, result_of, running, until
from tests.journeys.test_forgetting import files_with
from tests.sessions.asked import tool

WORDS = ["zebra21marker", "紫色标记第戌号", "zebra22marker"]


def said(*contents: str) -> list[dict[str, Any]]:
    return [{"id": f"m-{n}", "role": "user", "content": content} for n, content in enumerate(contents, 1)]


def ids(ledger: LedgerClient, session: str) -> list[str]:
    return [each["id"] for each in ledger.session(session).messages()["messages"]]


def test_every_interface_reads_what_one_of_them_appended(shared_node: RunningNode) -> None:
    runner = CliRunner()

    def command(*words: str) -> Any:
        done = runner.invoke(app, ["session", *words, "--user", "walker", "--json", "--url", shared_node.url])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    with shared_node.client() as ledger:
        walker = ledger.acting_as(user="walker")
        walker.session("walk/1").append([{"id": "m-1", "role": "user", "content": "走一走"}])
        assert command("append", "walk/1", "second", "--id", "m-2", "--role", "assistant")["count"] == 2
        third = {"session_id": "walk/1", "messages": [{"id": "m-3", "role": "user", "content": "third"}]}
        assert tool(shared_node.url, "walker", "session_append", third)["count"] == 3
        assert ids(walker, "walk/1") == ["m-1", "m-2", "m-3"]
        assert [each["content"] for each in command("messages", "walk/1")["messages"]] == ["走一走", "second", "third"]
        assert command("expand", "walk/1", "m-1") == walker.session("walk/1").expand("m-1")
        assert command("close", "walk/1") == walker.session("walk/1").close()
        assert [each["session_id"] for each in command("list")["results"]] == ["walk/1"]
        rows = ledger.sql("SELECT session_id, status, messages FROM sessions WHERE owner = 'user:walker'")["rows"]
        assert rows == [["walk/1", "closed", 3]]
        assert command("remove", "walk/1")["status"] == "removed"
        assert walker.sessions()["results"] == []


def test_every_interface_refuses_an_id_that_comes_with_other_words(shared_node: RunningNode) -> None:
    words = ["session", "append", "other-1", "else", "--id", "m-1", "--user", "other", "--url", shared_node.url]
    with shared_node.client() as ledger:
        session = ledger.acting_as(user="other").session("other-1")
        assert session.append(said("first"))["appended"] == 1
        with pytest.raises(MessageExists, match="m-1"):
            session.append(said("else"))
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, "m-1" in done.stderr) == (1, True), done.output
        asked = {"session_id": "other-1", "messages": said("else")}
        told = tool(shared_node.url, "other", "session_append", asked, refused=True)
        assert told["error"]["code"] == "message_exists", told
        assert session.append(said("first"))["duplicates"] == 1
        assert session.expand("m-1")["messages"][0]["content"] == "first"


def test_words_outlive_the_node_and_are_in_its_backup(tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    with running(tmp_path / "data") as node, node.client() as ledger:
        mei = ledger.acting_as(user="mei")
        mei.session("s1").append(said("one", "二"))
        mei.session("s2").append(said("other"))
        mei.session("s2").append([{"id": "head", "role": "user", "content": "named like a part of a session"}])
        node.kill_everything()
    with running(tmp_path / "data") as node, node.client() as ledger:
        mei = ledger.acting_as(user="mei")
        assert ids(mei, "s1") == ["m-1", "m-2"]
        kept = result_of(ledger, "backup", into=backup)
        assert kept["session_records"] == 6
        mei.session("s1").append([{"id": "m-9", "role": "user", "content": "after the backup"}])
    done = CliRunner().invoke(app, ["restore-backup", str(backup), "--data", str(tmp_path / "again"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["session_records"] == 6
    key = tmp_path / "again" / "keys" / "master.key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_bytes((tmp_path / "data" / "keys" / "master.key").read_bytes())
    with running(tmp_path / "again") as node, node.client() as ledger:
        mei = ledger.acting_as(user="mei")
        assert ids(mei, "s1") == ["m-1", "m-2"]
        assert mei.session("s1").append(said("one", "二", "three"))["count"] == 3
        assert mei.session("s2").expand("m-1")["messages"][0]["content"] == "other"
        assert result_of(ledger, "verify")["equal"]


def test_a_damaged_copy_of_the_words_is_found(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as ledger:
        ledger.acting_as(agent="coder").session("s1").append(said("one"))
        result_of(ledger, "backup", into=tmp_path / "backup")
    (file,) = (tmp_path / "backup").glob("sessions-*.words")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    done = CliRunner().invoke(app, ["backup", str(tmp_path / "backup"), "--check", "--json"])
    assert done.exit_code == 1
    assert "sessions.json" in str(json.loads(done.stdout)["problems"])


def test_what_is_idle_is_closed_and_later_removed_and_the_log_stays_whole(tmp_path: Path) -> None:
    environment = {"KLEDGER_SESSION_IDLE_MINUTES": "0.01", "KLEDGER_SESSION_DAYS": "0.00003"}
    with running(tmp_path / "data", env=environment) as node, node.client() as ledger:
        mei = ledger.acting_as(user="mei")
        mei.session("s1").append(said(WORDS[0]))
        until(lambda: mei.sessions(status="removed")["total"] == 1, "the session is removed")
        with pytest.raises(UnknownSession):
            mei.session("s1").messages()
        rows = ledger.sql("SELECT change, cause, messages FROM session_events ORDER BY position")["rows"]
        assert rows == [["opened", None, None], ["closed", "idle", 1], ["removed", "expired", 1]]
        assert ledger.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]
        assert result_of(ledger, "verify")["equal"]
        assert result_of(ledger, "audit")["intact"]


def test_after_forget_no_word_of_the_person_is_in_a_file_and_other_sessions_stay(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        mei, bob = ledger.acting_as(user="mei"), ledger.acting_as(user="bob")
        mei.session("s1").append(said(*WORDS))
        bob.session("s1").append(said("bobs-own-word"))
        result_of(ledger, "forget", subject="user:mei")
        assert files_with(data, WORDS) == {}
        with pytest.raises(UnknownSession):
            mei.session("s1").messages()
        with pytest.raises(SubjectForgotten):
            mei.session("s2").append(said("again"))
        assert bob.session("s1").messages()["messages"][0]["content"] == "bobs-own-word"
        assert result_of(ledger, "verify")["equal"]
    assert files_with(data, WORDS) == {}


async def test_a_node_may_remove_words_of_sessions_and_nothing_of_the_log(shared_node: RunningNode) -> None:
    connection = await BrokerConnection.open(shared_node.access, "node", name="test")
    try:
        answer = await connection.api(f"STREAM.PURGE.{SESSIONS_STREAM}", {"filter": "sessions.nobody.>"})
        assert answer["purged"] == 0
        with pytest.raises(BrokerMisconfigured):
            await connection.api(f"STREAM.PURGE.{LEDGER_STREAM}", {"filter": "ledger.nobody.>"})
        with pytest.raises(BrokerMisconfigured):
            await connection.api(f"STREAM.DELETE.{SESSIONS_STREAM}")
    finally:
        await connection.close()
    for role in ("reader", "writer"):
        connection = await BrokerConnection.open(shared_node.access, role, name="test")
        try:
            with pytest.raises(BrokerMisconfigured):
                await connection.request("sessions.default.user=3Amei.s1.said.x", b"forged")
        finally:
            await connection.close()
